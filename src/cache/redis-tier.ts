/**
 * Owns: how the parts of the shared tier are put together: the link, the store above memory, the leases, and the
 * one channel on which replicas tell each other what happened.
 */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../clock.js';
import { isObject } from '../core/change.js';
import { isFresh } from '../core/freshness.js';
import type { RedisAddress } from '../core/redis-url.js';
import { createFetchLeases } from './fetch-lease.js';
import type { Fleet } from './flights.js';
import type { MemoryStore } from './memory-store.js';
import { createRedisClient } from './redis-client.js';
import { channelOf, keysOf, type UpstreamKeys } from './redis-keys.js';
import { createRedisLink, type LinkState } from './redis-link.js';
import { createRedisStore } from './redis-store.js';
import type { Drop, Store } from './store.js';
import { createTieredStore } from './tiered-store.js';
import { createRedisWatchLease, type RedisWatchLease } from './watch-lease.js';

export interface RedisTierDeps {
  readonly address: RedisAddress;
  readonly prefix: string;
  readonly memory: MemoryStore;
  readonly clock: Clock;
  /** A number from 0 up to, and without, 1. */
  readonly random: () => number;
  readonly upstreams: readonly { readonly name: string; readonly url: string }[];
  readonly keepPastExpiryMs: number;
  readonly maxEntryBytes: number;
  readonly watchLeaseMs: number;
  readonly onState: (state: LinkState) => void;
  readonly onStrangeValue: (upstream: string) => void;
  /** A fetch waited for another replica's. */
  readonly onLeaseWait: (upstream: string) => void;
  /** Another replica that holds an upstream's watch is leaving. */
  readonly onHolderLeaves: (upstream: string, leaving: string) => void;
  /** The watch of an upstream was given up. */
  readonly onWatchReleased: (upstream: string) => void;
}

export interface RedisTier {
  readonly store: Store;
  readonly fleet: Fleet;
  readonly isUp: () => boolean;
  /** The shared generation, as it was last known. */
  readonly generation: (upstream: string) => string | undefined;
  watchLease(upstream: string): RedisWatchLease;
  /** Connects; resolves when the first attempt has succeeded or failed. */
  start(): Promise<void>;
  close(): Promise<void>;
}

export function createRedisTier(deps: RedisTierDeps): RedisTier {
  const { clock, memory } = deps;
  const instance = randomUUID();
  const channel = channelOf(deps.prefix);
  const keysByName = new Map(
    deps.upstreams.map((upstream) => [upstream.name, keysOf(deps.prefix, upstream)]),
  );
  const namesByTag = new Map([...keysByName].map(([name, keys]) => [keys.tag, name]));
  const keysFor = (upstream: string): UpstreamKeys => {
    const keys = keysByName.get(upstream);
    if (keys === undefined) throw new Error('an upstream that is not configured');
    return keys;
  };
  const client = createRedisClient(deps.address, deps.random);
  const link = createRedisLink({
    client,
    subscriber: createRedisClient(deps.address, deps.random),
    isCluster: deps.address.kind === 'cluster',
    channel,
    clock,
    onMessage: (text) => receive(text),
    async reconcile() {
      await store.reconcile();
      await fetchLeases.catchUp();
    },
    onState(state) {
      if (!state.isUp) fetchLeases.linkLost();
      deps.onState(state);
    },
  });
  const shared = createRedisStore({
    link,
    clock,
    keysOf: keysFor,
    channel,
    instance,
    keepPastExpiryMs: deps.keepPastExpiryMs,
    maxEntryBytes: deps.maxEntryBytes,
    onMoved: (upstream) => void memory.flush(upstream, 'here'),
    onStrangeValue: deps.onStrangeValue,
  });
  const store = createTieredStore({
    memory,
    shared,
    upstreams: [...keysByName.keys()],
    distrust: () => link.distrust('a flush is owed'),
  });
  const fetchLeases = createFetchLeases({ link, clock, channel });
  const watchLeases = new Map<string, RedisWatchLease>();

  function watchLease(upstream: string): RedisWatchLease {
    const found =
      watchLeases.get(upstream) ??
      createRedisWatchLease({
        link,
        clock,
        keys: keysFor(upstream),
        channel,
        instance,
        isCluster: deps.address.kind === 'cluster',
        leaseMs: deps.watchLeaseMs,
        generation: async () => (await shared.stamp(upstream)).shared?.generation,
        knownGeneration: () => shared.known(upstream)?.generation,
      });
    watchLeases.set(upstream, found);
    return found;
  }

  /** One message of another replica; what is not of a known form is none. */
  function receive(text: string): void {
    const message = parseMessage(text);
    if (message === undefined) return;
    const { kind, lease } = message;
    if ((kind === 'fetched' || kind === 'abandoned') && typeof lease === 'string') {
      fetchLeases.fetched({ kind, lease });
      return;
    }
    const upstream = namesByTag.get(String(message.tag));
    if (upstream === undefined || message.by === instance) return;
    const by = String(message.by);
    if (kind === 'flush') store.flushedElsewhere(upstream, String(message.generation));
    else if (kind === 'drop') dropElsewhere(upstream, message.what);
    else if (kind === 'watch-leaving') deps.onHolderLeaves(upstream, by);
    else if (kind === 'watch-taken') watchLeases.get(upstream)?.taken();
    else if (kind === 'watch-released') deps.onWatchReleased(upstream);
  }

  function dropElsewhere(upstream: string, what: unknown): void {
    const drop = readDrop(what);
    // What cannot be understood is taken for the worst: a newer replica may drop what this one does not know of.
    if (drop === undefined) void memory.flush(upstream, 'here');
    else store.droppedElsewhere(upstream, drop);
  }

  return {
    store,
    fleet: {
      async enter(upstream, key, options) {
        const entered = await fetchLeases.enter(keysFor(upstream).fetchLease(key), options);
        if (entered.waited) deps.onLeaseWait(upstream);
        return entered;
      },
      async hasFresh({ upstream, keys }) {
        const isUsable = (entry: { readonly expiresAt: number }) => isFresh(entry, clock.now());
        const { entries } = await store.look(upstream, [keys.own, keys.shared], isUsable);
        return entries.some((entry) => entry !== undefined && isUsable(entry));
      },
    },
    isUp: () => link.isUp,
    generation: (upstream) => shared.known(upstream)?.generation,
    watchLease,
    start() {
      link.start();
      return link.settled;
    },
    close: () => link.close(),
  };
}

function parseMessage(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const message: unknown = JSON.parse(text);
    return isObject(message) ? message : undefined;
  } catch {
    return undefined;
  }
}

function readDrop(what: unknown): Drop | undefined {
  if (!isObject(what)) return undefined;
  if (what.kind === 'resource' && typeof what.uri === 'string') return { kind: 'resource', uri: what.uri };
  if (what.kind === 'context' && typeof what.authContext === 'string') {
    return { kind: 'context', authContext: what.authContext };
  }
  if (what.kind === 'keys' && Array.isArray(what.keys)) {
    return { kind: 'keys', keys: what.keys.filter((key) => typeof key === 'string') };
  }
  return undefined;
}
