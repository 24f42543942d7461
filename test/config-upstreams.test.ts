import { describe, expect, test } from 'vitest';
import { maskUrl } from '../src/config-upstreams.js';
import { configErrorOf, configOf, faultyVariables } from './support/config.js';

const upstreamsOf = (text: string) => configOf({ UPSTREAMS: text }).upstreams;
const urlsOf = (text: string) => upstreamsOf(text).map(({ name, url }) => [name, url]);
const given = (text: string) =>
  configErrorOf({ UPSTREAMS: text })
    .faults.filter((f) => f.variable === 'UPSTREAMS')
    .map((f) => f.given);

describe('UPSTREAMS names servers', () => {
  test.each<[string, string[][]]>([
    ['a=http://a', [['a', 'http://a']]],
    [
      'a=http://a/mcp, b=https://b:8443/x/ ',
      [
        ['a', 'http://a/mcp'],
        ['b', 'https://b:8443/x/'],
      ],
    ],
    ['0-a-=http://a', [['0-a-', 'http://a']]],
    [`${'a'.repeat(63)}=http://a`, [['a'.repeat(63), 'http://a']]],
    ['a=HTTP://A/Mcp', [['a', 'HTTP://A/Mcp']]],
    ['a=http://[::1]:80/mcp', [['a', 'http://[::1]:80/mcp']]],
    ['a=http://h/@scope/mcp', [['a', 'http://h/@scope/mcp']]],
  ])('%s', (text, expected) => {
    expect(urlsOf(text)).toEqual(expected);
  });

  test.each<[string, string[][]]>([
    ['a=http://a/mcp?toolsets=core,alerting', [['a', 'http://a/mcp?toolsets=core,alerting']]],
    ['a=http://a/?x=1,y=2,z', [['a', 'http://a/?x=1,y=2,z']]],
    [
      'a=http://a/?x=1,2,b=http://b/?y=3,4',
      [
        ['a', 'http://a/?x=1,2'],
        ['b', 'http://b/?y=3,4'],
      ],
    ],
    [
      'a=http://a/?x=1, b=http://b',
      [
        ['a', 'http://a/?x=1'],
        ['b', 'http://b'],
      ],
    ],
    ['a=http://a/?x,', [['a', 'http://a/?x,']]],
  ])('a comma in a query stays a comma (C17): %s', (text, expected) => {
    expect(urlsOf(text)).toEqual(expected);
  });

  test.each([
    ['http://a', 'http://a', '/'],
    ['http://a/', 'http://a', '/'],
    ['http://a/mcp', 'http://a', '/mcp'],
    ['http://a/b/mcp/', 'http://a', '/b/mcp/'],
    ['http://a:80/mcp', 'http://a', '/mcp'],
    ['https://A.Example:8443/Mcp/../x', 'https://a.example:8443', '/Mcp/../x'],
    ['http://a?x=core,b', 'http://a', '/?x=core,b'],
    ['http://a/m%2fcp?x=%C3%A9&y', 'http://a', '/m%2fcp?x=%C3%A9&y'],
    ['http://[::1]:3000/mcp', 'http://[::1]:3000', '/mcp'],
    ['http://a/x:y@z?u=http://b/c', 'http://a', '/x:y@z?u=http://b/c'],
  ])('%s is at the origin %s under the path %s, to the letter', (url, origin, path) => {
    expect(upstreamsOf(`u=${url}`)).toMatchObject([{ name: 'u', url, origin, path }]);
  });
});

