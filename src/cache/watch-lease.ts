/** Owns: the lease on the watch of one upstream, in Redis, and what replicas tell each other of it (law 28). */
import type { Clock } from '../clock.js';
import type { UpstreamKeys } from './redis-keys.js';
import { COMMAND_MS, FLUSH_MS, type RedisLink } from './redis-link.js';
import { HOLD, RELEASE, REPLACE } from './redis-scripts.js';

export interface WatchMessage {
  readonly kind: 'watch-leaving' | 'watch-taken' | 'watch-released';
  readonly tag: string;
  readonly by: string;
}

export interface RedisWatchLeaseDeps {
  readonly link: RedisLink;
  readonly clock: Clock;
  readonly keys: UpstreamKeys;
  readonly channel: string;
  readonly instance: string;
  /** On a cluster nobody can tell how many hear a message. */
  readonly isCluster: boolean;
  readonly leaseMs: number;
  readonly generation: () => Promise<string | undefined>;
  readonly knownGeneration: () => string | undefined;
}

export function createRedisWatchLease(deps: RedisWatchLeaseDeps) {
  const { link, keys, instance } = deps;
  let onTaken: () => void = () => {};

  function messageOf(kind: WatchMessage['kind']): string {
    const message: WatchMessage = { kind, tag: keys.tag, by: instance };
    return JSON.stringify(message);
  }

  async function holderOf(lease: string, ms: number): Promise<string | undefined> {
    const reply = await link.run(HOLD, [lease], [instance, ms], { ms: COMMAND_MS, mayBeRefused: true });
    return Buffer.isBuffer(reply) ? reply.toString() : undefined;
  }

  return {
    async hold(): Promise<'mine' | 'other' | undefined> {
      const holder = await holderOf(keys.watchLease, deps.leaseMs);
      if (holder === undefined) return undefined;
      return holder === instance ? 'mine' : 'other';
    },

    async isChosen(leaving: string): Promise<boolean> {
      return (await holderOf(`${keys.watchLease}:after:${leaving}`, deps.leaseMs)) === instance;
    },

    async succeed(leaving: string): Promise<boolean> {
      const reply = await link.run(REPLACE, [keys.watchLease], [instance, deps.leaseMs, leaving], {
        ms: FLUSH_MS,
      });
      if (reply !== 1) return false;
      await tell('watch-taken');
      return true;
    },

    async handOver(ms: number): Promise<boolean> {
      const taken = new Promise<true>((resolve) => {
        onTaken = () => resolve(true);
      });
      const listeners = await tell('watch-leaving');
      // Nobody but ourselves hears it.
      if (listeners < 2 && !deps.isCluster) return false;
      return Promise.race([taken, deps.clock.sleep(ms).then(() => false)]);
    },

    async release(): Promise<void> {
      const message = messageOf('watch-released');
      await link.run(RELEASE, [keys.watchLease], [instance, deps.channel, message], { ms: FLUSH_MS });
    },

    generation: deps.generation,
    knownGeneration: deps.knownGeneration,

    /** Another replica took over. */
    taken: () => onTaken(),
  };

  /** Resolves with how many heard it. */
  async function tell(kind: WatchMessage['kind']): Promise<number> {
    const script = `return redis.call('publish', ARGV[1], ARGV[2])`;
    const reply = await link.run(script, [keys.watchLease], [deps.channel, messageOf(kind)], {
      ms: FLUSH_MS,
    });
    return typeof reply === 'number' ? reply : 0;
  }
}

export type RedisWatchLease = ReturnType<typeof createRedisWatchLease>;
