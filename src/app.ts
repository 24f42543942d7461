/**
 * Owns: composition: configuration, clock and log in; a gateway with its two listeners out. Builds everything
 * by hand, and closes it in the opposite order.
 */
import Fastify, { type FastifyInstance } from 'fastify';
import type { Changes } from './cache/changes.js';
import { type CacheOptions, createCache } from './cache/compose.js';
import { createMemoryStore, type MemoryStore } from './cache/memory-store.js';
import type { RedisAddress } from './cache/redis-client.js';
import { createRedisTier, type RedisTier } from './cache/redis-tier.js';
import { createVerified } from './cache/verified.js';
import type { Clock } from './clock.js';
import type { Config, UpstreamConfig } from './config.js';
import { type AccessRules, isLoopbackAddress } from './core/access.js';
import { publicNames } from './core/resource-metadata.js';
import { registerAccess } from './http/access.js';
import { type AdminOptions, registerAdminRoutes } from './http/admin.js';
import { registerMcpRoutes } from './http/routes.js';
import { createServe, SERVED_METHODS, type UpstreamRoute } from './http/serve.js';
import { createMetrics, type Metrics } from './metrics.js';
import { createOverview, type Overview } from './overview.js';
import type { Logger } from './telemetry.js';
import { createPageSource } from './upstream/page-source.js';
import { createTransport, type Transport } from './upstream/transport.js';
import { createWatch } from './upstream/watch.js';
import { createWatchKeeper, WATCH_LEASE_MS, type WatchKeeper, type WatchLease } from './watch-keeper.js';

export interface GatewayDeps {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
  /** The gateway's own version, told to upstreams that it watches. */
  readonly version: string;
  /** A number from 0 up to, and without, 1. */
  readonly random: () => number;
}

export interface Gateway {
  /** Begins to watch, then listens on both addresses; resolves with the addresses. */
  listen(): Promise<{ readonly url: string; readonly adminUrl: string }>;
  /** Stops taking requests, lets those in flight end within SHUTDOWN_GRACE_MS, and closes everything. */
  close(): Promise<void>;
}

/** How long listening waits for Redis and the first watches, in milliseconds: their flush then hits an empty cache. */
const HEAD_START_MS = 250;

/** What the parts of a gateway share. */
interface Parts {
  readonly deps: GatewayDeps;
  readonly transport: Transport;
  readonly memory: MemoryStore;
  readonly metrics: Metrics;
  readonly keepers: Map<string, WatchKeeper>;
  readonly redis: RedisTier | undefined;
  readonly overview: Overview;
}

function createParts(deps: GatewayDeps): Parts {
  const { config, clock } = deps;
  const names = config.upstreams.map(({ name }) => name);
  const metrics = createMetrics(names);
  const memory = createMemoryStore({
    maxBytes: config.cacheMaxBytes,
    maxEntryBytes: config.cacheMaxEntryBytes,
    onEvict: metrics.evicted,
  });
  const keepers = new Map<string, WatchKeeper>();
  const redis =
    config.redis === undefined ? undefined : redisTier(deps, config.redis, { memory, keepers, metrics });
  const overview = createOverview({
    upstreams: names,
    memory,
    keepers,
    metrics,
    clock,
    wallNow: Date.now,
    sharedGeneration: (upstream) => redis?.generation(upstream),
  });
  return { deps, transport: createTransport(), memory, metrics, keepers, redis, overview };
}

