/**
 * Owns: composition: configuration, clock and log in; a gateway with its two listeners out. Builds everything
 * by hand, and closes it in the opposite order.
 */
import { createServer } from 'node:http';
import Fastify, { type FastifyInstance } from 'fastify';
import { cacheOptions, createParts, type GatewayDeps, keeperFor, type Parts } from './app/parts.js';
import type { Changes } from './cache/changes.js';
import { createCache } from './cache/compose.js';
import { createEndedSessions } from './cache/ended-sessions.js';
import { createVerified } from './cache/verified.js';
import type { Config, UpstreamConfig } from './config.js';
import { type AccessRules, isLoopbackAddress } from './core/access.js';
import { publicNames } from './core/resource-metadata.js';
import { registerAccess } from './http/access.js';
import { type AdminOptions, registerAdminRoutes } from './http/admin.js';
import { type AtOnce, createAtOnce } from './http/at-once.js';
import { readDashboard } from './http/dashboard.js';
import { createDrain } from './http/drain.js';
import { createPaths, ENDPOINT_METHODS, originForm } from './http/paths.js';
import { registerMcpRoutes } from './http/routes.js';
import { createServe } from './http/serve.js';
import type { ServeDeps, UpstreamRoute } from './http/task.js';
import { lineLogger } from './telemetry.js';
import { createPageSource } from './upstream/page-source.js';

export interface Gateway {
  /** Begins to watch, then listens on both addresses; resolves with the addresses. */
  listen(): Promise<{ readonly url: string; readonly adminUrl: string }>;
  /** Stops taking requests, lets those in flight end within SHUTDOWN_GRACE_MS, and closes everything. */
  close(): Promise<void>;
}

/** How long listening waits for Redis and the first watches, in milliseconds: their flush then hits an empty cache. */
const HEAD_START_MS = 100;

/** What the admin listener is given to end its answers, in milliseconds: it has only short ones. */
const ADMIN_GRACE_MS = 1_000;

export function createGateway(deps: GatewayDeps): Gateway {
  const { config, clock, log } = deps;
  const parts = createParts(deps);
  const { transport, metrics, keepers, redis } = parts;
  const { listCache, changes } = createCache(cacheOptions(parts));
  for (const upstream of config.upstreams.filter(({ watch }) => watch === 'auto')) {
    const lease = redis?.watchLease(upstream.name);
    keepers.set(upstream.name, keeperFor(upstream, deps, { transport, changes, lease }));
  }
  const mcpDrain = createDrain(clock);
  const serveDeps: ServeDeps = {
    ending: mcpDrain,
    tracer: deps.tracer,
    listCache,
    changes,
    verified: createVerified(clock, { sharing: config.publicSharing, ttlMs: config.verifiedTtlMs }),
    endedSessions: createEndedSessions(),
    transport,
    pageSource: createPageSource({ transport, clock, maxBytes: config.cacheMaxEntryBytes }),
    clock,
    log,
    lines: lineLogger(log),
    onEnd({ upstream, method = 'other', outcome = 'error', reason, collapsed, pages }, durationMs) {
      if (upstream === undefined) return;
      metrics.request({ upstream, method, outcome, reason, collapsed, pages, durationMs });
    },
    onFetched: metrics.upstreamFetch,
    authHeaders: config.authHeaders,
    varyHeaders: config.varyHeaders,
  };
  const atOnce = createAtOnce({ ...serveDeps, track: mcpDrain.track });
  const mcp = createListener({ bodyLimit: config.maxBodyBytes, exposeHeadRoutes: false }, atOnce.front);
  mcpDrain.guard(mcp);
  let isReady = false;
  let mcpUrl = '';

  const paths = createPaths(
    new Map(config.upstreams.map((upstream) => [upstream.name, routeOf(upstream, config)])),
  );
  registerAccess(mcp, {
    rules: accessRules(config, config.host),
    scripts: { methods: ENDPOINT_METHODS, hasPath: (path) => paths.methodsAt(path) !== undefined },
  });
  registerMcpRoutes(mcp, { paths, serve: createServe(serveDeps, atOnce), maxBodyBytes: config.maxBodyBytes });
  const admin = createListener({ exposeHeadRoutes: true });
  const adminDrain = createDrain(clock);
  adminDrain.guard(admin);
  registerAccess(admin, { rules: accessRules(config, config.adminHost) });
  registerAdminRoutes(admin, adminOptions(parts, changes, { isReady: () => isReady, url: () => mcpUrl }));

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
      mcpUrl = url;
      isReady = true;
      log.info({ url, adminUrl }, 'listening');
      return { url, adminUrl };
    },

    async close() {
      isReady = false;
      const handover = Promise.all([...keepers.values()].map((keeper) => keeper.close()));
      await mcpDrain.end(config.shutdownGraceMs);
      await handover;
      await adminDrain.end(ADMIN_GRACE_MS);
      await redis?.close();
      await transport.close();
    },
  };
}

function adminOptions(
  { deps, overview, metrics, memory, keepers, redis }: Parts,
  changes: Changes,
  { isReady, url }: Pick<AdminOptions, 'isReady'> & { readonly url: () => string },
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
    page: readDashboard(),
    process: () => ({ ...overview.times(), url: url() }),
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

/** How long a connection on which nothing is asked is kept, and how long a request may take to arrive, in milliseconds. */
const KEEP_ALIVE_MS = 72_000;
const REQUEST_MS = 120_000;

/** `front`: is asked before the router, which it gives what it does not answer. */
function createListener(
  options: { bodyLimit?: number; exposeHeadRoutes: boolean },
  front: AtOnce['front'] = (req, res, router) => router(req, res),
): FastifyInstance {
  return Fastify({
    ...options,
    serverFactory: (router) =>
      createServer({ keepAliveTimeout: KEEP_ALIVE_MS, requestTimeout: REQUEST_MS }, (req, res) =>
        front(req, res, router),
      ),
    logger: false,
    routerOptions: { ignoreTrailingSlash: true },
    rewriteUrl: ({ url }) => originForm(url ?? ''),
    // A target that cannot be decoded is a path that there is not.
    frameworkErrors: (_error, _request, reply) => reply.callNotFound(),
  });
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
