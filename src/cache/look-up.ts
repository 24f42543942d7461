/**
 * Owns: what the store has for a call: a fresh entry, or a stale one that may answer if the refetch fails
 * (design, laws 7, 14 and 17). Refuses an entry that lies where it does not belong.
 */
import type { Clock } from '../clock.js';
import { isFresh } from '../core/freshness.js';
import type { CacheKeys } from '../core/key.js';
import type { Entry } from '../core/snapshot.js';
import type { FetchTask } from './fetch-task.js';
import type { Memory } from './memory.js';
import type { Stamp, Store } from './store.js';

/** One request of a cacheable method, with the means to ask its upstream. */
export interface CacheCall
  extends Omit<FetchTask, 'mode' | 'pageKeys' | 'signal' | 'untilAnswered' | 'onHead' | 'onPage'> {
  /** Aborts when the client has left. */
  readonly signal: AbortSignal;
  /** Bounds the wait and the fetch, the whole walk included, in milliseconds. */
  readonly timeoutMs: number;
  /** Whether the caller may be served what another's request brought (PUBLIC_SHARING). */
  readonly mayShare: () => boolean;
}

/** What of a call decides on what it may be served. */
export type Caller = Pick<CacheCall, 'upstream' | 'keys' | 'mayShare'>;

/** What the store has for a call. */
export interface Found {
  readonly fresh?: Entry;
  /** May answer if the refetch fails. */
  readonly stale?: Entry;
  readonly fwd: 'miss' | 'stale';
  /** Taken before the look. */
  readonly stamp: Stamp;
}

export interface LookUpDeps {
  readonly store: Store;
  readonly memory: Memory;
  readonly clock: Clock;
  /** How long past its lifetime an entry may answer when the refetch fails, in milliseconds. */
  readonly staleIfErrorMs: number;
}

/** Looks for a call under keys. */
export type LookUp = (call: CacheCall, keys: CacheKeys) => Promise<Found>;

export function createLookUp(deps: LookUpDeps): LookUp {
  const { store, memory, clock } = deps;
  return async (call, keys) => {
    const wanted = call.mayShare() ? [keys.own, keys.shared] : [keys.own];
    const look = await store.look(call.upstream, wanted, (entry) => isFresh(entry, clock.now()));
    const { stamp } = look;
    const entries = look.entries.flatMap((entry, i) =>
      entry !== undefined && belongsTo(call, wanted[i] === keys.own, entry) ? [entry] : [],
    );
    const now = clock.now();
    const fwd = entries.length > 0 ? 'stale' : 'miss';
    const fresh = entries.find((entry) => isFresh(entry, now));
    // Another replica's entry tells the scope as well as a fetch of our own.
    if (entries.some((entry) => entry.scope === 'public')) memory.sawScope(keys, 'public');
    if (fresh !== undefined) return { fresh, fwd, stamp };
    const stale = entries
      .filter((entry) => now < entry.expiresAt + deps.staleIfErrorMs)
      .sort((a, b) => b.receivedAt - a.receivedAt)[0];
    return stale === undefined ? { fwd, stamp } : { stale, fwd, stamp };
  };
}

/** What this process has at hand that is fresh for a caller; undefined: it takes a look, or a fetch. */
export function freshAtHand(store: Store, caller: Caller, now: number): Entry | undefined {
  const { upstream, keys } = caller;
  const own = store.peek(upstream, keys.own);
  if (own !== undefined && isFresh(own, now) && belongsTo(caller, true, own)) return own;
  const shared = caller.mayShare() ? store.peek(upstream, keys.shared) : undefined;
  return shared !== undefined && isFresh(shared, now) && belongsTo(caller, false, shared)
    ? shared
    : undefined;
}

/**
 * Whether an entry may lie where it was found: under a caller's own key only what is private to its context, under
 * the shared one only what is public. A shared tier could hold anything.
 */
function belongsTo(call: Caller, isOwnKey: boolean, entry: Entry): boolean {
  return isOwnKey
    ? entry.scope === 'private' && entry.authContext === call.keys.authContext
    : entry.scope === 'public';
}
