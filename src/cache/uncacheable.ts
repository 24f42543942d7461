/**
 * Owns: which keys proved uncacheable a short while ago, so that their requests go straight to the upstream
 * (design, laws 10 and 11; Varnish calls it hit-for-miss). Bounded: the oldest marks are forgotten first.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../clock.js';

/** How long a key stays marked, in milliseconds. */
export const UNCACHEABLE_MS = 30_000;
/** How many keys are marked at most. */
export const MAX_MARKS = 10_000;

export interface Uncacheable {
  mark(key: string): void;
  isMarked(key: string): boolean;
}

export function createUncacheable(clock: Clock): Uncacheable {
  const until = new LRUCache<string, number>({ max: MAX_MARKS });
  return {
    mark(key) {
      until.set(key, clock.now() + UNCACHEABLE_MS);
    },
    isMarked(key) {
      const instant = until.get(key);
      if (instant === undefined) return false;
      if (clock.now() < instant) return true;
      until.delete(key);
      return false;
    },
  };
}
