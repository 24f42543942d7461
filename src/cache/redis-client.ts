/**
 * Owns: the Redis clients for a REDIS_URL: one server, Sentinel, or Cluster, plain or over TLS. They queue
 * nothing and repeat nothing: whoever asks would rather do without than wait (design, law 25).
 */
import { createRequire } from 'node:module';
import type { RedisAddress } from '../core/redis-url.js';
import type { RedisClient } from './redis-link.js';

const load = createRequire(import.meta.url);

/** A client for the address; it does not connect by itself. */
export function createRedisClient(address: RedisAddress, random: () => number): RedisClient {
  // Loaded where there is a Redis: most sidecars have none, and pay for it in time and memory all the same.
  const { Cluster, Redis }: typeof import('ioredis') = load('ioredis');
  const retry = backoff(random);
  const common = {
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 2_000,
    // A server that takes commands and never answers is given up, so that they do not pile up there.
    commandTimeout: 2_000,
    socketTimeout: 5_000,
    retryStrategy: retry,
    // After a failover the connection may have stayed on what is a replica now.
    reconnectOnError: (error: Error) => error.message.includes('READONLY'),
    ...(address.username !== undefined && { username: address.username }),
    ...(address.password !== undefined && { password: address.password }),
    ...(address.tls && { tls: {} }),
  };
  switch (address.kind) {
    case 'single':
      return new Redis({ ...common, ...address.nodes[0], db: address.db });
    case 'sentinel':
      return new Redis({
        ...common,
        db: address.db,
        sentinels: [...address.nodes],
        name: address.master ?? '',
        sentinelRetryStrategy: retry,
        ...(address.tls && { enableTLSForSentinelMode: true }),
      });
    case 'cluster':
      return new Cluster([...address.nodes], {
        lazyConnect: true,
        enableOfflineQueue: false,
        clusterRetryStrategy: retry,
        redisOptions: common,
      });
    default:
      return address.kind satisfies never;
  }
}

/** From 100 ms to 2 s, in milliseconds; a fleet does not come back all at once. */
function backoff(random: () => number): (attempt: number) => number {
  return (attempt) => Math.min(2_000, 100 * 2 ** Math.min(attempt, 5)) * (0.75 + random() / 4);
}
