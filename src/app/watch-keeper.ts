/**
 * Owns: who watches an upstream (design, laws 21 and 28). Alone, this process does. With Redis one replica holds
 * the watch for the fleet, under a lease; while Redis is away each watches for itself. A holder that leaves keeps
 * its stream until its successor's stands, so that a rolling restart is no gap; one that died is replaced when
 * its lease runs out, and what it missed is flushed, once for the fleet.
 */
import type { Clock } from '../clock.js';
import type { StateInfo, Watch, WatchState } from '../upstream/watch.js';

/** How long a lease outlives a holder that died, and how often it is renewed or asked for, in milliseconds. */
export const WATCH_LEASE_MS = 9_000;
export const WATCH_TURN_MS = 3_000;
/** How long a leaving holder waits for a successor, in milliseconds. */
export const HANDOVER_MS = 2_000;

/** The fleet's part of it; every answer is undefined where Redis is away. */
export interface WatchLease {
  /** Takes or renews the lease; tells who holds it. */
  hold(): Promise<'mine' | 'other' | undefined>;
  /** Takes the lease over from the holder that is leaving. */
  succeed(leaving: string): Promise<boolean>;
  /** Whether this replica alone is to succeed the one that is leaving. */
  isChosen(leaving: string): Promise<boolean>;
  /** Tells the others that this holder is leaving; resolves with whether one of them took over in time. */
  handOver(ms: number): Promise<boolean>;
  release(): Promise<void>;
  /** The shared generation as it is now. */
  generation(): Promise<string | undefined>;
  /** The shared generation as it was last known. */
  knownGeneration(): string | undefined;
}

export interface WatchHandlers {
  readonly onConnected: (info: { readonly isGap: boolean }) => Promise<void>;
  readonly onState: (state: WatchState, info: Pick<StateInfo, 'reason'>) => void;
}

export interface WatchKeeperDeps {
  readonly clock: Clock;
  readonly random: () => number;
  readonly makeWatch: (handlers: WatchHandlers) => Watch;
  /** Absent: there is no fleet. */
  readonly lease?: WatchLease | undefined;
  readonly flush: (reach: 'everywhere' | 'here') => Promise<void>;
}

export interface WatchKeeper {
  start(): void;
  /** Resolves when it is settled who watches, and the first attempt of a watch of our own has come to stand or failed. */
  readonly settled: Promise<void>;
  /** Redis came or went, or the holder said something: looks again at once. */
  wake(): void;
  /** The holder says that it is leaving. */
  holderLeaves(leaving: string): Promise<void>;
  /** `elsewhere`: another replica watches. */
  readonly state: WatchState | 'elsewhere';
  /** When the state began, in milliseconds of the process's clock. */
  readonly since: number;
  /** Why the watch did not stand when it was last tried; absent where it stands, or is tried for the first time. */
  readonly reason: string | undefined;
  close(): Promise<void>;
}

export function createWatchKeeper(deps: WatchKeeperDeps): WatchKeeper {
  const { clock, lease } = deps;
  const stopping = new AbortController();
  let watch: Watch | undefined;
  let since = clock.now();
  let reason: string | undefined;
  let holdsLease = false;
  /** Whether this replica is about to take over from one that is leaving, which holds the lease until then. */
  let isSucceeding = false;
  /** Whether another replica was seen to hold the watch: then its absence is a gap. */
  let sawOther = false;
  /** The shared generation when the fleet's watch was last known to stand. */
  let generationAtLoss: string | undefined;
  let wake: () => void = () => {};
  let settle: () => void = () => {};
  const settled = new Promise<void>((resolve) => {
    settle = resolve;
  });

  /** `isFirstGap`: whether the watch stands in for one that was lost, so that even its first connection ends a gap. */
  function startWatch(isFirstGap: boolean): Watch {
    const started = deps.makeWatch({
      async onConnected({ isGap }) {
        const isSharedGap = (isGap || isFirstGap) && holdsLease;
        await deps.flush(isSharedGap && (await generationIsUnmoved()) ? 'everywhere' : 'here');
      },
      onState(state, info) {
        since = clock.now();
        if (state !== 'connecting') reason = info.reason;
        if (state === 'waiting') generationAtLoss = lease?.knownGeneration();
      },
    });
    watch = started;
    started.start();
    started.settled.then(settle, settle);
    return started;
  }

  async function generationIsUnmoved(): Promise<boolean> {
    return (
      lease === undefined || generationAtLoss === undefined || (await lease.generation()) === generationAtLoss
    );
  }

  async function stopWatch(): Promise<void> {
    const stopped = watch;
    watch = undefined;
    if (stopped !== undefined) since = clock.now();
    await stopped?.stop();
  }

  async function turn(): Promise<void> {
    const held = lease === undefined ? 'mine' : await lease.hold();
    if (stopping.signal.aborted || isSucceeding) return;
    holdsLease = held === 'mine';
    if (held === 'other') {
      sawOther = true;
      generationAtLoss = lease?.knownGeneration();
      await stopWatch();
      settle();
    } else if (watch === undefined) {
      startWatch(held === 'mine' && sawOther);
    }
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await turn();
      if (lease === undefined) return;
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const ms = WATCH_TURN_MS * (1 + deps.random() / 4);
      await Promise.race([clock.sleep(ms, stopping.signal), woken]);
    }
  }

  return {
    settled,
    get state() {
      return watch?.state ?? 'elsewhere';
    },
    get since() {
      return since;
    },
    get reason() {
      return watch === undefined ? undefined : reason;
    },
    start() {
      run().catch(() => settle());
    },
    wake: () => wake(),

    async holderLeaves(leaving) {
      if (lease === undefined || watch !== undefined || !(await lease.isChosen(leaving))) return;
      if (watch !== undefined || stopping.signal.aborted) return;
      isSucceeding = true;
      try {
        await startWatch(false).settled;
        holdsLease = await lease.succeed(leaving);
        if (!holdsLease) await stopWatch();
      } finally {
        isSucceeding = false;
      }
    },

    async close() {
      stopping.abort();
      if (lease !== undefined && holdsLease && watch !== undefined) {
        const isTaken = await lease.handOver(HANDOVER_MS);
        if (!isTaken) await lease.release();
      }
      await stopWatch();
    },
  };
}
