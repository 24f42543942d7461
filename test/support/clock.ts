/** A clock that a test moves. Sleepers wake when their time has come; sockets know nothing of it. */
import type { Clock } from '../../src/clock.js';

export interface TestClock extends Clock {
  advance(ms: number): void;
  /** How many sleep at this moment. */
  readonly sleepers: number;
  /** When the next of them wakes; undefined where nobody sleeps. */
  readonly nextAt: number | undefined;
}

export function createTestClock(): TestClock {
  let now = 1_000;
  const sleepers = new Set<{ at: number; wake: () => void }>();
  return {
    now: () => now,
    timer(ms, onTime) {
      const sleeper = {
        at: now + ms,
        wake: () => {
          sleepers.delete(sleeper);
          onTime();
        },
      };
      sleepers.add(sleeper);
      return () => void sleepers.delete(sleeper);
    },
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason);
          return;
        }
        const sleeper = {
          at: now + ms,
          wake: () => {
            sleepers.delete(sleeper);
            signal?.removeEventListener('abort', onAbort);
            resolve();
          },
        };
        const onAbort = () => {
          sleepers.delete(sleeper);
          reject(signal?.reason);
        };
        sleepers.add(sleeper);
        signal?.addEventListener('abort', onAbort, { once: true });
      }),
    advance(ms) {
      now += ms;
      for (const sleeper of [...sleepers]) if (sleeper.at <= now) sleeper.wake();
    },
    get sleepers() {
      return sleepers.size;
    },
    get nextAt() {
      let next: number | undefined;
      for (const { at } of sleepers) if (next === undefined || at < next) next = at;
      return next;
    },
  };
}
