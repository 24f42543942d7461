import { describe, expect, test } from 'vitest';
import { SETTINGS, type Setting, UPSTREAM_SETTINGS } from '../src/config-table.js';
import { ALL_SETTINGS, configErrorOf, configOf, faultyVariables, resolvedOf } from './support/config.js';

/** design.md section 2; `null` where the default is none, or is worked out. */
const DEFAULTS: Readonly<Record<string, string | null>> = {
  UPSTREAMS: null,
  HOST: '127.0.0.1',
  PORT: '8080',
  ADMIN_HOST: '127.0.0.1',
  ADMIN_PORT: '9090',
  ADMIN_TOKEN: null,
  REDIS_URL: null,
  REDIS_KEY_PREFIX: 'mcg',
  CACHE_MAX_BYTES: '268435456',
  CACHE_MAX_ENTRY_BYTES: '16777216',
  CACHE_MAX_TTL_MS: '86400000',
  CACHE_DEFAULT_TTL_MS: '0',
  CACHE_DEFAULT_SCOPE: 'public',
  STALE_IF_ERROR_MS: '300000',
  SNAPSHOT_MAX_PAGES: '1000',
  SNAPSHOT_MAX_ITEMS: '100000',
  PAGE_SIZE: '0',
  LIST_CHANGED_FLUSH: 'upstream',
  PUBLIC_SHARING: 'any',
  VERIFIED_TTL_MS: '300000',
  AUTH_HEADERS: 'authorization,cookie,x-api-key',
  VARY_HEADERS: null,
  ALLOWED_ORIGINS: 'loopback',
  ALLOWED_HOSTS: null,
  UPSTREAM_TIMEOUT_MS: '30000',
  MAX_BODY_BYTES: '4194304',
  SHUTDOWN_GRACE_MS: '10000',
  OAUTH_METADATA: 'relay',
  PUBLIC_URL: null,
  LOG_LEVEL: 'info',
  LOG_PRETTY: 'false',
};

const PER_UPSTREAM: Readonly<Record<string, string | null>> = {
  AUTHORIZATION: null,
  HEADERS: null,
  TTL_MS: 'CACHE_DEFAULT_TTL_MS',
  MIN_TTL_MS: '0',
  SCOPE: 'auto',
  TIMEOUT_MS: 'UPSTREAM_TIMEOUT_MS',
  WATCH: 'auto',
};

describe('defaults (design.md, Configuration)', () => {
  test.each(SETTINGS)('$name has the default of the design', (setting: Setting) => {
    expect(setting.default ?? null).toBe(DEFAULTS[setting.name]);
  });

  test.each(UPSTREAM_SETTINGS)('UPSTREAM_<NAME>_$name has the default of the design', (setting: Setting) => {
    expect(setting.default ?? null).toBe(PER_UPSTREAM[setting.name]);
  });

  test('nothing but UPSTREAMS is required', () => {
    expect(configOf()).toMatchObject({
      host: '127.0.0.1',
      port: 8080,
      adminPort: 9090,
      cacheMaxBytes: 268_435_456,
    });
    expect(configErrorOf({ UPSTREAMS: undefined }).faults).toMatchObject([
      { variable: 'UPSTREAMS', given: 'nothing' },
    ]);
  });

  test('an upstream inherits what is set for all', () => {
    const [inherits, has] = configOf({
      UPSTREAMS: 'a=http://a,b=http://b',
      CACHE_DEFAULT_TTL_MS: '5000',
      UPSTREAM_TIMEOUT_MS: '700',
      CACHE_MAX_TTL_MS: '9000',
      CACHE_DEFAULT_SCOPE: 'private',
      UPSTREAM_B_TTL_MS: '0',
      UPSTREAM_B_TIMEOUT_MS: '1',
      UPSTREAM_B_MIN_TTL_MS: '3',
      UPSTREAM_B_SCOPE: 'public',
      UPSTREAM_B_WATCH: 'off',
    }).upstreams;
    const common = { maxTtlMs: 9_000, defaultScope: 'private' };
    expect(inherits).toMatchObject({ timeoutMs: 700, watch: 'auto', authorization: undefined, headers: {} });
    expect(inherits?.policy).toEqual({ ...common, defaultTtlMs: 5_000, minTtlMs: 0, scope: 'auto' });
    expect(has).toMatchObject({ timeoutMs: 1, watch: 'off' });
    expect(has?.policy).toEqual({ ...common, defaultTtlMs: 0, minTtlMs: 3, scope: 'public' });
  });

  test('the configuration cannot be changed', () => {
    expect(Object.isFrozen(configOf())).toBe(true);
  });

  test('variables that are not the gateway’s are left alone', () => {
    expect(
      configOf({ PATH: '/bin', UPSTREAMSX: 'x', MY_UPSTREAM_A: 'y', UPSTREAM_GONE: undefined }).port,
    ).toBe(8080);
  });
});

