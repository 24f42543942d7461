/**
 * Owns: one request to one upstream, from its bytes to its answer: what it is, and whether the cache or the
 * upstream answers it (design, laws 1, 2 and 14). The body is kept as it came, and read beside it only to classify.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CacheCall, ListCache } from '../cache/list-cache.js';
import type { Clock } from '../clock.js';
import { type CacheableRequest, classify } from '../core/classify.js';
import type { FreshnessPolicy } from '../core/freshness.js';
import { type InjectedHeaders, upstreamHeaders, valuesOf } from '../core/headers.js';
import { authContextOf, cacheKeys } from '../core/key.js';
import { type RpcMessage, readMessage } from '../core/message.js';
import { isCacheableMethod, knownMethod } from '../core/protocol.js';
import { bodyForPage } from '../core/request-body.js';
import { GatewayError } from '../errors.js';
import type { Logger } from '../telemetry.js';
import type { PageSource } from '../upstream/page-source.js';
import type { Outgoing, Transport } from '../upstream/transport.js';
import { beginExchange, type Exchange } from './exchange.js';
import { passThrough } from './passthrough.js';
import { breakOff, cacheStatusHeader, createInterimSink, writeAnswer, writeError } from './reply.js';

/** One upstream as the routes know it. */
export interface UpstreamRoute {
  readonly name: string;
  readonly url: string;
  readonly origin: string;
  /** Path and query, as configured. */
  readonly path: string;
  readonly injected: InjectedHeaders;
  readonly policy: FreshnessPolicy;
  readonly timeoutMs: number;
}

export interface ServeDeps {
  readonly listCache: ListCache;
  readonly transport: Transport;
  readonly pageSource: PageSource;
  readonly clock: Clock;
  readonly log: Logger;
  readonly authHeaders: readonly string[];
  readonly varyHeaders: readonly string[];
}

export const SERVED_METHODS = ['POST', 'GET', 'DELETE'] as const;

/** What a client asked of an upstream. */
interface Task {
  readonly upstream: UpstreamRoute;
  readonly outgoing: Outgoing;
  /** The client's own query string. */
  readonly query: string;
  /** Absent where the request is no POST, and so no message. */
  readonly message: RpcMessage | undefined;
}

export interface ServeInput {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly body: Buffer | undefined;
  readonly upstream: UpstreamRoute;
}

/** Answers one request, whatever happens; never rejects. */
export type Serve = (input: ServeInput) => Promise<void>;

export function createServe(deps: ServeDeps): Serve {
  return async (input) => {
    const exchange = beginExchange(input.req, input.res, deps);
    exchange.summary.upstream = input.upstream.name;
    const task = taskOf(input);
    try {
      await serveTask(deps, exchange, task);
    } catch (error) {
      answerFailure(exchange, task.message, error);
    }
  };
}

function taskOf({ req, body, upstream }: ServeInput): Task {
  const url = req.url ?? '';
  const cut = url.indexOf('?');
  const query = cut === -1 ? '' : url.slice(cut + 1);
  const joint = upstream.path.includes('?') ? '&' : '?';
  return {
    upstream,
    query,
    outgoing: {
      method: SERVED_METHODS.find((known) => known === req.method) ?? 'POST',
      origin: upstream.origin,
      path: query === '' ? upstream.path : `${upstream.path}${joint}${query}`,
      headers: upstreamHeaders(req.rawHeaders, upstream.injected),
      ...(body !== undefined && { body }),
    },
    message: req.method === 'POST' ? readMessage(body ?? Buffer.alloc(0)) : undefined,
  };
}

async function serveTask(deps: ServeDeps, exchange: Exchange, task: Task): Promise<void> {
  const { message } = task;
  const { summary } = exchange;
  summary.method = message === undefined ? task.outgoing.method : knownMethod(message.method ?? '');
  if (message === undefined) {
    await bypass(deps, exchange, task, []);
    return;
  }
  const classified = classify(message, exchange.headers);
  switch (classified.kind) {
    case 'cacheable':
      await serveCacheable(deps, exchange, task, classified);
      return;
    case 'refused':
      throw new GatewayError('header-mismatch', { detail: `It is ${classified.header}.` });
    case 'bypass': {
      summary.reason = classified.reason;
      const status = cacheStatusHeader({ fwd: 'bypass', detail: classified.reason });
      await bypass(deps, exchange, task, isOfCacheableMethod(message) ? status : []);
      return;
    }
    default:
      classified satisfies never;
  }
}

