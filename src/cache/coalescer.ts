/**
 * Owns: who waits for whom (design, law 16): the fetches under way, by key, and the requests that take part in
 * them. A fetch goes on while anybody waits for it; its result reaches the others through the store alone.
 */
import type { Clock } from '../clock.js';

/** How a wait ended: the fetch is over, or the one who waited ran out of patience. */
export type WaitEnd = 'done' | 'impatient';

export interface Patience {
  /** How long after its beginning the fetch may be without a sign of the upstream, in milliseconds; absent: for ever. */
  readonly untilHeadMs?: number;
  /** How long to wait since the fetch last came forward, in milliseconds; absent: as long as it takes. */
  readonly sinceProgressMs?: number;
  /** How long to wait in any case, in milliseconds; absent: as long as it takes. */
  readonly atMostMs?: number;
  /** `true`: once patience has run out the fetch is to go on, though nobody waits for it; `false`: not any more. */
  readonly goOn?: boolean;
}

/** One fetch under way. */
export interface Flight<T> {
  /** The result; rejects as the fetch does. Always handled, so that nobody need look at it. */
  readonly result: Promise<T>;
  /**
   * Takes part until the end of the wait, or of the fetch.
   * Rejects with the signal's reason where that aborts; whoever leaves last ends the fetch.
   */
  wait(patience: Patience, signal: AbortSignal): Promise<WaitEnd>;
}

/** What a fetch tells of itself, and is told. */
export interface FlightControl {
  readonly signal: AbortSignal;
  /** The head of an answer has come. */
  sawHead(): void;
  /** A page has come. */
  progressed(): void;
}

export interface Coalescer<T> {
  find(key: string): Flight<T> | undefined;
  /** Begins a fetch; with a key others can find it until it ends. */
  start(key: string | undefined, run: (control: FlightControl) => Promise<T>): Flight<T>;
  /** How many fetches can be joined at this moment. */
  readonly size: number;
}

export function createCoalescer<T>(clock: Clock): Coalescer<T> {
  const flights = new Map<string, Flight<T>>();
  return {
    find: (key) => flights.get(key),
    get size() {
      return flights.size;
    },
    start(key, run) {
      const flight = createFlight(clock, run);
      if (key !== undefined) {
        flights.set(key, flight);
        const forget = () => {
          if (flights.get(key) === flight) flights.delete(key);
        };
        flight.result.then(forget, forget);
      }
      return flight;
    },
  };
}

function createFlight<T>(clock: Clock, run: (control: FlightControl) => Promise<T>): Flight<T> {
  const abort = new AbortController();
  let participants = 0;
  let isDetached = false;
  let isOver = false;
  let headSeen = false;
  const startedAt = clock.now();
  let progressedAt = startedAt;
  const result = run({
    signal: abort.signal,
    sawHead() {
      headSeen = true;
      progressedAt = clock.now();
    },
    progressed() {
      progressedAt = clock.now();
    },
  }).finally(() => {
    isOver = true;
  });
  result.catch(() => {});

  /** Resolves once patience has run out; never while it has no limit. */
  async function impatience(patience: Patience, signal: AbortSignal): Promise<WaitEnd> {
    const { untilHeadMs, sinceProgressMs = Infinity, atMostMs = Infinity } = patience;
    const endsAt = clock.now() + atMostMs;
    if (untilHeadMs !== undefined && !headSeen) {
      await sleepUntil(Math.min(startedAt + untilHeadMs, endsAt), signal);
      if (!headSeen) return 'impatient';
    }
    for (;;) {
      const until = Math.min(progressedAt + sinceProgressMs, endsAt);
      if (until === Infinity) return new Promise<never>(() => {});
      if (until <= clock.now()) return 'impatient';
      await sleepUntil(until, signal);
    }
  }

  async function sleepUntil(instant: number, signal: AbortSignal): Promise<void> {
    const left = instant - clock.now();
    if (left > 0) await clock.sleep(left, signal);
  }

  return {
    result,
    async wait(patience, signal) {
      participants += 1;
      if (patience.goOn === false) isDetached = false;
      const settled = new AbortController();
      try {
        const end = await Promise.race([
          result.then(
            () => 'done' as const,
            () => 'done' as const,
          ),
          impatience(patience, settled.signal).catch(() => new Promise<never>(() => {})),
          rejection(signal, settled.signal),
        ]);
        if (end === 'impatient' && patience.goOn === true) isDetached = true;
        return end;
      } finally {
        settled.abort();
        participants -= 1;
        if (participants === 0 && !isDetached && !isOver) abort.abort(new Error('nobody waits any more'));
      }
    },
  };
}

/** Rejects when `signal` aborts; forgets about it when `settled` does. */
function rejection(signal: AbortSignal, settled: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    settled.addEventListener('abort', () => signal.removeEventListener('abort', onAbort), { once: true });
  });
}
