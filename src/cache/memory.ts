/**
 * Owns: what is remembered of keys beside their entries: the scope they last had, whether they proved
 * uncacheable, whether their upstream failed (design, laws 10, 16 and 17). Each memory is bounded.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../clock.js';
import type { Scope } from '../core/freshness.js';
import type { CacheKeys } from '../core/key.js';
import type { NotStoredReason } from '../core/reasons.js';
import { createBackoff } from './backoff.js';
import { createUncacheable, type Mark } from './uncacheable.js';

/** How many keys' last scopes are remembered. */
const MAX_SCOPES = 10_000;

export interface Memory {
  /** The mark of a caller's own key, if it proved uncacheable. */
  markOf(ownKey: string): Mark | undefined;
  mark(ownKey: string, reason: NotStoredReason): void;
  /** The scope that the results under a shared key last had. */
  scopeOf(sharedKey: string): Scope | undefined;
  sawScope(keys: CacheKeys, scope: Scope): void;
  /** A result was stored after all. */
  stored(keys: CacheKeys): void;
  /** A fetch failed for a key; `retryAfterMs` is what the upstream asked for. */
  failed(key: string, retryAfterMs?: number): void;
  /** The upstream answered. */
  answered(keys: CacheKeys): void;
  /** Whether the upstream is not to be asked yet, where a stale entry can answer. */
  isBackingOff(keys: CacheKeys): boolean;
}

/** `random` gives a number from 0 up to, and without, 1. */
export function createMemory(clock: Clock, random: () => number): Memory {
  const uncacheable = createUncacheable(clock);
  const backoff = createBackoff(clock, random);
  const scopes = new LRUCache<string, Scope>({ max: MAX_SCOPES });
  return {
    markOf: (ownKey) => uncacheable.get(ownKey),
    mark: (ownKey, reason) => uncacheable.mark(ownKey, reason),
    scopeOf: (sharedKey) => scopes.get(sharedKey),
    sawScope(keys, scope) {
      scopes.set(keys.shared, scope);
    },
    stored(keys) {
      uncacheable.clear(keys.own);
    },
    failed: (key, retryAfterMs) => backoff.failed(key, retryAfterMs),
    answered(keys) {
      backoff.succeeded(keys.own);
      backoff.succeeded(keys.shared);
    },
    isBackingOff: (keys) => backoff.isWaiting(keys.shared) || backoff.isWaiting(keys.own),
  };
}