export function createGateway(deps: GatewayDeps): Gateway {
  const { config, clock, log } = deps;
  const parts = createParts(deps);
  const { transport, metrics, keepers, redis } = parts;
  const { listCache, changes } = createCache(cacheOptions(parts));
  for (const upstream of config.upstreams.filter(({ watch }) => watch === 'auto')) {
    const lease = redis?.watchLease(upstream.name);
    keepers.set(upstream.name, keeperFor(upstream, deps, { transport, changes, lease }));
  }
  const serve = createServe({
    listCache,
    changes,
    verified: createVerified(clock, { sharing: config.publicSharing, ttlMs: config.verifiedTtlMs }),
    transport,
    pageSource: createPageSource({ transport, clock, maxBytes: config.cacheMaxEntryBytes }),
    clock,
    log,
    onEnd({ upstream, method = 'other', outcome = 'error', reason, collapsed, pages }, durationMs) {
      if (upstream === undefined) return;
      metrics.request({ upstream, method, outcome, reason, collapsed, pages, durationMs });
    },
    onFetched: metrics.upstreamFetch,
    authHeaders: config.authHeaders,
    varyHeaders: config.varyHeaders,
  });
  let isReady = false;

  const mcp = createListener();
  registerAccess(mcp, { rules: accessRules(config, config.host), methods: [...SERVED_METHODS, 'OPTIONS'] });
  registerMcpRoutes(mcp, {
    upstreams: new Map(config.upstreams.map((upstream) => [upstream.name, routeOf(upstream, config)])),
    serve,
    maxBodyBytes: config.maxBodyBytes,
  });
  const admin = createListener();
  registerAccess(admin, { rules: accessRules(config, config.adminHost), methods: [] });
  registerAdminRoutes(
    admin,
    adminOptions(parts, changes, () => isReady),
  );

  async function headStart(): Promise<void> {
    await redis?.start();
    for (const keeper of keepers.values()) keeper.start();
    await Promise.all([...keepers.values()].map((keeper) => keeper.settled));
  }

  return {
    async listen() {
      const adminUrl = await admin.listen({ host: config.adminHost, port: config.adminPort });
      await Promise.race([headStart(), clock.sleep(HEAD_START_MS)]);
      const url = await mcp.listen({ host: config.host, port: config.port });
      isReady = true;
      log.info({ url, adminUrl }, 'listening');
      return { url, adminUrl };
    },

    async close() {
      isReady = false;
      const handover = Promise.all([...keepers.values()].map((keeper) => keeper.close()));
      await drain(mcp, clock, config.shutdownGraceMs);
      await handover;
      await admin.close();
      await redis?.close();
      await transport.close();
    },
  };
}

function adminOptions(
  { deps, overview, metrics, memory, keepers, redis }: Parts,
  changes: Changes,
  isReady: () => boolean,
): AdminOptions {
  const { config, log } = deps;
  const readings = {
    entries: memory.inspect,
    isWatchConnected: (upstream: string) => keepers.get(upstream)?.state === 'connected',
    isRedisUp: redis?.isUp,
  };
  return {
    isReady,
    token: config.adminToken,
    metrics: async () => ({ text: await metrics.text(readings), contentType: metrics.contentType }),
    upstreams: overview.upstreams,
    entries: overview.entries,
    flushes: overview.flushes,
    tiers: () => ({
      memory: { bytes: memory.bytes, maxBytes: config.cacheMaxBytes },
      redis: redis === undefined ? 'off' : redis.isUp() ? 'up' : 'away',
    }),
    async flush(upstreams, by) {
      log.info({ upstreams, by }, 'flush by hand');
      await Promise.all(upstreams.map((upstream) => changes.flush(upstream, 'operator')));
    },
  };
}

function createListener(): FastifyInstance {
  return Fastify({
    logger: false,
    exposeHeadRoutes: false,
    routerOptions: { ignoreTrailingSlash: true },
    forceCloseConnections: 'idle',
    // A request must be there in this time; an answer may take as long as it likes.
    requestTimeout: 120_000,
  });
}

/** Lets requests in flight end; what lasts longer than `graceMs` is cut off. */
async function drain(listener: FastifyInstance, clock: Clock, graceMs: number): Promise<void> {
  const done = new AbortController();
  const closing = listener.close().finally(() => done.abort());
  clock.sleep(graceMs, done.signal).then(
    () => listener.server.closeAllConnections(),
    () => {},
  );
  await closing;
}

function accessRules(config: Config, address: string): AccessRules {
  const hosts = config.allowedHosts ?? (isLoopbackAddress(address) ? ['loopback'] : ['*']);
  return { origins: config.allowedOrigins, hosts };
}

