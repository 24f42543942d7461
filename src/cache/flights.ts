/**
 * Owns: fetches as others may wait for them: their deadline, what they teach about their key, and the leader,
 * to whom alone the upstream's own response and its interim messages belong (design, laws 15 and 16).
 */
import type { Clock } from '../clock.js';
import type { InterimSink } from '../core/exchange.js';
import { pageKeys } from '../core/key.js';
import { GatewayError } from '../errors.js';
import { createCoalescer, type Flight, type FlightControl } from './coalescer.js';
import type { Entered } from './fetch-lease.js';
import type { FetchEnd, FetchTask } from './fetch-task.js';
import type { Fetch } from './fetcher.js';
import type { Memory } from './memory.js';
import { retryAfterMs } from './retry-after.js';

/** A fetch, and how long it may take, the whole walk included, in milliseconds. */
export interface FlightTask
  extends Omit<FetchTask, 'pageKeys' | 'signal' | 'untilAnswered' | 'onHead' | 'onPage'> {
  readonly timeoutMs: number;
}

/** A fetch as its leader holds it. */
export interface LedFlight extends Flight<FlightEnd> {
  /** The leader takes no answer: what the fetch brings for it alone is discarded. */
  leaderLeaves(): void;
}

export interface Flights {
  find(key: string): Flight<FlightEnd> | undefined;
  /** Begins a fetch; with a key others can find it until it ends. */
  start(task: FlightTask, key: string | undefined): LedFlight;
}

/** Fetches of other replicas, as far as a fetch here has to do with them (law 27). */
export interface Fleet {
  enter(
    upstream: string,
    key: string,
    options: { readonly patienceMs: number; readonly signal: AbortSignal },
  ): Promise<Entered>;
  /** Whether something fresh is there for the task by now. */
  hasFresh(task: FlightTask): Promise<boolean>;
}

/** How a fetch ended, here or, `elsewhere`, on another replica: then the store may have its result. */
export type FlightEnd = FetchEnd | { readonly kind: 'elsewhere' };

export interface FlightsDeps {
  readonly fetch: Fetch;
  /** Absent: this process fetches for itself alone. */
  readonly fleet?: Fleet | undefined;
  readonly memory: Memory;
  readonly clock: Clock;
}

export function createFlights(deps: FlightsDeps): Flights {
  const { clock, memory } = deps;
  const coalescer = createCoalescer<FlightEnd>(clock);

  async function fetchHere(
    task: FlightTask,
    control: FlightControl,
    isLed: () => boolean,
  ): Promise<FetchEnd> {
    const deadline = startDeadline(clock, control.signal, task.timeoutMs);
    try {
      const end = await deps.fetch({
        ...task,
        pageKeys: pageKeys(task.keys, undefined),
        signal: deadline.signal,
        untilAnswered: deadline.untilAnswered,
        onHead: control.sawHead,
        onPage: control.progressed,
        interim: interimFor(task.interim, deadline.lift, isLed),
      });
      learn(task, end);
      if (!isLed()) end.response.discard();
      return end;
    } catch (error) {
      // A fetch that nobody waited for any more says nothing about the upstream.
      if (error instanceof GatewayError && !control.signal.aborted) memory.unreachable(task.keys);
      throw error;
    } finally {
      deadline.lift();
    }
  }

  /** Fetches, unless another replica does so for all. */
  async function fetchForFleet(
    fleet: Fleet,
    key: string,
    task: FlightTask,
    control: FlightControl,
    isLed: () => boolean,
  ): Promise<FlightEnd> {
    const startedAt = clock.now();
    const { signal } = control;
    const entered = await fleet.enter(task.upstream, key, { signal, patienceMs: task.timeoutMs / 2 });
    try {
      if (entered.role === 'waiter') return { kind: 'elsewhere' };
      if (entered.waited && (await fleet.hasFresh(task))) return { kind: 'elsewhere' };
      const timeoutMs = Math.max(1, task.timeoutMs - (clock.now() - startedAt));
      return await fetchHere({ ...task, timeoutMs }, control, isLed);
    } finally {
      // Nobody waits for Redis to hear of it.
      void entered.leave(signal.aborted ? 'abandoned' : 'fetched');
    }
  }

  function start(task: FlightTask, key: string | undefined): LedFlight {
    let isLed = true;
    const { fleet } = deps;
    const flight = coalescer.start(key, (control) =>
      fleet === undefined || key === undefined
        ? fetchHere(task, control, () => isLed)
        : fetchForFleet(fleet, key, task, control, () => isLed),
    );
    return {
      ...flight,
      leaderLeaves() {
        isLed = false;
        flight.result.then(
          (end) => {
            if (end.kind !== 'elsewhere') end.response.discard();
          },
          () => {},
        );
      },
    };
  }

  function learn({ keys }: FlightTask, end: FetchEnd): void {
    if (isFailure(end)) {
      memory.failed(keys, retryAfterMs(end.response.headers));
      return;
    }
    memory.answered(keys);
    if (end.kind === 'stored') {
      memory.sawScope(keys, end.entry.scope);
      memory.stored(keys, end.entry.scope);
    } else if (end.kind === 'overtaken') memory.mark(keys, 'superseded');
    // A resource was dropped while it was read: that says nothing about the next time.
    else if (end.reason !== 'superseded') memory.mark(keys, end.reason, end.first);
  }

  return { start, find: (key) => coalescer.find(key) };
}

/** Law 17: a 5xx counts as a failure of the upstream; 4xx and JSON-RPC errors are its word. */
export function isFailure(end: FetchEnd): boolean {
  return end.kind === 'not-stored' && end.response.status >= 500;
}

function interimFor(sink: InterimSink, liftDeadline: () => void, isLed: () => boolean): InterimSink {
  return {
    begin(status, headers) {
      if (!isLed()) return;
      // From here on the client has a stream of its own, and may wait as long as it likes.
      liftDeadline();
      sink.begin(status, headers);
    },
    async write(bytes) {
      if (isLed()) await sink.write(bytes);
    },
    hasBegun: () => isLed() && sink.hasBegun(),
  };
}

interface Deadline {
  readonly signal: AbortSignal;
  readonly untilAnswered: FetchTask['untilAnswered'];
  readonly lift: () => void;
}

function startDeadline(clock: Clock, outer: AbortSignal, ms: number): Deadline {
  const abort = new AbortController();
  const link = (to: AbortController, from: AbortSignal) => {
    const onAbort = () => to.abort(from.reason);
    if (from.aborted) onAbort();
    from.addEventListener('abort', onAbort, { once: true });
    return () => from.removeEventListener('abort', onAbort);
  };
  link(abort, outer);
  const lift = clock.timer(ms, () => abort.abort(new GatewayError('upstream-timeout')));
  return {
    signal: abort.signal,
    lift,
    async untilAnswered(send) {
      const own = new AbortController();
      link(own, outer);
      const unlink = link(own, abort.signal);
      return send(own.signal).finally(unlink);
    },
  };
}
