/**
 * Owns: the Redis clients for a REDIS_URL: one server, Sentinel, or Cluster, plain or over TLS. They queue
 * nothing and repeat nothing: whoever asks would rather do without than wait (design, law 25).
 */
import { Cluster, Redis } from 'ioredis';
import type { RedisClient } from './redis-link.js';

/** What a REDIS_URL says. */
export interface RedisAddress {
  readonly kind: 'single' | 'sentinel' | 'cluster';
  readonly tls: boolean;
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  /** The name of the master that the sentinels know. */
  readonly master?: string;
  readonly username?: string;
  readonly password?: string;
  readonly db: number;
}

const SCHEMES: Readonly<Record<string, Pick<RedisAddress, 'kind' | 'tls'> & { readonly port: number }>> = {
  redis: { kind: 'single', tls: false, port: 6379 },
  rediss: { kind: 'single', tls: true, port: 6379 },
  'redis-sentinel': { kind: 'sentinel', tls: false, port: 26_379 },
  'rediss-sentinel': { kind: 'sentinel', tls: true, port: 26_379 },
  'redis-cluster': { kind: 'cluster', tls: false, port: 6379 },
  'rediss-cluster': { kind: 'cluster', tls: true, port: 6379 },
};

/** The address that a REDIS_URL names; undefined for what is none. */
export function parseRedisUrl(text: string): RedisAddress | undefined {
  const match = /^([a-z-]+):\/\/(?:([^@/]*)@)?([^/?#]+)(?:\/([^?#]*))?$/.exec(text);
  const scheme = SCHEMES[match?.[1] ?? ''];
  if (match === null || scheme === undefined) return undefined;
  const [, , user = '', hosts = '', path = ''] = match;
  const nodes = hosts.split(',').map((host) => parseHost(host, scheme.port));
  if (nodes.some((node) => node === undefined) || (scheme.kind === 'single' && nodes.length > 1))
    return undefined;
  const [name, db] = scheme.kind === 'sentinel' ? path.split('/') : [undefined, path];
  if (scheme.kind === 'sentinel' && (name === undefined || !/^[\w.-]+$/.test(name))) return undefined;
  if (!/^(\d{1,4})?$/.test(db ?? '') || (scheme.kind === 'cluster' && (db ?? '') !== '')) return undefined;
  const credentials = parseCredentials(user);
  if (credentials === undefined) return undefined;
  return {
    kind: scheme.kind,
    tls: scheme.tls,
    nodes: nodes.filter((node) => node !== undefined),
    db: Number(db ?? 0),
    ...(name !== undefined && { master: name }),
    ...credentials,
  };
}

function parseHost(text: string, defaultPort: number): { host: string; port: number } | undefined {
  const match = /^(\[[0-9a-fA-F:.]+\]|[\w.-]+)(?::(\d{1,5}))?$/.exec(text);
  const port = Number(match?.[2] ?? defaultPort);
  if (match?.[1] === undefined || port < 1 || port > 65_535) return undefined;
  return { host: match[1].replace(/^\[|\]$/g, ''), port };
}

function parseCredentials(text: string): { username?: string; password?: string } | undefined {
  if (text === '') return {};
  const cut = text.indexOf(':');
  try {
    const username = decodeURIComponent(cut === -1 ? text : text.slice(0, cut));
    const password = cut === -1 ? '' : decodeURIComponent(text.slice(cut + 1));
    return { ...(username !== '' && { username }), ...(password !== '' && { password }) };
  } catch {
    return undefined;
  }
}

/** A client for the address; it does not connect by itself. */
export function createRedisClient(address: RedisAddress): RedisClient {
  const common = {
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 2_000,
    // A server that takes commands and never answers is given up, so that they do not pile up there.
    commandTimeout: 2_000,
    socketTimeout: 5_000,
    retryStrategy: backoff,
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
        sentinelRetryStrategy: backoff,
        ...(address.tls && { enableTLSForSentinelMode: true }),
      });
    case 'cluster':
      return new Cluster([...address.nodes], {
        lazyConnect: true,
        enableOfflineQueue: false,
        clusterRetryStrategy: backoff,
        redisOptions: common,
      });
    default:
      return address.kind satisfies never;
  }
}

/** From 100 ms to 2 s, in milliseconds; a fleet does not come back all at once. */
function backoff(attempt: number): number {
  return Math.min(2_000, 100 * 2 ** Math.min(attempt, 5)) * (0.75 + Math.random() / 4);
}
