/** The environment: a configuration, or every fault at once, and never a secret (design, section 2). */
import { describe, expect, test } from 'vitest';
import { type Config, ConfigError, type Environment, parseConfig, type Resolved } from '../../src/config.js';
import { SETTINGS, UPSTREAM_SETTINGS, upstreamVariable } from '../../src/config-table.js';
import { parseRedisUrl } from '../../src/core/redis-url.js';
import { FIELD_VALUES } from './corpus.js';
import type { Random } from './random.js';
import { fuzz, TIMEOUT_MS } from './runs.js';
import { expectSame } from './same.js';

/** What must never be shown, wherever it stands. */
const SECRET = 's3cr3t';

/** Good values, and bad ones, by variable. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  UPSTREAMS: [
    'u=http://u.example/mcp',
    'u=https://h/a?b=c,d,a=http://[::1]:1/',
    ' u=http://x , a-b=HTTP://Y ',
    'http://x',
    'u=http://x#f,',
  ],
  HOST: ['127.0.0.1', '::', 'a b', '\u0000'],
  PORT: ['0', '65536', '1e3', '-1', ' 80', '٣', '00'],
  ADMIN_TOKEN: [SECRET, `${SECRET}  x`, `\t${SECRET}`],
  REDIS_URL: [
    `redis://:${SECRET}@h/1`,
    `rediss-sentinel://u:${SECRET}@a,b:1/m/2`,
    `redis-cluster://${SECRET}%zz@[::1]:0`,
    `redis://x:${SECRET}@`,
  ],
  REDIS_KEY_PREFIX: ['mcg', 'x'.repeat(65), '{a}'],
  CACHE_MAX_BYTES: ['0', '68719476737', '9'.repeat(400), '0x10'],
  CACHE_DEFAULT_SCOPE: ['public', 'Private', '__proto__'],
  AUTH_HEADERS: ['authorization, X-Key,x-key', 'a b', ',', '__proto__'],
  ALLOWED_ORIGINS: ['*', 'https://a.example, loopback', 'null', 'https://a/b'],
  ALLOWED_HOSTS: ['A.example,[::1]', '*', 'a:80'],
  LOG_PRETTY: ['YES', 'on', '0'],
  LOG_LEVEL: ['debug', 'constructor'],
  OAUTH_METADATA: ['rewrite', 'relay'],
  PUBLIC_URL: ['https://g.example/x/', 'https://g?x', 'g'],
  UPSTREAM_U_AUTHORIZATION: [`Bearer ${SECRET}`, `Bearer\n${SECRET}`],
  UPSTREAM_U_HEADERS: [
    `{"x-key":"${SECRET}"}`,
    `{"x-key":"${SECRET}","X-KEY":"${SECRET}é"}`,
    `{"__proto__":"${SECRET}"}`,
    `{"x": ["${SECRET}"]}`,
    `"${SECRET}"`,
  ],
  UPSTREAM_U_TTL_MS: ['1', '31536000001'],
  UPSTREAM_U_WATCH: ['off', 'OFF'],
  UPSTREAM_A_MIN_TTL_MS: ['5'],
  UPSTREAM_TIMEOUT_MS: ['0', '2147483648'],
  UPSTREAM_: ['x'],
};
const VARIABLES = Object.keys(VALUES);

const CORPUS = [
  ...Object.values(VALUES)
    .flat()
    .map((text) => Buffer.from(text)),
  ...FIELD_VALUES,
];

type Read =
  | { readonly config: Config; readonly resolved: readonly Resolved[] }
  | { readonly error: ConfigError };

function read(env: Environment): Read {
  try {
    return parseConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return { error };
    throw error;
  }
}

/** All that an operator is shown. */
function shown(result: Read): string {
  if (!('error' in result)) return JSON.stringify(result.resolved);
  return result.error.message + JSON.stringify(result.error.faults);
}

/** Faulty values beside which others are shown. */
function environment(random: Random): Record<string, string> {
  const env: Record<string, string> = { UPSTREAMS: 'u=http://u.example/mcp' };
  for (let count = random.below(4); count > 0; count -= 1) {
    const variable = random.pick(VARIABLES);
    env[variable] = random.pick(VALUES[variable] ?? ['']);
  }
  return env;
}

