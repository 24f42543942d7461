/**
 * Owns: time. One clock is made in `main` and handed down; a lifetime is a duration, so the clock is the
 * monotonic one, which no correction of the wall clock can move (design, law 6).
 */
import { performance } from 'node:perf_hooks';

export interface Clock {
  /** Milliseconds since an arbitrary instant; never goes back. */
  now(): number;
  /** Resolves after `ms` milliseconds; rejects with the signal's reason where that aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls back after `ms` milliseconds, unless what it gives back is called before. */
  timer(ms: number, onTime: () => void): () => void;
}

/** The process's own clock. A sleep does not keep the process alive. */
export function createClock(): Clock {
  return {
    now: () => performance.now(),
    timer(ms, onTime) {
      const timer = setTimeout(onTime, ms).unref();
      return () => clearTimeout(timer);
    },
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason);
          return;
        }
        const onAbort = () => {
          clearTimeout(timer);
          reject(signal?.reason);
        };
        const timer = setTimeout(() => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        }, ms).unref();
        signal?.addEventListener('abort', onAbort, { once: true });
      }),
  };
}

/** The time of day, for people alone, so many milliseconds ago; as ISO 8601. */
export function wallTimeBefore(ms: number): string {
  return new Date(Date.now() - ms).toISOString();
}
