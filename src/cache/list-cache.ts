/**
 * Owns: the coordination of one answer: look up; wait for another's fetch, or fetch; fall back on what is stale
 * (design, laws 10, 13, 14, 16 and 17). The one judge of freshness. Refuses to know HTTP: it is given a
 * function that fetches a page, and gives back what is to be written.
 */
import type { Clock } from '../clock.js';
import { isFresh } from '../core/freshness.js';
import { type CacheKeys, pageKeys } from '../core/key.js';
import type { Entry } from '../core/snapshot.js';
import { GatewayError } from '../errors.js';
import {
  type Answer,
  freshAnswer,
  overtakenAnswer,
  relayAnswer,
  staleAnswer,
  storedAnswer,
} from './answer.js';
import type { Flight, Patience } from './coalescer.js';
import type { FetchTask } from './fetcher.js';
import { type FlightEnd, type Flights, isFailure } from './flights.js';
import type { Memory } from './memory.js';
import type { Paging } from './paging.js';
import type { Stamp, Store } from './store.js';

/** How long a refetch may take to show a sign of the upstream while a stale entry is at hand, in milliseconds. */
export const STALE_PATIENCE_MS = 2_000;

/** One request of a cacheable method, with the means to ask its upstream. */
export interface CacheCall extends Omit<FetchTask, 'mode' | 'pageKeys' | 'signal' | 'onHead' | 'onPage'> {
  /** Aborts when the client has left. */
  readonly signal: AbortSignal;
  /** Bounds the wait and the fetch, the whole walk included, in milliseconds. */
  readonly timeoutMs: number;
  /** Whether the caller may be served what another's request brought (PUBLIC_SHARING). */
  readonly mayShare: () => boolean;
}

export interface ListCacheDeps {
  readonly store: Store;
  readonly flights: Flights;
  readonly memory: Memory;
  readonly paging: Paging;
  readonly clock: Clock;
  /** How long past its lifetime an entry may answer when the refetch fails, in milliseconds. */
  readonly staleIfErrorMs: number;
}

export interface ListCache {
  /** @throws GatewayError where the upstream cannot be reached or does not answer in time, and nothing else serves */
  answer(call: CacheCall): Promise<Answer>;
  /** Whether a request for a further page is the cache's to answer; if not, its cursor is the upstream's. */
  knowsCursor(call: CacheCall): boolean;
}

/** What the store has for a call. */
interface Found {
  readonly fresh?: Entry;
  /** May answer if the refetch fails. */
  readonly stale?: Entry;
  readonly fwd: 'miss' | 'stale';
  /** Taken before the look. */
  readonly stamp: Stamp;
}

/** What a call looks for: under which keys, and how it is kept. */
interface Want {
  readonly keys: CacheKeys;
  readonly mode: FetchTask['mode'];
}

/** An answer, with the stamp under which its entry was valid. */
interface Obtained {
  readonly answer: Answer;
  readonly stamp: Stamp;
}

