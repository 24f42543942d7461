/**
 * Owns: composition: configuration, clock and log in; a gateway with its two listeners out. Builds everything
 * by hand, and closes it in the opposite order.
 */
import Fastify, { type FastifyInstance } from 'fastify';
import type { Changes } from './cache/changes.js';
import { type CacheOptions, createCache } from './cache/compose.js';
import { createMemoryStore } from './cache/memory-store.js';
import { createVerified } from './cache/verified.js';
import type { Clock } from './clock.js';
import type { Config, UpstreamConfig } from './config.js';
import { registerAdminRoutes } from './http/admin.js';
import { registerMcpRoutes } from './http/routes.js';
import { createServe, type UpstreamRoute } from './http/serve.js';
import type { Logger } from './telemetry.js';
import { createPageSource } from './upstream/page-source.js';
import { createTransport, type Transport } from './upstream/transport.js';
import { createWatch, type Watch } from './upstream/watch.js';

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

/** How long listening waits for the first watches to stand, in milliseconds: their flush then hits an empty cache. */
const WATCH_HEAD_START_MS = 250;

export function createGateway(deps: GatewayDeps): Gateway {
  const { config, clock, log } = deps;
  const transport = createTransport();
  const { listCache, changes } = createCache(cacheOptions(deps));
  const serve = createServe({
    listCache,
    changes,
    verified: createVerified(clock, { sharing: config.publicSharing, ttlMs: config.verifiedTtlMs }),
    transport,
    pageSource: createPageSource({ transport, clock, maxBytes: config.cacheMaxEntryBytes }),
    clock,
    log,
    authHeaders: config.authHeaders,
    varyHeaders: config.varyHeaders,
  });
  const watches = config.upstreams
    .filter((upstream) => upstream.watch === 'auto')
    .map((upstream) => watchFor(upstream, deps, { transport, changes }));
  let isReady = false;

  const mcp = createListener();
  registerMcpRoutes(mcp, {
    upstreams: new Map(config.upstreams.map((upstream) => [upstream.name, routeOf(upstream)])),
    serve,
    maxBodyBytes: config.maxBodyBytes,
  });
  const admin = createListener();
  registerAdminRoutes(admin, { isReady: () => isReady });

  return {
    async listen() {
      for (const watch of watches) watch.start();
      const adminUrl = await admin.listen({ host: config.adminHost, port: config.adminPort });
      await Promise.race([
        Promise.all(watches.map((watch) => watch.settled)),
        clock.sleep(WATCH_HEAD_START_MS),
      ]);
      const url = await mcp.listen({ host: config.host, port: config.port });
      isReady = true;
      log.info({ url, adminUrl }, 'listening');
      return { url, adminUrl };
    },

    async close() {
      isReady = false;
      await drain(mcp, clock, config.shutdownGraceMs);
      await Promise.all(watches.map((watch) => watch.stop()));
      await admin.close();
      await transport.close();
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

function routeOf(upstream: UpstreamConfig): UpstreamRoute {
  const { name, url, origin, path, policy, timeoutMs, authorization, headers } = upstream;
  return { name, url, origin, path, policy, timeoutMs, injected: { authorization, headers } };
}

function cacheOptions({ config, clock, random, log }: GatewayDeps): CacheOptions {
  const names = config.upstreams.map((upstream) => upstream.name);
  const warned = new Set<string>();
  return {
    store: createMemoryStore({ maxBytes: config.cacheMaxBytes, maxEntryBytes: config.cacheMaxEntryBytes }),
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
      flushed: (upstream, reason, entries) => log.info({ upstream, reason, entries }, 'flushed'),
      walkEnded: (upstream, method, reason) => log.warn({ upstream, method, reason }, 'not stored'),
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

function watchFor(
  upstream: UpstreamConfig,
  { clock, log, random, version }: GatewayDeps,
  parts: { readonly transport: Transport; readonly changes: Changes },
): Watch {
  const { name, origin, path, timeoutMs, authorization, headers } = upstream;
  return createWatch({
    target: { name, origin, path, timeoutMs, injected: { authorization, headers } },
    transport: parts.transport,
    clock,
    random,
    clientInfo: { name: 'mcp-cache-gateway', version },
    onConnected: async ({ watched }) => {
      await parts.changes.flush(name, 'watch-connected');
      log.debug({ upstream: name, watched }, 'watch acknowledged');
    },
    onChange: (change) => parts.changes.apply(name, change, 'watch'),
    onState: (state, { era, cause, status }) => {
      const line = { upstream: name, state, era, status, err: cause };
      if (state === 'connected' || state === 'refused') log.info(line, 'watch');
      else log.debug(line, 'watch');
    },
  });
}
