/**
 * Owns: what is remembered of keys beside their entries: the scope they last had, whether they proved
 * uncacheable, whether their upstream failed (design, laws 10, 16 and 17). Each memory is bounded.
 */
import type { Clock } from '../clock.js';
import type { Scope } from '../core/freshness.js';
import type { CacheKeys } from '../core/key.js';
import type { NotStoredReason } from '../core/reasons.js';
import { createBackoff } from './backoff.js';
import { createBounded } from './bounded.js';
import type { FirstPage } from './fetch-task.js';
import { createUncacheable, type Mark } from './uncacheable.js';

/** How many keys' last scopes are remembered. */
const MAX_SCOPES = 10_000;

export interface Memory {
  /** The mark of what a caller asks for, if that proved uncacheable. */
  markOf(keys: CacheKeys): Mark | undefined;
  /** `first` tells of the list's first page, where it was to be walked: a public list is the same for all. */
  mark(keys: CacheKeys, reason: NotStoredReason, first?: FirstPage): void;
  /** The scope that the results under a shared key last had. */
  scopeOf(sharedKey: string): Scope | undefined;
  sawScope(keys: CacheKeys, scope: Scope): void;
  /** A result was stored after all. */
  stored(keys: CacheKeys, scope: Scope): void;
  /** The upstream failed, for all who share the key where it was last public; `retryAfterMs` is what it asked for. */
  failed(keys: CacheKeys, retryAfterMs?: number): void;
  /** The upstream could not be reached, whoever asks. */
  unreachable(keys: CacheKeys): void;
  /** The upstream answered. */
  answered(keys: CacheKeys): void;
  /** Whether the upstream is not to be asked yet, where a stale entry can answer. */
  isBackingOff(keys: CacheKeys): boolean;
}

/** `random` gives a number from 0 up to, and without, 1. */
export function createMemory(clock: Clock, random: () => number): Memory {
  const uncacheable = createUncacheable(clock);
  const backoff = createBackoff(clock, random);
  const scopes = createBounded<Scope>(MAX_SCOPES);
  return {
    markOf({ own, shared }) {
      const mark = uncacheable.get(own);
      return mark === undefined || mark === 'wait' ? (uncacheable.get(shared) ?? mark) : mark;
    },
    mark(keys, reason, first) {
      uncacheable.mark(first?.scope === 'public' ? keys.shared : keys.own, reason, first?.hasMore ?? false);
    },
    scopeOf: (sharedKey) => scopes.get(sharedKey),
    sawScope(keys, scope) {
      scopes.set(keys.shared, scope);
    },
    stored(keys, scope) {
      uncacheable.clear(keys.own);
      if (scope === 'public') uncacheable.clear(keys.shared);
    },
    failed(keys, retryAfterMs) {
      const isShared = scopes.get(keys.shared) === 'public';
      backoff.failed(isShared ? keys.shared : keys.own, retryAfterMs);
    },
    unreachable: (keys) => backoff.failed(keys.shared),
    answered(keys) {
      backoff.succeeded(keys.own);
      backoff.succeeded(keys.shared);
    },
    isBackingOff: (keys) => backoff.isWaiting(keys.shared) || backoff.isWaiting(keys.own),
  };
}
