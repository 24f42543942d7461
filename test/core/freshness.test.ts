import { describe, expect, test } from 'vitest';
import { type FreshnessPolicy, grant, isFresh, remainingMs, type Scope } from '../../src/core/freshness.js';
import { DEFAULT_POLICY, hintsOf } from '../support/core.js';

const lifetime = (ttlMs: { readonly ttlMs?: unknown }, policy: Partial<FreshnessPolicy> = {}) =>
  grant(hintsOf(ttlMs), { ...DEFAULT_POLICY, ...policy }).lifetimeMs;
const scope = (sent: { ttlMs?: unknown; cacheScope?: unknown }, policy: Partial<FreshnessPolicy> = {}) =>
  grant(hintsOf(sent), { ...DEFAULT_POLICY, ...policy }).scope;
/** As a reply carries it: JSON has values that no literal of JavaScript has. */
const sentAs = (json: string) => ({ ttlMs: JSON.parse(json) });

describe('the freshness lifetime (law 5)', () => {
  test.each([
    ['60000', 60_000],
    ['1', 1],
    ['1.0', 1],
    ['1.9', 1],
    ['59999.999', 59_999],
    ['6e4', 60_000],
    ['86400000', 86_400_000],
    ['86400001', 86_400_000],
    ['9007199254740993', 86_400_000],
    ['1e300', 86_400_000],
    ['1.7976931348623157e308', 86_400_000],
    ['0', 0],
    ['0.0', 0],
    ['-0', 0],
    ['-0.0', 0],
    ['0.5', 0],
    ['0.9999999', 0],
    ['5e-324', 0],
    ['-0.5', 0],
    ['-1', 0],
    ['-60000', 0],
    ['-9e15', 0],
    ['-1e999', 0],
    ['1e999', 0],
    ['null', 0],
    ['true', 0],
    ['"60000"', 0],
    ['""', 0],
    ['"Infinity"', 0],
    ['[60000]', 0],
    ['{}', 0],
    ['{"valueOf":60000}', 0],
  ])('ttlMs %s grants %d ms', (json, expected) => {
    expect(lifetime(sentAs(json))).toBe(expected);
  });

  test('an absent ttlMs grants nothing unless a default is set', () => {
    expect(lifetime({})).toBe(0);
    expect(lifetime({}, { defaultTtlMs: 5_000 })).toBe(5_000);
  });

  test.each(['0', '-1', 'null', '"60000"', '1e999', '0.5'])(
    'a default does not replace a sent %s',
    (json) => {
      expect(lifetime(sentAs(json), { defaultTtlMs: 5_000 })).toBe(0);
    },
  );

  test.each(['0', '-1', 'null', '"60000"', '1e999', '-0', '4999'])('the floor raises a sent %s', (json) => {
    expect(lifetime(sentAs(json), { minTtlMs: 5_000 })).toBe(5_000);
  });

  test('the floor raises an absent ttlMs and a default, and nothing above it', () => {
    expect(lifetime({}, { minTtlMs: 5_000 })).toBe(5_000);
    expect(lifetime({}, { minTtlMs: 5_000, defaultTtlMs: 1_000 })).toBe(5_000);
    expect(lifetime({}, { minTtlMs: 5_000, defaultTtlMs: 6_000 })).toBe(6_000);
    expect(lifetime({ ttlMs: 60_000 }, { minTtlMs: 5_000 })).toBe(60_000);
  });

  test('the ceiling cuts hint, default and floor', () => {
    const policy = { maxTtlMs: 2_000 };
    expect(lifetime({ ttlMs: 60_000 }, policy)).toBe(2_000);
    expect(lifetime({}, { ...policy, defaultTtlMs: 60_000 })).toBe(2_000);
    expect(lifetime({ ttlMs: 0 }, { ...policy, minTtlMs: 60_000 })).toBe(2_000);
    expect(lifetime({ ttlMs: 60_000 }, { maxTtlMs: 0 })).toBe(0);
  });
});

