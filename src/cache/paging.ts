/**
 * Owns: pages out of a snapshot under the gateway's own cursors (design, law 13). A walk holds on to the
 * snapshot on which it began: the snapshot is kept once more under its own name, so that a newer one, or the
 * end of its lifetime, does not take it away in mid-walk; a flush does.
 */
import type { CacheStatus } from '../core/cache-status.js';
import { cursorTag, isGenuine, makeCursor, readCursor, snapshotIdOf, tagOf } from '../core/cursor.js';
import { isFresh, remainingMs } from '../core/freshness.js';
import { readArray } from '../core/json.js';
import type { Entry } from '../core/snapshot.js';
import type { Slice } from '../core/splice.js';
import type { Answer, EntryAnswer, InvalidCursorAnswer } from './answer.js';
import type { Stamp, Store } from './store.js';

/** How long after it could last be served a snapshot may still be walked to its end, in milliseconds. */
export const WALK_GRACE_MS = 600_000;

export interface PagingDeps {
  readonly store: Store;
  /** Items a page; 0: snapshots are served whole. */
  readonly pageSize: number;
  /** How long past its lifetime a snapshot may begin a walk, in milliseconds. */
  readonly staleIfErrorMs: number;
  readonly upstreams: readonly { readonly name: string; readonly url: string }[];
}

export interface PagedCaller {
  readonly upstream: string;
  /** The key under which this caller's own answers are stored. */
  readonly ownKey: string;
  /** Whether the caller may be served what another's request brought (PUBLIC_SHARING). */
  readonly mayShare: () => boolean;
}

export interface Paging {
  /** Whether a cursor is one of the gateway's, for whichever upstream. */
  isOwn(cursor: string): boolean;
  /** Whether an entry is too long for one page. */
  isCut(entry: Entry): boolean;
  /** The page that one of the gateway's cursors names. */
  resume(caller: PagedCaller, cursor: string, now: number): Promise<EntryAnswer | InvalidCursorAnswer>;
  /** Cuts the first page off an answer that is longer; `stamp` was taken before the entry was fetched or read. */
  firstPage(caller: PagedCaller, answer: Answer, stamp: Stamp): Promise<Answer>;
}

const INVALID: InvalidCursorAnswer = {
  kind: 'invalid-cursor',
  status: { detail: 'invalid-cursor' },
  pages: 0,
};

export function createPaging(deps: PagingDeps): Paging {
  const { store, pageSize } = deps;
  const tags = new Map(deps.upstreams.map((upstream) => [upstream.name, cursorTag(upstream)]));
  const known = new Set(tags.values());
  /** Where the items of a snapshot begin and end, by its entry; found when first asked for. */
  const spans = new WeakMap<Entry, Uint32Array>();

  const isCut = (entry: Entry) => pageSize > 0 && entry.items > pageSize;

  function spansOf(entry: Entry): Uint32Array {
    let found = spans.get(entry);
    if (found === undefined) {
      const { elements } = readArray(entry.body, (entry.itemsAt?.start ?? 1) - 1);
      found = Uint32Array.from(elements.flatMap(({ start, end }) => [start, end]));
      spans.set(entry, found);
    }
    return found;
  }

  function sliceAt(caller: PagedCaller, entry: Entry, offset: number): Slice | undefined {
    const at = spansOf(entry);
    const last = Math.min(offset + pageSize, entry.items);
    const start = at[2 * offset];
    const end = at[2 * last - 1];
    if (start === undefined || end === undefined || offset >= entry.items) return undefined;
    if (last === entry.items) return { start, end };
    const tag = tags.get(caller.upstream) ?? '';
    return {
      start,
      end,
      nextCursor: makeCursor({ tag, seed: entry.seed, offset: last, ownKey: caller.ownKey }),
    };
  }

  return {
    isCut,

    isOwn(cursor) {
      const tag = tagOf(cursor);
      return tag !== undefined && known.has(tag);
    },

    async resume(caller, cursor, now) {
      const parts = readCursor(cursor);
      if (parts === undefined || parts.tag !== tags.get(caller.upstream)) return INVALID;
      const key = walkKey(caller.upstream, parts.snapshotId);
      const [entry] = (await store.look(caller.upstream, [key], () => true)).entries;
      if (entry === undefined || now >= entry.expiresAt + deps.staleIfErrorMs + WALK_GRACE_MS) return INVALID;
      if (entry.scope === 'public' && !caller.mayShare()) return INVALID;
      if (!isGenuine(parts, entry.seed, caller.ownKey)) return INVALID;
      const slice = sliceAt(caller, entry, parts.offset);
      if (slice === undefined) return INVALID;
      const remaining = remainingMs(entry, now);
      const status: CacheStatus = {
        hit: true,
        remainingMs: remaining,
        ...(!isFresh(entry, now) && { detail: 'walk-past-expiry' }),
      };
      return {
        kind: 'entry',
        entry,
        remainingMs: remaining,
        ageMs: now - entry.receivedAt,
        slice,
        status,
        pages: 1,
      };
    },

    async firstPage(caller, answer, stamp) {
      if (answer.kind !== 'entry' || !isCut(answer.entry)) return answer;
      const { entry } = answer;
      const key = walkKey(caller.upstream, snapshotIdOf(entry.seed));
      const [kept] = (await store.look(caller.upstream, [key], () => true)).entries;
      const canResume =
        kept !== undefined || (await store.write(caller.upstream, key, entry, stamp)) === 'stored';
      const slice = sliceAt(caller, entry, 0);
      // A snapshot that cannot be kept for the walk is served whole: a cursor that leads nowhere helps nobody.
      return canResume && slice !== undefined ? { ...answer, slice } : answer;
    },
  };
}

function walkKey(upstream: string, snapshotId: string): string {
  return JSON.stringify(['walk', upstream, snapshotId]);
}