function routeOf(upstream: UpstreamConfig, { publicUrl }: Config): UpstreamRoute {
  const { name, url, origin, path, policy, timeoutMs, authorization, headers } = upstream;
  const names = publicUrl === undefined ? undefined : publicNames(publicUrl, name);
  return { name, url, origin, path, policy, timeoutMs, names, injected: { authorization, headers } };
}

function cacheOptions({ deps, memory, redis, metrics, overview }: Parts): CacheOptions {
  const { config, clock, random, log } = deps;
  const names = config.upstreams.map((upstream) => upstream.name);
  const warned = new Set<string>();
  return {
    store: redis?.store ?? memory,
    fleet: redis?.fleet,
    clock,
    random,
    upstreams: config.upstreams,
    limits: {
      maxPages: config.snapshotMaxPages,
      maxItems: config.snapshotMaxItems,
      maxBytes: config.cacheMaxEntryBytes,
    },
    staleIfErrorMs: config.staleIfErrorMs,
    pageSize: config.pageSize,
    flushedWith: (upstream) => (config.listChangedFlush === 'all' ? names : [upstream]),
    events: {
      flushed(upstream, reason, entries) {
        log.info({ upstream, reason, entries }, 'flushed');
        metrics.flushed(upstream, reason, entries);
        overview.flushed(upstream, reason, entries);
      },
      walkEnded(upstream, method, reason) {
        log.warn({ upstream, method, reason }, 'not stored');
        metrics.walkEnded(upstream, reason);
      },
      scopeMissing(upstream, method) {
        if (warned.has(upstream)) return;
        warned.add(upstream);
        log.warn(
          { upstream, method },
          'a result with ttlMs but without cacheScope answered a request with credentials: CACHE_DEFAULT_SCOPE decides who may share it',
        );
      },
    },
  };
}

function redisTier(
  { config, clock, log }: GatewayDeps,
  address: RedisAddress,
  parts: Pick<Parts, 'memory' | 'keepers' | 'metrics'>,
): RedisTier {
  const { memory, keepers, metrics } = parts;
  const wakeAll = () => {
    for (const keeper of keepers.values()) keeper.wake();
  };
  return createRedisTier({
    address,
    prefix: config.redisKeyPrefix,
    memory,
    clock,
    upstreams: config.upstreams,
    keepPastExpiryMs: config.staleIfErrorMs,
    maxEntryBytes: config.cacheMaxEntryBytes,
    watchLeaseMs: WATCH_LEASE_MS,
    onState({ isUp, reason }) {
      if (isUp) log.info('redis is in use');
      else {
        log.warn({ reason }, 'redis is away, memory serves alone');
        metrics.redisFailed('away');
      }
      wakeAll();
    },
    onStrangeValue(upstream) {
      log.warn({ upstream }, 'a value in redis is none of ours and counts as a miss');
      metrics.redisFailed('strange-value');
    },
    onLeaseWait: metrics.leaseWaited,
    onHolderLeaves: (upstream, leaving) =>
      void keepers
        .get(upstream)
        ?.holderLeaves(leaving)
        .catch(() => {}),
    onWatchReleased: (upstream) => keepers.get(upstream)?.wake(),
  });
}

function keeperFor(
  upstream: UpstreamConfig,
  { clock, log, random, version }: GatewayDeps,
  parts: { readonly transport: Transport; readonly changes: Changes; readonly lease: WatchLease | undefined },
): WatchKeeper {
  const { name, origin, path, timeoutMs, authorization, headers } = upstream;
  const { changes } = parts;
  return createWatchKeeper({
    clock,
    random,
    lease: parts.lease,
    flush: (reach) => changes.flush(name, 'watch-connected', reach),
    makeWatch: (handlers) =>
      createWatch({
        target: { name, origin, path, timeoutMs, injected: { authorization, headers } },
        transport: parts.transport,
        clock,
        random,
        clientInfo: { name: 'mcp-cache-gateway', version },
        onConnected: handlers.onConnected,
        onChange: (change) => changes.apply(name, change, 'watch'),
        onState(state, { era, cause, status }) {
          handlers.onState(state);
          const line = { upstream: name, state, era, status, err: cause };
          if (state === 'connected' || state === 'refused') log.info(line, 'watch');
          else log.debug(line, 'watch');
        },
      }),
  });
}