function expectSound(result: Read): void {
  if ('error' in result) {
    expect(result.error.faults.length).toBeGreaterThan(0);
    for (const { variable, given, expected } of result.error.faults) {
      expect([variable, given, expected]).not.toContain('');
      expect(`${variable}${given}${expected}`).not.toMatch(/undefined|NaN|\[object/);
    }
    return;
  }
  const { config, resolved } = result;
  expect(Object.isFrozen(config)).toBe(true);
  expectSame(resolved.length, SETTINGS.length + config.upstreams.length * UPSTREAM_SETTINGS.length);
  for (const value of Object.values(config))
    if (typeof value === 'number') expect(Number.isSafeInteger(value)).toBe(true);
  expect(config.upstreams.length).toBeGreaterThan(0);
  for (const { name, url, origin, path, headers } of config.upstreams) {
    expect(name).toMatch(/^[a-z0-9][a-z0-9-]{0,62}$/);
    expect(new URL(url).origin).toBe(origin);
    expect(path).toMatch(/^\/[\x21-\x7e]*$/);
    for (const pair of Object.entries(headers)) new Headers([pair]);
  }
}

describe('the environment', { timeout: TIMEOUT_MS }, () => {
  test('with any text in any variable gives a configuration or every fault, and nothing else', () => {
    fuzz({ name: 'environment', corpus: CORPUS, runs: 7_500 }, (bytes, random) => {
      const text = bytes.toString(random.pick(['utf8', 'latin1']));
      expectSound(read({ ...environment(random), [random.pick(VARIABLES)]: text }));
    });
  });

  test('with any name of a variable is read in the same way', () => {
    const corpus = [...VARIABLES, upstreamVariable('u', 'SCOPE'), '__proto__', 'UPSTREAM_U_', ''].map(
      (text) => Buffer.from(text),
    );
    fuzz({ name: 'variables', corpus, runs: 3_000 }, (bytes, random) => {
      const name = bytes.toString('utf8');
      const result = read(Object.fromEntries([...Object.entries(environment(random)), [name, 'x']]));
      expectSound(result);
      const isKnown =
        SETTINGS.some((setting) => setting.name === name) || /^UPSTREAM_(U|A|A_B)_[A-Z_]+$/.test(name);
      if (name.startsWith('UPSTREAM_') && !isKnown)
        expect('error' in result && shown(result)).toContain(name);
    });
  });
});

describe('a secret', { timeout: TIMEOUT_MS }, () => {
  const IN_CREDENTIALS = /^[^/?#:]*:\/{0,3}[^/?#]*s3cr3t[^/?#]*@/;
  /** What surrounds it may be anything but the place that makes it one. */
  const PLACES: readonly [string, string, RegExp][] = [
    ['ADMIN_TOKEN', SECRET, /./],
    ['UPSTREAM_U_AUTHORIZATION', `Bearer ${SECRET}`, /./],
    ['UPSTREAM_U_HEADERS', `{"x-a":"b","x-key":"${SECRET}"}`, /:\s*"s3cr3t/],
    ['REDIS_URL', `redis://user:${SECRET}@h:1/1`, /s3cr3t[^/]*@/],
    ['UPSTREAMS', `u=http://user:${SECRET}@h/`, IN_CREDENTIALS],
    ['UPSTREAMS', `u=http://user:a,b${SECRET}=c,d@h/,v=http://w`, IN_CREDENTIALS],
    ['UPSTREAMS', `u=http://h/?a=b&key=${SECRET}&c,v=http://w`, /\?[^#=]*=s3cr3t/],
  ];

  test.each(PLACES)('in %s (%s) is never shown, whatever is wrong around it', (variable, good, place) => {
    fuzz({ name: `secret ${good}`, corpus: [Buffer.from(good)], runs: 3_000 }, (bytes, random) => {
      const text = bytes.toString('utf8');
      if (!place.test(text) || text.split(SECRET).length !== 2) return;
      const result = read({
        ...environment(random),
        ADMIN_TOKEN: 'x',
        [variable]: text,
        PORT: random.pick(['1', 'x']),
      });
      expectSound(result);
      expect(shown(result)).not.toContain(SECRET);
    });
  });
});

describe('the address of a Redis', { timeout: TIMEOUT_MS }, () => {
  test('of whatever text is none, or one that can be connected to', () => {
    const corpus = [...(VALUES.REDIS_URL ?? []), 'redis://h', 'redis://a:1,b', 'redis+tls://h'].map((text) =>
      Buffer.from(text),
    );
    fuzz({ name: 'redis url', corpus, runs: 10_000 }, (bytes) => {
      const address = parseRedisUrl(bytes.toString('utf8'));
      if (address === undefined) return;
      expect(address.nodes.length).toBeGreaterThan(0);
      for (const { host, port } of address.nodes) {
        expect(host).toMatch(/^[\w.:-]+$/);
        expect(port > 0 && port <= 65_535).toBe(true);
      }
      expect(address.db >= 0 && address.db <= 9_999).toBe(true);
      expect(address.kind === 'sentinel').toBe(address.master !== undefined);
    });
  });
});
