/** The Redis store and the tiered store as the gateway puts them together, on a real server, with their doings told. */
import { randomUUID } from 'node:crypto';
import { createMemoryStore, type MemoryStore } from '../../src/cache/memory-store.js';
import { createRedisClient } from '../../src/cache/redis-client.js';
import { channelOf, keysOf, type UpstreamKeys } from '../../src/cache/redis-keys.js';
import { createRedisLink, type LinkState, type RedisLink } from '../../src/cache/redis-link.js';
import { createRedisStore, type RedisStore } from '../../src/cache/redis-store.js';
import { createRedisTier, type RedisTier } from '../../src/cache/redis-tier.js';
import type { Store } from '../../src/cache/store.js';
import { type Clock, createClock } from '../../src/clock.js';
import { parseRedisUrl } from '../../src/core/redis-url.js';
import type { Entry } from '../../src/core/snapshot.js';

export const UPSTREAM = { name: 'u', url: 'http://u.test/mcp' };
export const KEEP_MS = 60_000;
export const MAX_ENTRY_BYTES = 100_000;

export interface StoreOptions {
  readonly url: string;
  readonly prefix?: string;
  readonly upstream?: { readonly name: string; readonly url: string };
}

export function addressOf(url: string) {
  const address = parseRedisUrl(url);
  if (address === undefined) throw new Error(`no Redis URL: ${url}`);
  return address;
}

export interface OpenRedisStore {
  readonly store: RedisStore;
  readonly link: RedisLink;
  readonly keys: UpstreamKeys;
  readonly clock: Clock;
  /** Upstreams whose generation moved; values that were none; changes of state. */
  readonly moved: string[];
  readonly strange: string[];
  readonly states: LinkState[];
  readonly messages: string[];
  close(): Promise<void>;
}

/** The Redis store alone. */
export async function openRedisStore(options: StoreOptions): Promise<OpenRedisStore> {
  const { prefix = `t${randomUUID()}`, upstream = UPSTREAM } = options;
  const clock = createClock();
  const address = addressOf(options.url);
  const moved: string[] = [];
  const strange: string[] = [];
  const states: LinkState[] = [];
  const messages: string[] = [];
  const keys = keysOf(prefix, upstream);
  const link = createRedisLink({
    client: createRedisClient(address, () => 0),
    subscriber: createRedisClient(address, () => 0),
    isCluster: address.kind === 'cluster',
    channel: channelOf(prefix),
    clock,
    onMessage: (text) => messages.push(text),
    reconcile: () => store.refresh(upstream.name),
    onState: (state) => states.push(state),
  });
  const store = createRedisStore({
    link,
    clock,
    keysOf: () => keys,
    channel: channelOf(prefix),
    instance: randomUUID(),
    keepPastExpiryMs: KEEP_MS,
    maxEntryBytes: MAX_ENTRY_BYTES,
    onMoved: (name) => moved.push(name),
    onStrangeValue: (name) => strange.push(name),
  });
  link.start();
  await link.settled;
  return { store, link, keys, clock, moved, strange, states, messages, close: () => link.close() };
}

export interface OpenTier {
  readonly store: Store;
  readonly memory: MemoryStore;
  readonly tier: RedisTier;
  readonly keys: UpstreamKeys;
  readonly clock: Clock;
  readonly states: LinkState[];
  readonly strange: string[];
  close(): Promise<void>;
}

/** Memory over Redis, with the channel between replicas. */
export async function openTier(options: StoreOptions): Promise<OpenTier> {
  const { prefix = `t${randomUUID()}`, upstream = UPSTREAM } = options;
  const clock = createClock();
  const memory = createMemoryStore({ maxBytes: 10_000_000, maxEntryBytes: MAX_ENTRY_BYTES });
  const states: LinkState[] = [];
  const strange: string[] = [];
  const tier = createRedisTier({
    address: addressOf(options.url),
    prefix,
    memory,
    clock,
    random: () => 0,
    upstreams: [upstream],
    keepPastExpiryMs: KEEP_MS,
    maxEntryBytes: MAX_ENTRY_BYTES,
    watchLeaseMs: 9_000,
    onState: (state) => states.push(state),
    onStrangeValue: (name) => strange.push(name),
    onHolderLeaves: () => {},
    onLeaseWait: () => {},
    onWatchReleased: () => {},
  });
  await tier.start();
  const keys = keysOf(prefix, upstream);
  return { store: tier.store, memory, tier, keys, clock, states, strange, close: () => tier.close() };
}

/** A list entry, public and with a minute to live unless told otherwise. */
export function entryOf(
  clock: Clock,
  fields: Partial<Omit<Entry, 'body' | 'expiresAt'>> & {
    readonly body?: string;
    readonly lifetimeMs?: number;
  } = {},
): Entry {
  const { body = '"tools":[{"name":"a"}]}', lifetimeMs = 60_000, ...rest } = fields;
  const now = clock.now();
  const bytes = Buffer.from(body);
  const start = bytes.indexOf('[') + 1;
  return {
    method: 'tools/list',
    scope: 'public',
    authContext: 'context-a',
    body: bytes,
    ...(start > 0 && { itemsAt: { start, end: bytes.lastIndexOf(']') } }),
    sentHints: { ttlMs: true, cacheScope: true },
    receivedAt: now,
    expiresAt: now + lifetimeMs,
    pages: 1,
    items: 1,
    uris: [],
    seed: 'seed',
    ...rest,
  };
}