function isOfCacheableMethod(message: RpcMessage | undefined): boolean {
  return message?.method !== undefined && isCacheableMethod(message.method);
}

async function bypass(
  deps: ServeDeps,
  exchange: Exchange,
  task: Task,
  added: readonly string[],
): Promise<void> {
  exchange.summary.outcome = 'bypass';
  await passThrough(exchange, {
    outgoing: task.outgoing,
    transport: deps.transport,
    timeoutMs: task.upstream.timeoutMs,
    added,
    onChange: (change) => deps.listCache.apply(task.upstream.name, change, 'tap'),
  });
}

async function serveCacheable(
  deps: ServeDeps,
  exchange: Exchange,
  task: Task,
  request: CacheableRequest,
): Promise<void> {
  const { summary } = exchange;
  const call = cacheCall(deps, exchange, task, request);
  summary.key = call.keys.shared.slice(0, 12);
  exchange.setDeadline(task.upstream.timeoutMs);
  const answer = await deps.listCache.answer(call);
  exchange.liftDeadline();
  const { status } = answer;
  summary.outcome = status.hit === true ? 'hit' : (status.fwd ?? 'miss');
  summary.pages = answer.pages;
  if (status.detail !== undefined) summary.reason = status.detail;
  await writeAnswer(exchange.res, answer, { idRaw: request.rpc.idRaw, era: request.era });
}

function cacheCall(deps: ServeDeps, exchange: Exchange, task: Task, request: CacheableRequest): CacheCall {
  const { upstream, outgoing, query } = task;
  const { headers } = outgoing;
  const { authHeaders, varyHeaders } = deps;
  const authContext = authContextOf({ headers, authHeaders, era: request.era, injected: upstream.injected });
  const { method, rpc } = request;
  return {
    upstream: upstream.name,
    policy: upstream.policy,
    request,
    keys: cacheKeys({ upstream, query, request, headers, varyHeaders }, authContext),
    hasCredentials: authHeaders.some((name) => valuesOf(headers, name).length > 0),
    signal: exchange.signal,
    interim: createInterimSink(exchange.res, exchange.liftDeadline),
    fetchPage: (cursorRaw, options) => {
      if (cursorRaw === undefined) {
        // A walk may run out of time: its first page, which may be an open stream, is sent on all the same (law 10).
        return exchange.untilAnswered((signal) =>
          deps.pageSource({ outgoing, method, id: rpc.id }, { ...options, signal }),
        );
      }
      // Within a legacy session no id may come twice, and this one is none that a client would choose.
      const id = `mcp-cache-gateway-${randomUUID()}`;
      const further = { ...outgoing, body: bodyForPage(rpc, cursorRaw, id) };
      return deps.pageSource({ outgoing: further, method, id }, options);
    },
  };
}

function answerFailure(exchange: Exchange, message: RpcMessage | undefined, error: unknown): void {
  const { res, summary } = exchange;
  exchange.liftDeadline();
  if (res.destroyed || res.headersSent) {
    // The client has left, or its answer broke off: it must see that what it has is not whole.
    if (!res.destroyed) summary.error = error;
    breakOff(res);
    return;
  }
  const failure = error instanceof GatewayError ? error : new GatewayError('internal', { cause: error });
  const isRefusal = failure.code === 'header-mismatch';
  summary.outcome = isRefusal ? 'refused' : 'error';
  summary.reason = failure.code;
  if (!isRefusal) summary.error = failure;
  const fwd = isRefusal ? {} : { fwd: 'miss' as const };
  writeError(res, failure, {
    idRaw: message?.idRaw,
    headers: isOfCacheableMethod(message) ? cacheStatusHeader({ ...fwd, detail: failure.code }) : [],
  });
}
