/** A watch by itself, on a clock that a test moves, with everything that it tells. */
import type { Change } from '../../src/core/change.js';
import { createTransport } from '../../src/upstream/transport.js';
import { createWatch, type Watch, type WatchState } from '../../src/upstream/watch.js';
import { createTestClock, type TestClock } from './clock.js';
import { until } from './gate.js';
import type { ScriptedUpstream } from './upstream.js';

export interface WatchSetup {
  readonly random?: () => number;
  readonly authorization?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly onChange?: (change: Change) => Promise<void>;
}

export interface WatchDriver {
  readonly watch: Watch;
  readonly clock: TestClock;
  readonly changes: Change[];
  /** Each time that the watch came to stand. */
  readonly connections: { readonly isGap: boolean; readonly watched: readonly string[] }[];
  readonly states: WatchState[];
  /** Waits until the watch sleeps before its next attempt. */
  asleep(): Promise<void>;
  /** Moves the clock second by second until the watch tries again; tells how many milliseconds that took. */
  untilAwake(): Promise<number>;
  close(): Promise<void>;
}

export const TIMEOUT_MS = 30_000;

export function startWatch(upstream: ScriptedUpstream, setup: WatchSetup = {}): WatchDriver {
  const clock = createTestClock();
  const transport = createTransport();
  const changes: Change[] = [];
  const connections: { isGap: boolean; watched: readonly string[] }[] = [];
  const states: WatchState[] = [];
  const watch = createWatch({
    target: {
      name: 'u',
      origin: upstream.origin,
      path: '/mcp',
      timeoutMs: TIMEOUT_MS,
      injected: { authorization: setup.authorization, headers: setup.headers ?? {} },
    },
    transport,
    clock,
    random: setup.random ?? (() => 0),
    clientInfo: { name: 'mcp-cache-gateway', version: '1.2.3' },
    onConnected: async (info) => {
      connections.push(info);
    },
    onChange: async (change) => {
      await setup.onChange?.(change);
      changes.push(change);
    },
    onState: (state) => states.push(state),
  });
  watch.start();
  const isAsleep = () => watch.state === 'waiting' || watch.state === 'refused';
  return {
    watch,
    clock,
    changes,
    connections,
    states,
    asleep: () => until(isAsleep),
    async untilAwake() {
      await until(isAsleep);
      let waitedMs = 0;
      for (; isAsleep() && waitedMs < 3_600_000; waitedMs += 250) {
        clock.advance(250);
        // The sleeper wakes in a microtask.
        await new Promise(setImmediate);
      }
      return waitedMs;
    },
    async close() {
      await watch.stop();
      await transport.close();
    },
  };
}
