/**
 * Owns: the admin listener: health, numbers, what is cached and why, and flushing by hand (design, section 2).
 * Health tells of the process alone: no upstream and no tier is asked. Shows digests, never values or tokens.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { DashboardPage } from './dashboard.js';
import { pathOf } from './paths.js';

/** One entry as it is shown; ages and lifetimes in milliseconds. */
export interface ShownEntry {
  readonly method: string;
  readonly scope: 'public' | 'private';
  readonly ageMs: number;
  readonly remainingMs: number;
  readonly items: number;
  readonly pages: number;
  readonly bytes: number;
  /** The beginning of the digest of the authorization context that it belongs to; null for a public one. */
  readonly authContext: string | null;
}

/** One upstream as it is shown. Instants as ISO 8601. */
export interface ShownUpstream {
  readonly name: string;
  readonly generation: number | string;
  readonly entries: number;
  readonly bytes: number;
  readonly hits: number;
  readonly misses: number;
  readonly stale: number;
  readonly bypassed: number;
  readonly coalesced: number;
  readonly upstreamCallsSaved: number;
  /** How often answers did not come fresh from the cache, by the word that `Cache-Status` gives for it. */
  readonly reasons: Readonly<Record<string, number>>;
  /** `reason`: why it did not stand when it was last tried; null where it does, or where there is none. */
  readonly watch: { readonly state: string; readonly since: string; readonly reason: string | null };
  readonly lastFlush: { readonly at: string; readonly reason: string; readonly entries: number } | null;
}

export interface AdminOptions {
  /** Whether the process can serve: false while it starts or drains. */
  readonly isReady: () => boolean;
  /** Absent: `/cache` and `/` are open to whoever reaches the listener. */
  readonly token: string | undefined;
  readonly page: DashboardPage;
  readonly metrics: () => Promise<{ readonly text: string; readonly contentType: string }>;
  /** When the process started and what time it is now, as ISO 8601, and the address of the MCP listener. */
  readonly process: () => { readonly since: string; readonly now: string; readonly url: string };
  readonly upstreams: () => readonly ShownUpstream[];
  readonly tiers: () => {
    readonly memory: { readonly bytes: number; readonly maxBytes: number };
    readonly redis: string;
  };
  readonly entries: (
    upstream: string,
    page: { readonly offset: number; readonly limit: number },
  ) => readonly ShownEntry[];
  /** Recent flushes, the newest first. */
  readonly flushes: () => readonly {
    readonly at: string;
    readonly upstream: string;
    readonly reason: string;
    readonly entries: number;
  }[];
  /** Flushes by hand; `by` is the address of who asked. */
  readonly flush: (upstreams: readonly string[], by: string) => Promise<void>;
}

const MAX_LIMIT = 1000;
const DEFAULT_LIMIT = 100;

export function registerAdminRoutes(app: FastifyInstance, options: AdminOptions): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, payload, done) => {
    payload.resume();
    done(null);
  });
  registerHealth(app, options.isReady);
  registerNotFound(app);
  app.get('/metrics', async (_request, reply) => {
    const { text, contentType } = await options.metrics();
    return reply.header('content-type', contentType).send(text);
  });
  app.register(async (guarded) => {
    if (options.token !== undefined) requireToken(guarded, options.token, options.page);
    registerCacheRoutes(guarded, options);
  });
}

function registerNotFound(app: FastifyInstance): void {
  app.setNotFoundHandler(({ raw: req }, reply) => {
    const url = pathOf(req);
    const methods = (['GET', 'HEAD', 'POST'] as const).filter((method) => app.hasRoute({ method, url }));
    if (methods.length === 0) return reply.code(404).send({ error: 'there is no such path' });
    return reply.code(405).header('allow', methods.join(', ')).send({ error: 'not a method of this path' });
  });
}

/** Liveness and readiness, which need no credentials. */
export function registerHealth(app: FastifyInstance, isReady: () => boolean): void {
  app.get('/healthz', () => ({ status: 'ok' }));
  app.get('/readyz', (_request, reply) => {
    const ready = isReady();
    return reply.code(ready ? 200 : 503).send({ status: ready ? 'ready' : 'not ready' });
  });
}

function registerCacheRoutes(app: FastifyInstance, options: AdminOptions): void {
  app.get('/', (_request, reply) => sendPage(reply, options.page));
  app.get<{ Querystring: Record<string, unknown> }>('/cache', (request, reply) => {
    const { upstream } = request.query;
    const shown = options.upstreams();
    if (upstream !== undefined && !shown.some(({ name }) => name === upstream))
      return reply.code(404).send(UNKNOWN);
    const page = pageOf(request.query);
    const listed = shown.filter(({ name }) => upstream === undefined || name === upstream);
    return reply.header('cache-control', 'no-store').send({
      ...options.process(),
      tiers: options.tiers(),
      flushes: options.flushes(),
      ...page,
      upstreams: listed.map((one) => ({ ...one, list: options.entries(one.name, page) })),
    });
  });
  app.post<{ Querystring: Record<string, unknown> }>('/cache/flush', async (request, reply) => {
    const names = options.upstreams().map(({ name }) => name);
    const { upstream } = request.query;
    const flushed = upstream === undefined ? names : names.filter((name) => name === upstream);
    if (flushed.length === 0) return reply.code(404).send(UNKNOWN);
    await options.flush(flushed, request.ip);
    return { flushed };
  });
}

const UNKNOWN = { error: 'there is no such upstream' };

function pageOf(query: Readonly<Record<string, unknown>>): {
  readonly offset: number;
  readonly limit: number;
} {
  return {
    offset: wholeNumber(query.offset, 0, Number.MAX_SAFE_INTEGER),
    limit: wholeNumber(query.limit, DEFAULT_LIMIT, MAX_LIMIT),
  };
}

function wholeNumber(text: unknown, preset: number, max: number): number {
  return typeof text === 'string' && /^\d{1,15}$/.test(text) ? Math.min(Number(text), max) : preset;
}

/** The page holds nothing of the cache: it asks for that itself. */
function sendPage(reply: FastifyReply, { html, contentSecurityPolicy }: DashboardPage): FastifyReply {
  return reply
    .header('content-type', 'text/html; charset=utf-8')
    .header('content-security-policy', contentSecurityPolicy)
    .header('x-content-type-options', 'nosniff')
    .header('referrer-policy', 'no-referrer')
    .header('cache-control', 'no-store')
    .send(html);
}

/** Compared by digest and in constant time, so that neither length nor a common beginning can be measured. */
function requireToken(app: FastifyInstance, token: string, page: DashboardPage): void {
  const expected = digest(`Bearer ${token}`);
  app.addHook('onRequest', async (request: FastifyRequest, reply) => {
    const given = digest((request.headers.authorization ?? '').replace(/^bearer /i, 'Bearer '));
    if (timingSafeEqual(given, expected)) return;
    reply.code(401).header('www-authenticate', 'Bearer');
    // A browser cannot send a token before there is a page to ask for it.
    if (request.routeOptions.url === '/') await sendPage(reply, page);
    else await reply.send({ error: 'the admin token is needed' });
  });
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
