/**
 * Owns: the coordination of one answer: look up; wait for another's fetch, or fetch; fall back on what is stale
 * (design, laws 10, 13, 14, 16 and 17). The one judge of freshness. Refuses to know HTTP: it is given a
 * function that fetches a page, and gives back what is to be written.
 */
import type { Clock } from '../clock.js';
import { type CacheKeys, pageKeys } from '../core/key.js';
import type { StaleReason } from '../core/reasons.js';
import { GatewayError } from '../errors.js';
import {
  type Answer,
  type EntryAnswer,
  freshAnswer,
  overtakenAnswer,
  relayAnswer,
  staleAnswer,
  storedAnswer,
} from './answer.js';
import type { Flight, Patience } from './coalescer.js';
import type { FetchTask } from './fetch-task.js';
import { type FlightEnd, type Flights, isFailure } from './flights.js';
import { type CacheCall, type Caller, createLookUp, type Found, freshAtHand } from './look-up.js';
import type { Memory } from './memory.js';
import type { Paging } from './paging.js';
import type { Stamp, Store } from './store.js';

/** How long a refetch may take to show a sign of the upstream while a stale entry is at hand, in milliseconds. */
export const STALE_PATIENCE_MS = 2_000;

export type { CacheCall } from './look-up.js';

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
  /** The answer to a request without a cursor, where it is whole and at hand in memory. */
  atHand(caller: Caller): EntryAnswer | undefined;
  /** Whether a request for a further page is the cache's to answer; if not, its cursor is the upstream's. */
  knowsCursor(call: CacheCall): boolean;
}

/** What a call looks for: under which keys, and how it is kept. */
interface Want {
  readonly keys: CacheKeys;
  readonly mode: FetchTask['mode'];
}

/** One look: what for, and what was there. */
interface Look {
  readonly want: Want;
  readonly found: Found;
}

/** How a call fetches for itself. */
interface Lead {
  /** Under which others may wait; absent: nobody may. */
  readonly key: string | undefined;
  /** When the call began. */
  readonly startedAt: number;
}

/** An answer, with the stamp under which its entry was valid. */
interface Obtained {
  readonly answer: Answer;
  readonly stamp: Stamp;
  readonly mode: Want['mode'];
}