describe('what is wrong with UPSTREAMS is told part by part (C66)', () => {
  test.each([
    ['http://a/mcp', ['part 1, "http://a/mcp", without a name']],
    ['a=http://a,', ['nothing as part 2']],
    ['a=http://a,,b=http://b', ['nothing as part 2']],
    ['=http://a', ['the name ""']],
    ['GitHub=http://a', ['the name "GitHub"']],
    ['-a=http://a', ['the name "-a"']],
    ['a_b=http://a', ['the name "a_b"']],
    ['a =http://a', ['the name "a "']],
    [`${'a'.repeat(64)}=http://a`, [`the name "${'a'.repeat(64)}"`]],
    ['a=http://a,a=http://b', ['the name "a" twice']],
    ['a=', ['for "a" "", which does not begin with http:// or https://']],
    ['a=localhost/mcp', ['for "a" "localhost/mcp", which does not begin with http:// or https://']],
    ['a=h:8080/mcp', ['for "a" "h:8080/mcp", which does not begin with http:// or https://']],
    ['a=ftp://a/x', ['for "a" "ftp://a/x", which does not begin with http:// or https://']],
    ['a=http:/a', ['for "a" "http:/a", which does not begin with http:// or https://']],
    ['a=http://', ['for "a" "http://", which names no host']],
    ['a=http:///mcp', ['for "a" "http:///mcp", which names no host']],
    ['a=http://a:99999/mcp', ['for "a" "http://a:99999/mcp", which is no url']],
    [
      'a=http://a/x y',
      ['for "a" "http://a/x y", which holds a blank, a backslash or a character beyond ASCII'],
    ],
    [
      'a=http://a\\mcp',
      ['for "a" "http://a\\\\mcp", which holds a blank, a backslash or a character beyond ASCII'],
    ],
    ['a=http://a/é', ['for "a" "http://a/é", which holds a blank, a backslash or a character beyond ASCII']],
    ['a=http://a/#frag', ['for "a" "http://a/#…", a url with a fragment']],
    ['a=http://u:p@a/mcp', ['for "a" "http://…@a/mcp", a url with credentials in it']],
    ['a=http://u@a/mcp', ['for "a" "http://…@a/mcp", a url with credentials in it']],
    [
      'A=http://a,b=http://b,c=ws://c?k=1',
      ['the name "A"', 'for "c" "ws://c?k=…", which does not begin with http:// or https://'],
    ],
  ])('%s', (text, expected) => {
    expect(given(text)).toEqual(expected);
  });

  test.each([
    'u=http://user:a,secret=b@h/,v=http://w',
    'u=http://user:a,secret,b=c@h/,v=http://w',
    'u=http:/user:a@b,secret=c@h',
    'http://user:a,secret=b@h',
  ])('a password with a comma in it is no name, and is not shown: %s', (text) => {
    const { faults } = configErrorOf({ UPSTREAMS: text });
    expect(faults).toHaveLength(1);
    expect(JSON.stringify(faults)).not.toContain('secret');
  });

  test('a fault says what is expected, and where credentials belong', () => {
    const { message } = configErrorOf({ UPSTREAMS: 'my-api=https://user:s3cret@api.example/mcp?key=s3cret' });
    expect(message).toBe(
      'UPSTREAMS: given for "my-api" "https://…@api.example/mcp?key=…", a url with credentials in it; ' +
        'expected http:// or https://, a host, and visible ASCII without a fragment; ' +
        'credentials go into UPSTREAM_MY_API_AUTHORIZATION',
    );
  });

  test.each([
    'a=https://user:s3cret@h/mcp',
    'a=https://s3cret@h/mcp',
    'a=https://user:s3cret@h:x/mcp',
    'a=https://user:pa/s3cret@h/mcp',
    'a=https://user:pa?s3cret@h/mcp',
    'a=https://user:pa#s3cret@h/mcp',
    'a=user:s3cret@h/mcp',
    'a=https://user:s3cret,x@h/mcp',
    'a=https//user:s3cret@h/mcp',
    'a=ftp://user:s3cret@h/mcp',
    'a=mailto:user:s3cret@h',
    'a=ftp://h/mcp?key=s3cret&other=s3cret',
    'a=ftp://h/mcp?s3cret',
    'a=http://h/mcp?key=s3cret#s3cret',
    'a=http://h/mcp?key=s3cret é',
    'A=http://h/mcp?key=s3cret',
    'https://user:s3cret@h/mcp?x=1',
    'https://h/mcp?key=s3cret',
    'http://h/mcp#s3cret=1',
    'user:s3cret@h=http://h',
  ])('no credential and no value of a query is shown: %s', (text) => {
    expect(given(text).length).toBeGreaterThan(0);
    expect(configErrorOf({ UPSTREAMS: text }).message).not.toContain('s3cret');
  });
});

