/**
 * Owns: which keys proved uncacheable a short while ago (design, laws 10, 11 and 16; Varnish calls it
 * hit-for-miss): nobody waits for another's fetch of such a key, and where its walk failed it is not walked
 * again. Bounded: the oldest marks are forgotten first.
 */
import type { Clock } from '../clock.js';
import type { NotStoredReason } from '../core/reasons.js';
import { createBounded } from './bounded.js';

/** How long a key stays marked, in milliseconds. */
export const UNCACHEABLE_MS = 30_000;
/**
 * The same where flushes overtook its fetches, at first; it doubles up to UNCACHEABLE_MS where that goes on. One change,
 * told on the streams of many clients, is over in a moment, and the list is to be cacheable again after it.
 */
export const SUPERSEDED_MS = 1_000;
/** The same where a walk met a limit: it would meet it again, at the cost of as many pages. */
export const LIMITED_MS = 300_000;
/** How many keys are marked at most. */
export const MAX_MARKS = 10_000;

/**
 * What a mark forbids: `wait`: joining another's fetch; `walk`: that, and following the cursors; `paged`: both,
 * but each page may be kept by its own cursor, since the list is only too long, not unsound; `keep`: keeping
 * anything, since it was overtaken time and again.
 */
export type Mark = 'wait' | 'walk' | 'paged' | 'keep';

const PAGED: ReadonlySet<NotStoredReason> = new Set(['max-pages', 'max-items', 'too-large', 'deadline']);
const WALK: ReadonlySet<NotStoredReason> = new Set(['cursor-loop', 'page-stale', 'page-failed']);

interface Held {
  readonly mark: Mark;
  /** How long it was set for, in milliseconds. */
  readonly forMs: number;
  readonly until: number;
}

export interface Uncacheable {
  /**
   * Marks a key for the reason why its result was not stored; a stronger mark is not weakened.
   * `hasMore` tells whether it is a list of more than one page.
   */
  mark(key: string, reason: NotStoredReason, hasMore: boolean): void;
  /** The mark of a key; undefined where there is none any more. */
  get(key: string): Mark | undefined;
  /** To be told when the key's result was stored after all. */
  clear(key: string): void;
}

export function createUncacheable(clock: Clock): Uncacheable {
  const marks = createBounded<Held>(MAX_MARKS);

  function get(key: string): Mark | undefined {
    const found = marks.get(key);
    return found !== undefined && clock.now() < found.until ? found.mark : undefined;
  }

  return {
    get,
    mark(key, reason, hasMore) {
      const mark = markFor(reason, hasMore);
      if (mark === 'wait' && get(key) !== undefined) return;
      const now = clock.now();
      const forMs = durationMs(mark, marks.get(key), now);
      marks.set(key, { mark, forMs, until: now + forMs });
    },
    clear(key) {
      marks.delete(key);
    },
  };
}

function durationMs(mark: Mark, last: Held | undefined, now: number): number {
  if (mark === 'paged') return LIMITED_MS;
  if (mark !== 'keep') return UNCACHEABLE_MS;
  if (last?.mark !== 'keep' || now - last.until > UNCACHEABLE_MS) return SUPERSEDED_MS;
  // A fetch that was under way when the mark was set says nothing new.
  return now < last.until ? last.forMs : Math.min(last.forMs * 2, UNCACHEABLE_MS);
}

function markFor(reason: NotStoredReason, hasMore: boolean): Mark {
  if (reason === 'superseded') return 'keep';
  if (hasMore && PAGED.has(reason)) return 'paged';
  return WALK.has(reason) ? 'walk' : 'wait';
}
