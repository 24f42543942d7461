/** Owns: how the parts of a gateway are made from its configuration, and what they tell the log and the counters. */
import type { Changes } from '../cache/changes.js';
import type { CacheOptions } from '../cache/compose.js';
import { createMemoryStore, type MemoryStore } from '../cache/memory-store.js';
import { createRedisTier, type RedisTier } from '../cache/redis-tier.js';
import type { Clock } from '../clock.js';
import type { Config, UpstreamConfig } from '../config.js';
import type { RedisAddress } from '../core/redis-url.js';
import type { Logger } from '../telemetry.js';
import type { Tracer } from '../tracing.js';
import { createTransport, type Transport } from '../upstream/transport.js';
import { createWatch } from '../upstream/watch.js';
import { createMetrics, type Metrics } from './metrics.js';
import { createOverview, type Overview } from './overview.js';
import { createWatchKeeper, WATCH_LEASE_MS, type WatchKeeper, type WatchLease } from './watch-keeper.js';

export interface GatewayDeps {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
  /** The gateway's own version, told to upstreams that it watches. */
  readonly version: string;
  /** A number from 0 up to, and without, 1. */
  readonly random: () => number;
  /** Absent: nothing is traced. */
  readonly tracer?: Tracer | undefined;
}

/** What the parts of a gateway share. */
export interface Parts {
  readonly deps: GatewayDeps;
  readonly transport: Transport;
  readonly memory: MemoryStore;
  readonly metrics: Metrics;
  readonly keepers: Map<string, WatchKeeper>;
  readonly redis: RedisTier | undefined;
  readonly overview: Overview;
}

export function createParts(deps: GatewayDeps): Parts {
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
    sharedGeneration: (upstream) => redis?.generation(upstream),
  });
  return { deps, transport: createTransport(), memory, metrics, keepers, redis, overview };
}

export function cacheOptions({ deps, memory, redis, metrics, overview }: Parts): CacheOptions {
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
      walked: metrics.walked,
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
  { config, clock, random, log }: GatewayDeps,
  address: RedisAddress,
  parts: Pick<Parts, 'memory' | 'keepers' | 'metrics'>,
): RedisTier {
  const { memory, keepers, metrics } = parts;
  const wakeAll = () => {
    for (const keeper of keepers.values()) keeper.wake();
  };
  return createRedisTier({
    address,
    random,
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

export function keeperFor(
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
        async onConnected(info) {
          await handlers.onConnected(info);
          log.debug({ upstream: name, watched: info.watched }, 'watch acknowledged');
        },
        onChange: (change) => changes.apply(name, change, 'watch'),
        onState(state, info) {
          handlers.onState(state, info);
          const { era, cause, status, code } = info;
          const line = { upstream: name, state, era, status, code, err: cause };
          if (state === 'connected' || state === 'refused') log.info(line, 'watch');
          else log.debug(line, 'watch');
        },
      }),
  });
}
