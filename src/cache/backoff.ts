/**
 * Owns: when an upstream that failed for a key may be asked for it again while a stale entry can answer (design,
 * law 17): 1 s doubling to 30 s, jittered, or later where the upstream itself said so. Bounded in number.
 */
import type { Clock } from '../clock.js';
import { createBounded } from './bounded.js';

export const FIRST_BACKOFF_MS = 1_000;
export const MAX_BACKOFF_MS = 30_000;
const MAX_KEYS = 10_000;

export interface Backoff {
  /** A fetch failed; `retryAfterMs` is what the upstream asked for. */
  failed(key: string, retryAfterMs?: number): void;
  succeeded(key: string): void;
  /** Whether the upstream is not to be asked yet. */
  isWaiting(key: string): boolean;
}

/** `random` gives a number from 0 up to, and without, 1. */
export function createBackoff(clock: Clock, random: () => number): Backoff {
  const states = createBounded<{ readonly failures: number; readonly until: number }>(MAX_KEYS);
  return {
    failed(key, retryAfterMs = 0) {
      const now = clock.now();
      const last = states.get(key);
      if (last !== undefined && now < last.until) {
        // A fetch that was under way already, or one for a caller without a stale entry: no further failure.
        states.set(key, { ...last, until: Math.max(last.until, now + retryAfterMs) });
        return;
      }
      const failures = (last?.failures ?? 0) + 1;
      const doubled = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (failures - 1));
      states.set(key, { failures, until: now + Math.max(doubled * (0.75 + random() / 4), retryAfterMs) });
    },
    succeeded(key) {
      states.delete(key);
    },
    isWaiting(key) {
      const state = states.get(key);
      return state !== undefined && clock.now() < state.until;
    },
  };
}
