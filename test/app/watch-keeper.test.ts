/** Who watches, and what a gap flushes (laws 21 and 28). */
import { beforeEach, describe, expect, test } from 'vitest';
import {
  createWatchKeeper,
  WATCH_TURN_MS,
  type WatchHandlers,
  type WatchKeeper,
  type WatchLease,
} from '../../src/app/watch-keeper.js';
import type { Watch } from '../../src/upstream/watch.js';
import { createTestClock, type TestClock } from '../support/clock.js';
import { closeAfterEach } from '../support/closing.js';
import { createGate, until } from '../support/gate.js';

const closing = closeAfterEach();
let clock: TestClock;
let flushes: string[];
let watches: { handlers: WatchHandlers; isStopped: boolean }[];
/** What the lease says, as a test wills. */
let held: 'mine' | 'other' | undefined;
let generation: string;
let known: string;
let calls: string[];
let mayHandOver: boolean;

beforeEach(() => {
  clock = createTestClock();
  flushes = [];
  watches = [];
  held = 'mine';
  generation = '1';
  known = '1';
  calls = [];
  mayHandOver = false;
});

function makeWatch(handlers: WatchHandlers): Watch {
  const made = { handlers, isStopped: false };
  watches.push(made);
  return {
    start: () => {},
    settled: Promise.resolve(),
    get state() {
      return made.isStopped ? ('stopped' as const) : ('connected' as const);
    },
    async stop() {
      made.isStopped = true;
    },
  };
}

const lease: WatchLease = {
  hold: async () => held,
  isChosen: async () => true,
  async succeed() {
    calls.push('succeed');
    return true;
  },
  async handOver() {
    calls.push('handOver');
    return mayHandOver;
  },
  async release() {
    calls.push('release');
  },
  generation: async () => generation,
  knownGeneration: () => known,
};

function open(withLease = true): WatchKeeper {
  const keeper = createWatchKeeper({
    clock,
    random: () => 0,
    makeWatch,
    lease: withLease ? lease : undefined,
    flush: async (reach) => void flushes.push(reach),
  });
  keeper.start();
  return closing(keeper);
}

const standing = () => watches.filter(({ isStopped }) => !isStopped);

async function turn(): Promise<void> {
  await until(() => clock.sleepers > 0);
  clock.advance(WATCH_TURN_MS);
}

async function connect(isGap: boolean): Promise<void> {
  await standing()[0]?.handlers.onConnected({ isGap });
}

describe('alone', () => {
  test('it watches at once, flushes its own upon the first connection, and all upon a gap', async () => {
    const keeper = open(false);
    await keeper.settled;
    expect(standing()).toHaveLength(1);
    await connect(false);
    await connect(true);
    expect(flushes).toEqual(['here', 'everywhere']);
  });
});

describe('in a fleet', () => {
  test('the first to hold the watch leaves the shared tier as it is', async () => {
    await open().settled;
    await connect(false);
    expect(flushes).toEqual(['here']);
  });

  test('a gap of the holder flushes the shared tier, unless its generation moved meanwhile', async () => {
    await open().settled;
    await connect(false);
    standing()[0]?.handlers.onState('waiting', {});
    await connect(true);
    expect(flushes).toEqual(['here', 'everywhere']);
    standing()[0]?.handlers.onState('waiting', {});
    generation = '2';
    await connect(true);
    expect(flushes).toEqual(['here', 'everywhere', 'here']);
  });

  test('who does not hold it watches nothing, and takes over with a flush once the holder is gone', async () => {
    held = 'other';
    const keeper = open();
    await keeper.settled;
    expect(keeper.state).toBe('elsewhere');
    expect(watches).toHaveLength(0);
    held = 'mine';
    await turn();
    await until(() => watches.length === 1);
    await connect(false);
    expect(flushes).toEqual(['everywhere']);
  });

  test('taking over flushes only its own where the generation has moved since', async () => {
    held = 'other';
    await open().settled;
    held = 'mine';
    generation = '2';
    await turn();
    await until(() => watches.length === 1);
    await connect(false);
    expect(flushes).toEqual(['here']);
  });

  test('without Redis it watches for itself and flushes its own, and stops when another holds the watch', async () => {
    held = undefined;
    await open().settled;
    await connect(false);
    await connect(true);
    expect(flushes).toEqual(['here', 'here']);
    held = 'other';
    await turn();
    await until(() => standing().length === 0);
  });

  test('a successor stands before the lease is taken over, and no turn in between undoes it', async () => {
    held = 'other';
    const gate = createGate();
    const slow: WatchLease = {
      ...lease,
      async succeed() {
        calls.push(`succeed with ${standing().length}`);
        await gate.pass();
        return true;
      },
    };
    const keeper = closing(
      createWatchKeeper({
        clock,
        random: () => 0,
        makeWatch,
        lease: slow,
        flush: async (reach) => void flushes.push(reach),
      }),
    );
    keeper.start();
    await keeper.settled;
    const taking = keeper.holderLeaves('old');
    await gate.arrivals(1);
    const sleeping = clock.sleepers;
    clock.advance(WATCH_TURN_MS);
    await until(() => clock.sleepers >= sleeping);
    expect(standing()).toHaveLength(1);
    held = 'mine';
    gate.open();
    await taking;
    await connect(false);
    expect(calls).toEqual(['succeed with 1']);
    expect(flushes).toEqual(['here']);
    expect(standing()).toHaveLength(1);
  });

  test('a leaving holder keeps its stream until its successor stands, else gives the lease up', async () => {
    const first = open();
    await first.settled;
    mayHandOver = true;
    await first.close();
    expect(calls).toEqual(['handOver']);
    expect(standing()).toHaveLength(0);
    mayHandOver = false;
    const second = open();
    await second.settled;
    await second.close();
    expect(calls).toEqual(['handOver', 'handOver', 'release']);
  });
});