export function createListCache(deps: ListCacheDeps): ListCache {
  const { clock, memory, paging, flights } = deps;
  const lookUp = createLookUp(deps);

  async function answer(call: CacheCall): Promise<Answer> {
    const caller = { upstream: call.upstream, ownKey: call.keys.own, mayShare: call.mayShare };
    const { cursor } = call.request;
    if (cursor !== undefined && paging.isOwn(cursor)) return paging.resume(caller, cursor, clock.now());
    const look = await lookFor(call);
    const obtained = fromFresh(look) ?? (await obtain(call, look));
    const { answer: whole, stamp, mode } = obtained;
    return mode === 'page' ? whole : paging.firstPage(caller, whole, stamp);
  }

  async function lookFor(call: CacheCall): Promise<Look> {
    const want = wantOf(call);
    return { want, found: await lookUp(call, want.keys) };
  }

  /** A list that proved too long is kept page by page; one whose walk failed is not walked for a while. */
  function wantOf(call: CacheCall): Want {
    const mark = memory.markOf(call.keys);
    if (mark === 'paged' || call.request.cursor !== undefined)
      return { keys: pageKeys(call.keys, call.request.cursor), mode: 'page' };
    return { keys: call.keys, mode: mark === 'keep' ? 'none' : mark === 'walk' ? 'single' : 'whole' };
  }

  /** Nothing fresh is there: waits for another's fetch, or fetches. */
  async function obtain(call: CacheCall, first: Look): Promise<Obtained> {
    const startedAt = clock.now();
    const tried = new Set<string>();
    let mayWait = true;
    for (let look = first; ; ) {
      const { want, found } = look;
      const held = memory.isBackingOff(want.keys) ? fromStale(look, 'backoff') : undefined;
      if (held !== undefined) return held;
      const key = mayWait ? flightKeys(call, want.keys).find((one) => !tried.has(one)) : undefined;
      const flight = key === undefined ? undefined : flights.find(key);
      if (key === undefined || flight === undefined) return lead(call, look, { key, startedAt });
      tried.add(key);
      const waited = await flight.wait(patienceOfJoiner(call, { found, startedAt }), call.signal);
      // What was learnt meanwhile may have changed what is wanted: a list that proved too long is wanted by pages.
      look = await lookFor(call);
      const slow = waited === 'impatient' ? fromStale(look, 'upstream-slow') : undefined;
      const obtained = fromFresh(look, found.fwd) ?? slow;
      if (obtained !== undefined) return obtained;
      // Only where the result proved to be private does waiting within our own context still make sense.
      mayWait = memory.scopeOf(want.keys.shared) === 'private';
    }
  }

  /** Under which keys the call may wait for another's fetch, the widest first; none where nobody should wait. */
  function flightKeys(call: CacheCall, keys: CacheKeys): readonly string[] {
    if (memory.markOf(keys) !== undefined) return [];
    const isWide = call.mayShare() && memory.scopeOf(keys.shared) === 'public';
    return isWide ? [keys.shared, keys.own] : [keys.own];
  }

  function patienceOfJoiner(
    { timeoutMs }: CacheCall,
    { found, startedAt }: { readonly found: Found; readonly startedAt: number },
  ): Patience {
    const patience = { sinceProgressMs: timeoutMs / 2, atMostMs: startedAt + timeoutMs - clock.now() };
    return found.stale === undefined ? patience : { ...patience, untilHeadMs: STALE_PATIENCE_MS };
  }

  function fromFresh({ want, found }: Look, waited?: Found['fwd']): Obtained | undefined {
    if (found.fresh === undefined) return undefined;
    return { answer: freshAnswer(found.fresh, clock.now(), waited), stamp: found.stamp, mode: want.mode };
  }

  /** The stale entry that a look found answers, if there is one. */
  function fromStale({ want, found }: Look, reason: StaleReason): Obtained | undefined {
    if (found.stale === undefined) return undefined;
    return { answer: staleAnswer(found.stale, clock.now(), reason), stamp: found.stamp, mode: want.mode };
  }

  async function lead(call: CacheCall, look: Look, { key, startedAt }: Lead): Promise<Obtained> {
    const { want, found } = look;
    // Whoever waited in vain still has the time for a fetch of its own.
    const timeoutMs = Math.max(call.timeoutMs / 2, startedAt + call.timeoutMs - clock.now());
    const flight = flights.start({ ...call, ...want, timeoutMs }, key);
    try {
      const patience = found.stale === undefined ? {} : { untilHeadMs: STALE_PATIENCE_MS, goOn: true };
      if ((await flight.wait(patience, call.signal)) === 'impatient') {
        const slow = fromStale(await lookAgain(call, look), 'upstream-slow');
        if (slow !== undefined) {
          // The fetch goes on, and refreshes the entry when the upstream answers after all.
          flight.leaderLeaves();
          memory.failed(want.keys);
          return slow;
        }
        // A flush took the stale entry away meanwhile.
        await flight.wait({ goOn: false }, call.signal);
      }
    } catch (error) {
      flight.leaderLeaves();
      throw error;
    }
    return settle(call, look, flight);
  }

  async function settle(call: CacheCall, look: Look, flight: Flight<FlightEnd>): Promise<Obtained> {
    const { found, want } = look;
    let end: FlightEnd;
    try {
      end = await flight.result;
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      const stale = fromStale(await lookAgain(call, look), 'upstream-failed');
      if (stale === undefined) throw error;
      return stale;
    }
    if (end.kind === 'elsewhere') {
      const again = await lookAgain(call, look);
      return fromFresh(again, found.fwd) ?? lead(call, again, { key: undefined, startedAt: clock.now() });
    }
    const own = { fwd: found.fwd, response: end.response } as const;
    const obtained = { stamp: found.stamp, mode: want.mode };
    switch (end.kind) {
      case 'stored': {
        const stored = {
          entry: end.entry,
          first: end.first,
          isCut: want.mode !== 'page' && paging.isCut(end.entry),
        };
        return { ...obtained, answer: storedAnswer(stored, clock.now(), own), stamp: end.stamp };
      }
      case 'overtaken':
        return { ...obtained, answer: overtakenAnswer(end.entry, own) };
      case 'not-stored': {
        const stale = isFailure(end) ? fromStale(await lookAgain(call, look), 'upstream-failed') : undefined;
        if (stale === undefined) return { ...obtained, answer: relayAnswer(end.reason, own) };
        end.response.discard();
        return stale;
      }
      default:
        return end satisfies never;
    }
  }

  async function lookAgain(call: CacheCall, { want }: Look): Promise<Look> {
    return { want, found: await lookUp(call, want.keys) };
  }

  function knowsCursor(call: CacheCall): boolean {
    const { cursor } = call.request;
    return cursor === undefined || paging.isOwn(cursor) || memory.markOf(call.keys) === 'paged';
  }

  function atHand(caller: Caller): EntryAnswer | undefined {
    const now = clock.now();
    const entry = freshAtHand(deps.store, caller, now);
    return entry === undefined || paging.isCut(entry) ? undefined : freshAnswer(entry, now);
  }

  return { answer, atHand, knowsCursor };
}