describe('faults are told (design.md, Configuration)', () => {
  test('all at once, each with its variable, what was given and what is expected', () => {
    const error = configErrorOf({
      UPSTREAMS: 'a=http://a,B=http://b,c=ftp://c',
      PORT: '70000',
      CACHE_DEFAULT_SCOPE: 'shared',
      AUTH_HEADERS: '',
      UPSTREAM_A_TTL_MS: '1s',
      UPSTREAM_C_WATCH: 'on',
      UPSTREAM_D_TTL_MS: '1',
    });
    expect(error.faults.map(({ variable }) => variable).sort()).toEqual([
      'AUTH_HEADERS',
      'CACHE_DEFAULT_SCOPE',
      'PORT',
      'UPSTREAMS',
      'UPSTREAMS',
      'UPSTREAM_A_TTL_MS',
      'UPSTREAM_C_WATCH',
      'UPSTREAM_D_TTL_MS',
    ]);
    const lines = error.message.split('\n');
    expect(lines).toHaveLength(error.faults.length);
    expect(lines).toContain('PORT: given "70000"; expected a whole number from 0 to 65535, in digits');
    expect(lines).toContain('CACHE_DEFAULT_SCOPE: given "shared"; expected one of public, private');
  });

  test.each([
    ['HOST', 'a host', { HOST: 'a b' }],
    ['UPSTREAM_U_AUTHORIZATION', 'a line end', { UPSTREAM_U_AUTHORIZATION: 'Bearer s3cret\n' }],
    ['UPSTREAM_U_AUTHORIZATION', 'letters beyond ASCII', { UPSTREAM_U_AUTHORIZATION: 'Bearer s3cret é' }],
    ['UPSTREAM_U_AUTHORIZATION', 'blanks at its end', { UPSTREAM_U_AUTHORIZATION: 'Bearer s3cret ' }],
    ['UPSTREAM_U_HEADERS', 'no JSON', { UPSTREAM_U_HEADERS: '{"x-api-key":"s3cret"' }],
    ['UPSTREAM_U_HEADERS', 'a list', { UPSTREAM_U_HEADERS: '["x-api-key: s3cret"]' }],
    ['UPSTREAM_U_HEADERS', 'a bad value', { UPSTREAM_U_HEADERS: '{"x-api-key":"s3cret\\n"}' }],
    ['UPSTREAM_U_HEADERS', 'a bad name', { UPSTREAM_U_HEADERS: '{"x-api-key: s3cret":"x"}' }],
    ['AUTH_HEADERS', 'a value beside the name', { AUTH_HEADERS: 'Authorization: Bearer s3cret' }],
    [
      'UPSTREAM_X_AUTHORIZATION',
      'an upstream that is not there',
      { UPSTREAM_X_AUTHORIZATION: 'Bearer s3cret' },
    ],
  ])('%s with %s, and never its secret', (variable, _what, env) => {
    expect(faultyVariables(env)).toEqual([variable]);
    expect(configErrorOf(env).message).not.toContain('s3cret');
  });

  test('an empty value is one, and the way to the default is told', () => {
    for (const { name, kind } of ALL_SETTINGS) {
      if (kind.type === 'upstreams') continue;
      expect(configErrorOf({ [name]: '' }).message).toMatch(/: given an empty value; .*; leave it unset/);
    }
  });

  test('a long value is shortened', () => {
    expect(configErrorOf({ PORT: '9'.repeat(10_000) }).message.length).toBeLessThan(300);
  });
});

describe('the resolved configuration (--check)', () => {
  const env = {
    UPSTREAMS: 'u=https://u.example/mcp?key=s3cret&mode=s3cret',
    UPSTREAM_U_AUTHORIZATION: 'Bearer s3cret',
    UPSTREAM_U_HEADERS: '{"X-Api-Key":"s3cret"}',
    PORT: '8081',
  };

  test('every variable is told with its value, secrets masked', () => {
    const resolved = resolvedOf(env);
    expect(resolved.map(({ variable }) => variable).sort()).toEqual(
      ALL_SETTINGS.map(({ name }) => name).sort(),
    );
    expect(JSON.stringify(resolved)).not.toContain('s3cret');
    expect(resolved).toContainEqual({
      variable: 'UPSTREAMS',
      value: 'u=https://u.example/mcp?key=…&mode=…',
      isDefault: false,
    });
    expect(resolved).toContainEqual({
      variable: 'UPSTREAM_U_AUTHORIZATION',
      value: '(set, hidden)',
      isDefault: false,
    });
    expect(resolved).toContainEqual({
      variable: 'UPSTREAM_U_HEADERS',
      value: 'x-api-key (values hidden)',
      isDefault: false,
    });
    expect(resolved).toContainEqual({ variable: 'PORT', value: '8081', isDefault: false });
    expect(resolved).toContainEqual({ variable: 'HOST', value: '127.0.0.1', isDefault: true });
  });

  test('what is inherited is told as such', () => {
    const resolved = resolvedOf({ CACHE_DEFAULT_TTL_MS: '5' });
    expect(resolved).toContainEqual({ variable: 'UPSTREAM_U_TTL_MS', value: '5', isDefault: true });
    expect(resolved).toContainEqual({
      variable: 'UPSTREAM_U_AUTHORIZATION',
      value: '(none)',
      isDefault: true,
    });
  });
});