describe('variables that mean nothing, or two things (design.md, Configuration)', () => {
  test.each([
    'UPSTREAM_V_TTL_MS',
    'UPSTREAM_U_TTL',
    'UPSTREAM_U_TLL_MS',
    'UPSTREAM_U_',
    'UPSTREAM_U',
    'UPSTREAM_',
    'UPSTREAM_TTL_MS',
    'UPSTREAM_u_TTL_MS',
    'UPSTREAM_TIMEOUTMS',
  ])('%s is a fault', (variable) => {
    expect(configErrorOf({ [variable]: '1' }).faults).toMatchObject([
      { variable, given: 'a variable without meaning', expected: expect.stringContaining('MIN_TTL_MS') },
    ]);
  });

  test('it is one even where it is empty', () => {
    expect(faultyVariables({ UPSTREAM_V_TTL_MS: '' })).toEqual(['UPSTREAM_V_TTL_MS']);
  });

  test('a - in a name is a _ in its variables', () => {
    const env = { UPSTREAMS: 'my-api=http://u', UPSTREAM_MY_API_TTL_MS: '5' };
    expect(configOf(env).upstreams[0]?.policy.defaultTtlMs).toBe(5);
  });

  test.each([
    ['a=http://a,a-min=http://b', 'UPSTREAM_A_MIN_TTL_MS'],
    ['a-min=http://b,a=http://a', 'UPSTREAM_A_MIN_TTL_MS'],
  ])('with %s, %s could mean two things', (UPSTREAMS, variable) => {
    for (const value of ['5', 'abc']) {
      expect(faultyVariables({ UPSTREAMS, [variable]: value })).toContain(variable);
    }
    expect(configErrorOf({ UPSTREAMS, [variable]: '5' }).message).toMatch(/both a(-min)? and a(-min)?;/);
    expect(
      configOf({ UPSTREAMS, UPSTREAM_A_MIN_MIN_TTL_MS: '5' })
        .upstreams.map((u) => u.policy.minTtlMs)
        .sort(),
    ).toEqual([0, 5]);
  });

  test('while it is not set, such names may stand side by side with their own defaults', () => {
    const env = { UPSTREAMS: 'a=http://a,a-min=http://b', CACHE_DEFAULT_TTL_MS: '7' };
    expect(configOf(env).upstreams.map(({ policy }) => [policy.defaultTtlMs, policy.minTtlMs])).toEqual([
      [7, 0],
      [7, 0],
    ]);
  });

  test.each(['b=ftp://b', 'B=http://b', 'http://b', ''])(
    'where UPSTREAMS has the fault %j, they are still told',
    (part) => {
      const env = {
        UPSTREAMS: `a=http://a,${part}`,
        UPSTREAM_A_TTL_MS: '1',
        UPSTREAM_A_TTL: '1',
        UPSTREAM_X_WATCH: 'off',
      };
      expect(faultyVariables(env)).toEqual(['UPSTREAMS', 'UPSTREAM_A_TTL', 'UPSTREAM_X_WATCH']);
    },
  );

  test('a name that can be read explains its variables, whatever is wrong with its url', () => {
    const env = { UPSTREAMS: 'a=ftp://a,a=http://a', UPSTREAM_A_TTL_MS: '1', UPSTREAM_A_WATCH: 'flase' };
    expect(faultyVariables(env)).toEqual(['UPSTREAMS', 'UPSTREAMS', 'UPSTREAM_A_WATCH']);
  });
});

describe('a url as it may be shown', () => {
  test.each([
    ['http://a/mcp', 'http://a/mcp'],
    ['http://a/mcp?', 'http://a/mcp?…'],
    ['http://a/mcp?k=v&w&x=', 'http://a/mcp?k=…&…&x=…'],
    ['http://a/mcp?k=v?w=x', 'http://a/mcp?k=…'],
    ['http://a/mcp?u=http://b/?k=v', 'http://a/mcp?u=…'],
    ['http://a/@x/mcp', 'http://a/@x/mcp'],
    ['http://u:p@a/@x', 'http://…@a/@x'],
    ['http://u@p@a/', 'http://…@a/'],
  ])('%s is shown as %s', (url, shown) => {
    expect(maskUrl(url)).toBe(shown);
  });
});
