import { describe, expect, test } from 'vitest';
import { type CacheStatus, formatCacheStatus, wholeSeconds } from '../../src/core/cache-status.js';
import { BYPASS_REASONS, NOT_STORED_REASONS } from '../../src/core/reasons.js';
import { ERRORS } from '../../src/errors.js';

describe('Cache-Status (RFC 9211; design.md, Response headers)', () => {
  test.each<[CacheStatus, string]>([
    [{ hit: true, remainingMs: 59_999 }, 'mcp-cache-gateway; hit; ttl=59'],
    [{ hit: true, remainingMs: 1 }, 'mcp-cache-gateway; hit; ttl=0'],
    [{ fwd: 'miss', stored: true, remainingMs: 60_000 }, 'mcp-cache-gateway; fwd=miss; stored; ttl=60'],
    [{ fwd: 'miss', stored: true, collapsed: true }, 'mcp-cache-gateway; fwd=miss; stored; collapsed'],
    [{ fwd: 'stale', detail: 'upstream-timeout' }, 'mcp-cache-gateway; fwd=stale; detail=upstream-timeout'],
    [{ fwd: 'bypass', detail: 'has-cursor' }, 'mcp-cache-gateway; fwd=bypass; detail=has-cursor'],
    [{ fwd: 'miss', detail: 'zero-lifetime' }, 'mcp-cache-gateway; fwd=miss; detail=zero-lifetime'],
    [{ hit: false, stored: false, collapsed: false }, 'mcp-cache-gateway'],
  ])('%j is printed as %s', (status, value) => {
    expect(formatCacheStatus(status)).toBe(value);
  });

  test('every word that it can carry is a token of a structured field (RFC 8941)', () => {
    for (const word of [...BYPASS_REASONS, ...NOT_STORED_REASONS, ...Object.keys(ERRORS)]) {
      expect(word).toMatch(/^[a-z][a-z-]*$/);
    }
  });

  test('no word has two meanings', () => {
    const words = [...BYPASS_REASONS, ...NOT_STORED_REASONS, ...Object.keys(ERRORS)];
    expect(new Set(words).size).toBe(words.length);
  });
});

test.each([
  [0, 0],
  [999, 0],
  [999.9, 0],
  [1_000, 1],
  [59_999, 59],
])('%d ms are %d whole seconds', (ms, seconds) => {
  expect(wholeSeconds(ms)).toBe(seconds);
});