describe('the scope (law 7)', () => {
  const TTL = { ttlMs: 60_000 };

  test.each([
    ['public', 'public'],
    ['private', 'private'],
    ['PUBLIC', 'private'],
    ['Public', 'private'],
    ['public ', 'private'],
    ['shared', 'private'],
    ['', 'private'],
    [null, 'private'],
    [true, 'private'],
    [0, 'private'],
    [['public'], 'private'],
    [{ toString: 'public' }, 'private'],
  ])('cacheScope %j is %s', (cacheScope, expected) => {
    for (const defaultScope of ['public', 'private'] as const) {
      expect(scope({ ...TTL, cacheScope }, { defaultScope })).toBe(expected);
    }
  });

  test.each<Scope>(['public', 'private'])(
    'absent beside a ttlMs, it is CACHE_DEFAULT_SCOPE: %s',
    (defaultScope) => {
      expect(scope(TTL, { defaultScope })).toBe(defaultScope);
    },
  );

  test('absent where the lifetime is a default of ours, it is private', () => {
    expect(scope({}, { defaultTtlMs: 60_000, defaultScope: 'public' })).toBe('private');
  });

  test.each([0, 4_999, null, '60000'])(
    'absent where the lifetime is a floor over %j, it is private',
    (ttlMs) => {
      expect(scope({ ttlMs }, { minTtlMs: 5_000, defaultScope: 'public' })).toBe('private');
    },
  );

  test('absent where the floor did nothing, it is CACHE_DEFAULT_SCOPE', () => {
    expect(scope({ ttlMs: 5_000 }, { minTtlMs: 5_000, defaultScope: 'public' })).toBe('public');
    expect(scope({ ttlMs: 5_001 }, { minTtlMs: 5_000, defaultScope: 'public' })).toBe('public');
    expect(scope(TTL, { maxTtlMs: 1_000, defaultScope: 'public' })).toBe('public');
  });

  test('UPSTREAM_<NAME>_SCOPE=private makes everything private', () => {
    for (const sent of [{ ...TTL, cacheScope: 'public' }, TTL, {}]) {
      expect(scope(sent, { scope: 'private', defaultTtlMs: 1 })).toBe('private');
    }
  });

  test('UPSTREAM_<NAME>_SCOPE=public makes results without a hint public, floors and defaults included', () => {
    const policy = { scope: 'public', defaultScope: 'private', defaultTtlMs: 1_000 } as const;
    for (const sent of [TTL, {}, { ttlMs: 0 }]) expect(scope(sent, policy)).toBe('public');
    expect(scope({ ttlMs: 0 }, { ...policy, minTtlMs: 5_000 })).toBe('public');
  });

  test.each(['private', 'nonsense', null])('nothing makes a sent %j public', (cacheScope) => {
    const policy = { scope: 'public', defaultScope: 'public', minTtlMs: 5_000 } as const;
    expect(scope({ ...TTL, cacheScope }, policy)).toBe('private');
  });

  test('a sent public stays public under a floor', () => {
    expect(scope({ ttlMs: 0, cacheScope: 'public' }, { minTtlMs: 5_000 })).toBe('public');
  });
});

describe('fresh and stale (RFC 9111, server/utilities/caching; law 12)', () => {
  const entry = { expiresAt: 2_000 };

  test.each([
    [1_000, true, 1_000],
    [1_000.4, true, 999],
    [1_998.9, true, 1],
    [1_999, true, 1],
    [1_999.5, false, 0],
    [2_000, false, 0],
    [2_000.1, false, 0],
    [90_000, false, 0],
  ])('at %d fresh is %s with %d whole milliseconds left', (now, fresh, left) => {
    expect(isFresh(entry, now)).toBe(fresh);
    expect(remainingMs(entry, now)).toBe(left);
  });
});
