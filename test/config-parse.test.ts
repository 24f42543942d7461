/** Which values of a setting are good, by its kind (C66). */
import { describe, expect, test } from 'vitest';
import { ALL_SETTINGS, configErrorOf, configOf, faultyVariables, resolvedOf } from './support/config.js';

const INTEGERS = ALL_SETTINGS.flatMap(({ name, kind }) =>
  kind.type === 'integer' ? [{ name, ...kind }] : [],
);
const CHOICES = ALL_SETTINGS.flatMap(({ name, kind }) =>
  kind.type === 'choice' ? [{ name, of: kind.of }] : [],
);

describe.each(INTEGERS)('the number $name (C66)', ({ name, min, max }) => {
  test.each([
    'abc',
    '',
    '   ',
    '-1',
    '1e3',
    '10s',
    '99999999999',
    '1.5',
    '+1',
    ' 1',
    '0x10',
    '1_000',
    '１',
    'Infinity',
  ])('%j is a fault', (given) => {
    expect(faultyVariables({ [name]: given })).toEqual([name]);
  });

  test('its bounds are good, and what is beyond them is a fault', () => {
    expect(resolvedOf({ [name]: String(min) })).toContainEqual({
      variable: name,
      value: String(min),
      isDefault: false,
    });
    expect(resolvedOf({ [name]: String(max) })).toContainEqual({
      variable: name,
      value: String(max),
      isDefault: false,
    });
    expect(faultyVariables({ [name]: String(max + 1) })).toEqual([name]);
    if (min > 0) expect(faultyVariables({ [name]: String(min - 1) })).toEqual([name]);
  });
});

describe.each(CHOICES)('the choice $name (C66)', ({ name, of }) => {
  test.each(['', ' ', 'flase', 'Public', 'AUTO', 'no', ' auto', of.join(',')])('%j is a fault', (given) => {
    expect(faultyVariables({ [name]: given })).toEqual([name]);
  });

  test.each(of)('%s is good', (given) => {
    const env = { PUBLIC_URL: 'https://gw.example', [name]: given };
    expect(resolvedOf(env)).toContainEqual({ variable: name, value: given, isDefault: false });
  });
});

describe('names of headers', () => {
  test('they are taken without regard to case, blanks and doubles', () => {
    const { authHeaders, varyHeaders } = configOf({
      AUTH_HEADERS: 'X-Token, cookie ,x-token',
      VARY_HEADERS: 'X-A',
    });
    expect(authHeaders).toEqual(['x-token', 'cookie']);
    expect(varyHeaders).toEqual(['x-a']);
    expect(configOf()).toMatchObject({
      authHeaders: ['authorization', 'cookie', 'x-api-key'],
      varyHeaders: [],
    });
  });

  test.each(['', ' ', 'a,,b', 'a,', 'x a', 'x:', 'é', '"x"'])('AUTH_HEADERS=%j is a fault', (given) => {
    expect(faultyVariables({ AUTH_HEADERS: given })).toEqual(['AUTH_HEADERS']);
  });
});

describe('headers that are sent upstream', () => {
  const headersOf = (text: string) => configOf({ UPSTREAM_U_HEADERS: text }).upstreams[0]?.headers;

  test('they are a JSON object of names and values', () => {
    expect(headersOf('{"X-Api-Key":"k","x-other":"a b"}')).toEqual({ 'x-api-key': 'k', 'x-other': 'a b' });
    expect(headersOf('{}')).toEqual({});
    expect(Object.keys(headersOf('{"__proto__":"x"}') ?? {})).toEqual(['__proto__']);
  });

  test.each([
    '',
    'x-api-key: k',
    '[]',
    'null',
    '"x"',
    '{"x-a":1}',
    '{"x-a":null}',
    '{"x-a":""}',
    '{"x-a":" k"}',
    '{"x-a":"k\\r\\nx-b: 1"}',
    '{"x-a":"é"}',
    '{"x a":"k"}',
    '{"":"k"}',
    '{"Host":"k"}',
    '{"content-length":"1"}',
    '{"Transfer-Encoding":"chunked"}',
    '{"X-A":"1","x-a":"2"}',
  ])('%s is a fault', (given) => {
    expect(faultyVariables({ UPSTREAM_U_HEADERS: given })).toEqual(['UPSTREAM_U_HEADERS']);
  });

  test('each of several faults is named', () => {
    const { faults } = configErrorOf({ UPSTREAM_U_HEADERS: '{"host":"a","x-good":"b","x bad":"c","x-c":3}' });
    expect(faults.map(({ given }) => given)).toEqual([
      'the header "host"',
      'the header "x…"',
      'for the header "x-c" a value that cannot be sent',
    ]);
  });
});