export function createListCache(deps: ListCacheDeps): ListCache {
  const { store, clock, memory, paging, flights } = deps;

  async function answer(call: CacheCall): Promise<Answer> {
    const caller = { upstream: call.upstream, ownKey: call.keys.own };
    const { cursor } = call.request;
    if (cursor !== undefined && paging.isOwn(cursor)) return paging.resume(caller, cursor, clock.now());
    const want = wantOf(call);
    const found = await lookUp(call, want.keys);
    const obtained =
      found.fresh === undefined
        ? await obtain(call, want, found)
        : { answer: freshAnswer(found.fresh, clock.now(), false), stamp: found.stamp };
    return want.mode === 'page' ? obtained.answer : paging.firstPage(caller, obtained.answer, obtained.stamp);
  }

  /** A list that proved too long is kept page by page; one whose walk failed is not walked again for a while. */
  function wantOf(call: CacheCall): Want {
    const mark = memory.markOf(call.keys.own);
    if (mark === 'paged') return { keys: pageKeys(call.keys, call.request.cursor), mode: 'page' };
    return { keys: call.keys, mode: mark === 'walk' ? 'single' : 'whole' };
  }

  async function lookUp(call: CacheCall, keys: CacheKeys): Promise<Found> {
    const wanted = call.mayShare() ? [keys.own, keys.shared] : [keys.own];
    const look = await store.look(call.upstream, wanted, (entry) => isFresh(entry, clock.now()));
    const { stamp } = look;
    const entries = look.entries.filter((entry) => entry !== undefined);
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
  }

  /** Nothing fresh is there: waits for another's fetch, or fetches. */
  async function obtain(call: CacheCall, want: Want, first: Found): Promise<Obtained> {
    const { keys } = want;
    const startedAt = clock.now();
    let found = first;
    if (found.stale !== undefined && memory.isBackingOff(keys))
      return fromStale(found, found.stale, 'backoff');
    for (const key of flightKeys(call, keys)) {
      const flight = flights.find(key);
      if (flight === undefined) return lead(call, want, { found, key, startedAt });
      const waited = await flight.wait(patienceOfJoiner(call, found), call.signal);
      found = await lookUp(call, keys);
      if (found.fresh !== undefined) {
        return { answer: freshAnswer(found.fresh, clock.now(), true), stamp: found.stamp };
      }
      if (found.stale !== undefined && waited === 'impatient')
        return fromStale(found, found.stale, 'upstream-slow');
      if (found.stale !== undefined && memory.isBackingOff(keys))
        return fromStale(found, found.stale, 'backoff');
      // Only where the result proved to be private does waiting within our own context still make sense.
      if (memory.scopeOf(keys.shared) !== 'private') break;
    }
    return lead(call, want, { found, key: undefined, startedAt });
  }

  /** Under which keys the call may wait for another's fetch, the widest first; none where nobody should wait. */
  function flightKeys(call: CacheCall, keys: CacheKeys): readonly string[] {
    if (memory.markOf(keys.own) !== undefined) return [];
    const isWide = call.mayShare() && memory.scopeOf(keys.shared) === 'public';
    return isWide ? [keys.shared, keys.own] : [keys.own];
  }

  function patienceOfJoiner(call: CacheCall, found: Found): Patience {
    const sinceProgressMs = call.timeoutMs / 2;
    return found.stale === undefined
      ? { sinceProgressMs }
      : { sinceProgressMs, untilHeadMs: STALE_PATIENCE_MS };
  }

  function fromStale(
    found: Found,
    stale: Entry,
    reason: 'backoff' | 'upstream-slow' | 'upstream-failed',
  ): Obtained {
    return { answer: staleAnswer(stale, clock.now(), reason), stamp: found.stamp };
  }

  interface Lead {
    readonly found: Found;
    /** Under which others may wait; absent: nobody may. */
    readonly key: string | undefined;
    readonly startedAt: number;
  }

  async function lead(call: CacheCall, want: Want, { found, key, startedAt }: Lead): Promise<Obtained> {
    const timeoutMs = Math.max(1, call.timeoutMs - (clock.now() - startedAt));
    const flight = flights.start({ ...call, ...want, timeoutMs }, key);
    try {
      const patience = found.stale === undefined ? {} : { untilHeadMs: STALE_PATIENCE_MS, goOn: true };
      if ((await flight.wait(patience, call.signal)) === 'impatient') {
        const again = await lookUp(call, want.keys);
        if (again.stale !== undefined) {
          // The fetch goes on, and refreshes the entry when the upstream answers after all.
          flight.leaderLeaves();
          memory.failed(want.keys.own);
          return fromStale(again, again.stale, 'upstream-slow');
        }
        // A flush took the stale entry away meanwhile.
        await flight.wait({}, call.signal);
      }
    } catch (error) {
      flight.leaderLeaves();
      throw error;
    }
    return settle(call, want, { found, flight });
  }

  async function settle(
    call: CacheCall,
    want: Want,
    { found, flight }: { readonly found: Found; readonly flight: Flight<FlightEnd> },
  ): Promise<Obtained> {
    const { keys } = want;
    let end: FlightEnd;
    try {
      end = await flight.result;
    } catch (error) {
      const again = await lookUp(call, keys);
      if (again.stale === undefined || !(error instanceof GatewayError)) throw error;
      return fromStale(again, again.stale, 'upstream-failed');
    }
    if (end.kind === 'elsewhere') {
      const again = await lookUp(call, keys);
      if (again.fresh !== undefined)
        return { answer: freshAnswer(again.fresh, clock.now(), true), stamp: again.stamp };
      return lead(call, want, { found: again, key: undefined, startedAt: clock.now() });
    }
    const own = { fwd: found.fwd, response: end.response } as const;
    const { stamp } = found;
    switch (end.kind) {
      case 'stored': {
        const stored = { entry: end.entry, first: end.first, isCut: paging.isCut(end.entry) };
        return { answer: storedAnswer(stored, clock.now(), own), stamp: end.stamp };
      }
      case 'overtaken':
        return { answer: overtakenAnswer(end.entry, own), stamp };
      case 'not-stored': {
        const again = isFailure(end) ? await lookUp(call, keys) : undefined;
        if (again?.stale === undefined) return { answer: relayAnswer(end.reason, own), stamp };
        end.response.discard();
        return fromStale(again, again.stale, 'upstream-failed');
      }
      default:
        return end satisfies never;
    }
  }

  function knowsCursor(call: CacheCall): boolean {
    const { cursor } = call.request;
    return cursor === undefined || paging.isOwn(cursor) || memory.markOf(call.keys.own) === 'paged';
  }

  return { answer, knowsCursor };
}
