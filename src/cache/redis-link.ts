/**
 * Owns: the connections to Redis, and whether it can be counted on (design, law 25). A command that takes too
 * long or fails puts the link away at once, so that the next request does not wait for it; it comes back when
 * Redis has answered again and whoever depends on it has caught up. One log line per change of state.
 */
import type { Cluster, Redis } from 'ioredis';
import type { Clock } from '../clock.js';

/** How long a request waits for one command, in milliseconds: its four stay below the 250 of law 25. */
export const COMMAND_MS = 60;
/** How long a flush waits, in milliseconds (law 19). */
export const FLUSH_MS = 250;
/** How often Redis is asked whether it is there, in milliseconds. */
export const HEARTBEAT_MS = 2_000;

const TIMED_OUT = 'timed out';

export type RedisClient = Redis | Cluster;

export interface LinkState {
  readonly isUp: boolean;
  /** Why it is away: the error's own word, without addresses or values. */
  readonly reason?: string;
}

export interface RedisLinkDeps {
  readonly client: RedisClient;
  readonly subscriber: RedisClient;
  readonly isCluster: boolean;
  readonly channel: string;
  readonly clock: Clock;
  readonly onMessage: (text: string) => void;
  /** Redis answers again: catches up before anything in it is trusted. Rejecting keeps the link away. */
  readonly reconcile: () => Promise<void>;
  readonly onState: (state: LinkState) => void;
}

export interface RedisLink {
  readonly isUp: boolean;
  /** Resolves when the first attempt to come up has succeeded or failed. */
  readonly settled: Promise<void>;
  start(): void;
  /**
   * Runs a script. Undefined where Redis is away, refuses it or does not answer within `ms` milliseconds.
   * With `evenIfAway` it is tried in any case: for catching up.
   */
  run(
    script: string,
    keys: readonly string[],
    args: readonly (string | number | Buffer)[],
    options: RunOptions,
  ): Promise<unknown>;
  /** Puts the link away: what it holds is not trusted until it has been reconciled. */
  distrust(reason: string): void;
  close(): Promise<void>;
}

export interface RunOptions {
  readonly ms: number;
  readonly evenIfAway?: boolean;
  /** Whether a refusal by a full Redis leaves the link up: it can still be read, and flushed. */
  readonly mayBeRefused?: boolean;
  /** Whether running out of time leaves the link up: a large value may take longer than anybody waits for it. */
  readonly mayTakeLonger?: boolean;
}

export function createRedisLink(deps: RedisLinkDeps): RedisLink {
  const { client, subscriber, clock } = deps;
  const stopping = new AbortController();
  let state: 'starting' | 'up' | 'away' = 'starting';
  let settle: () => void = () => {};
  const settled = new Promise<void>((resolve) => {
    settle = resolve;
  });
  let wake: () => void = () => {};
  /** How often something came up that must be caught up with. */
  let distrusts = 0;

  for (const one of [client, subscriber]) {
    one.on('error', (error: Error) => goAway(reasonOf(error)));
    one.on('close', () => goAway('connection closed'));
    one.on('ready', () => wake());
  }
  subscriber.on('message', (_channel: string, text: string) => deps.onMessage(text));

  function goAway(reason: string): void {
    if (state === 'away' || stopping.signal.aborted) return;
    state = 'away';
    deps.onState({ isUp: false, reason });
  }

  function comeUp(): void {
    if (state === 'up' || stopping.signal.aborted) return;
    state = 'up';
    deps.onState({ isUp: true });
  }

  async function within<T>(promise: Promise<T>, ms: number): Promise<T> {
    const settledSignal = new AbortController();
    const timeOut = async (): Promise<never> => {
      await clock.sleep(ms, settledSignal.signal);
      // Where this process was busy, the answer may be there and merely unread: a turn more shows.
      await clock.sleep(1, settledSignal.signal);
      throw new Error(TIMED_OUT);
    };
    try {
      return await Promise.race([promise, timeOut()]);
    } finally {
      settledSignal.abort();
      promise.catch(() => {});
    }
  }

  async function beat(): Promise<void> {
    try {
      // To come back it must be as quick as requests need it to be; to stay, merely there.
      const limitMs = state === 'up' ? FLUSH_MS : COMMAND_MS;
      await within(Promise.all([client.call('ping'), subscriber.call('ping')]), limitMs);
      if (state !== 'up') {
        await within(subscriber.subscribe(deps.channel), FLUSH_MS);
        for (let seen = -1; seen !== distrusts; ) {
          seen = distrusts;
          await deps.reconcile();
        }
        comeUp();
      } else if (deps.isCluster) {
        // There the client changes the node that it listens to without a word; what was lost shows here.
        await deps.reconcile();
      }
    } catch (error) {
      goAway(reasonOf(error));
    }
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await beat();
      settle();
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      await Promise.race([clock.sleep(HEARTBEAT_MS, stopping.signal), woken]);
    }
  }

  return {
    get isUp() {
      return state === 'up';
    },
    settled,

    start() {
      // The first word is asked for once both stand, or have failed: sooner, nothing would be queued for them.
      const connecting = [client, subscriber].map((one) => one.connect());
      Promise.allSettled(connecting)
        .then(run)
        .catch(() => {});
    },

    async run(script, keys, args, options) {
      if (state !== 'up' && options.evenIfAway !== true) return undefined;
      try {
        return await within(client.callBuffer('eval', script, keys.length, ...keys, ...args), options.ms);
      } catch (error) {
        const reason = reasonOf(error);
        const isExcused =
          (options.mayBeRefused === true && isRefusal(error)) ||
          (options.mayTakeLonger === true && reason === TIMED_OUT);
        if (!isExcused) goAway(reason);
        if (options.evenIfAway === true) throw error;
        return undefined;
      }
    },

    distrust(reason) {
      distrusts += 1;
      goAway(reason);
    },

    async close() {
      stopping.abort();
      state = 'away';
      client.disconnect();
      subscriber.disconnect();
    },
  };
}

/** Redis is full. Where it takes no writes for another reason, not even a flush, it is of no use. */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && /\bOOM\b/.test(error.message);
}

/** The first word of Redis's own error, or the code of a socket's; addresses and values stay out of the log. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  if ('code' in error && typeof error.code === 'string') return error.code;
  return /^[A-Z]{2,}\b/.exec(error.message)?.[0] ?? (error.message === TIMED_OUT ? TIMED_OUT : error.name);
}
