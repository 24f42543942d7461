/**
 * Owns: one request to one upstream, from its bytes to its answer: what it is, and whether the cache or the
 * upstream answers it (design, laws 1, 2 and 14). The body is kept as it came, and read beside it only to classify.
 */
import { randomUUID } from 'node:crypto';
import type { CacheCall } from '../cache/list-cache.js';
import { type CacheableRequest, classify } from '../core/classify.js';
import { type RawHeaders, upstreamHeaders, valuesOf } from '../core/headers.js';
import { cacheKeys } from '../core/key.js';
import { parseMember, type RpcMessage, readMessage } from '../core/message.js';
import { isCacheableMethod, knownMethod, LISTEN_METHOD } from '../core/protocol.js';
import type { BypassReason } from '../core/reasons.js';
import { bodyForPage } from '../core/request-body.js';
import { renameChallenges } from '../core/resource-metadata.js';
import { GatewayError } from '../errors.js';
import type { AtOnce } from './at-once.js';
import { beginExchange, type Exchange } from './exchange.js';
import { serveMetadata } from './metadata.js';
import { authContextOfTask, createObserver, credentialsOf } from './observe.js';
import { observedRelay, passThrough } from './passthrough.js';
import { SERVED_METHODS } from './paths.js';
import { breakOff, cacheStatusHeader, createInterimSink, writeAnswer, writeError } from './reply.js';
import type { ServeDeps, ServeInput, Task, UpstreamRoute } from './task.js';
import { traced } from './traced.js';

/** Each answers one request, whatever happens, and never rejects. */
export interface Serve {
  mcp(input: ServeInput): Promise<void>;
  metadata(input: ServeInput): Promise<void>;
}

/** `atOnce` is given what was made of each request that the cache may answer. */
export function createServe(deps: ServeDeps, atOnce: Pick<AtOnce, 'keep'>): Serve {
  return {
    async mcp(input) {
      const exchange = beginExchange(input.req, input.res, deps);
      exchange.summary.upstream = input.upstream.name;
      const task = taskOf(input);
      try {
        await serveTask(deps, exchange, task, (call) => atOnce.keep(input, call));
      } catch (error) {
        answerFailure(exchange, task.message, error);
      }
    },
    async metadata({ req, res, upstream }) {
      const exchange = beginExchange(req, res, deps);
      Object.assign(exchange.summary, { upstream: upstream.name, method: 'metadata', outcome: 'bypass' });
      try {
        await serveMetadata(exchange, { upstream, transport: deps.transport, names: upstream.names });
      } catch (error) {
        answerFailure(exchange, undefined, error);
      }
    },
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

async function serveTask(
  deps: ServeDeps,
  exchange: Exchange,
  task: Task,
  onCacheable: (call: CacheCall) => void,
): Promise<void> {
  const { message } = task;
  const { summary } = exchange;
  summary.method = message === undefined ? task.outgoing.method : knownMethod(message.method ?? '');
  exchange.span = deps.tracer?.begin({
    upstream: task.upstream.name,
    method: summary.method,
    headers: exchange.headers,
    meta: (name) =>
      message?.kind === 'request' ? parseMember(message.bytes, message.meta, name) : undefined,
  });
  if (message === undefined) {
    await bypass(deps, exchange, task, []);
    return;
  }
  const classified = classify(message, exchange.headers);
  switch (classified.kind) {
    case 'cacheable': {
      const call = cacheCall(deps, exchange, task, classified);
      onCacheable(call);
      if (deps.listCache.knowsCursor(call)) await serveCacheable(deps, exchange, call);
      else await bypassFor(deps, exchange, task, 'has-cursor');
      return;
    }
    case 'refused':
      throw new GatewayError('header-mismatch', { detail: `It is ${classified.header}.` });
    case 'bypass':
      await bypassFor(deps, exchange, task, classified.reason);
      return;
    default:
      classified satisfies never;
  }
}

function isOfCacheableMethod(message: RpcMessage | undefined): boolean {
  return message?.method !== undefined && isCacheableMethod(message.method);
}

async function bypassFor(
  deps: ServeDeps,
  exchange: Exchange,
  task: Task,
  reason: BypassReason,
): Promise<void> {
  exchange.summary.reason = reason;
  const status = cacheStatusHeader({ fwd: 'bypass', detail: reason });
  await bypass(deps, exchange, task, isOfCacheableMethod(task.message) ? status : []);
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
    ending: isEndless(task) ? deps.ending.begun : deps.ending.timeUp,
    observer: createObserver(deps, task),
    rename: (headers) => renamed(headers, task.upstream),
  });
}

/** Whether a stream that answers is one of notifications, which no result will ever end. */
function isEndless({ outgoing, message }: Task): boolean {
  return outgoing.method === 'GET' || message?.method === LISTEN_METHOD;
}

function renamed(headers: RawHeaders, { names }: UpstreamRoute): RawHeaders {
  return names === undefined ? headers : renameChallenges(headers, names);
}

async function serveCacheable(deps: ServeDeps, exchange: Exchange, call: CacheCall): Promise<void> {
  const { summary } = exchange;
  summary.key = call.keys.shared.slice(0, 12);
  const answer = await deps.listCache.answer(call);
  const { status } = answer;
  summary.outcome = status.fwd ?? 'hit';
  summary.pages = answer.pages;
  if (status.collapsed === true) summary.collapsed = true;
  if (status.detail !== undefined) summary.reason = status.detail;
  if (answer.kind === 'invalid-cursor') summary.outcome = 'refused';
  await writeAnswer(exchange.res, answer, { idRaw: call.request.rpc.idRaw, era: call.request.era });
}

function cacheCall(deps: ServeDeps, exchange: Exchange, task: Task, request: CacheableRequest): CacheCall {
  const { upstream, outgoing, query } = task;
  const { headers } = outgoing;
  const { authHeaders, varyHeaders, verified, endedSessions } = deps;
  const { method, rpc } = request;
  const observer = createObserver(deps, task);
  const authContext = authContextOfTask(deps, task, request.era);
  return {
    upstream: upstream.name,
    policy: upstream.policy,
    request,
    keys: cacheKeys({ upstream, query, request, headers, varyHeaders }, authContext),
    hasCredentials: authHeaders.some((name) => valuesOf(headers, name).length > 0),
    signal: exchange.signal,
    timeoutMs: upstream.timeoutMs,
    mayShare: () =>
      !endedSessions.has(upstream.name, authContext) &&
      verified.mayShare(upstream.name, () => credentialsOf(deps, task)),
    interim: createInterimSink(exchange.res),
    fetchPage: async (cursorRaw, options) => {
      // Within a legacy session no id may come twice, and this one is none that a client would choose.
      const id = cursorRaw === undefined ? rpc.id : `mcp-cache-gateway-${randomUUID()}`;
      const further =
        cursorRaw === undefined ? outgoing : { ...outgoing, body: bodyForPage(rpc, cursorRaw, String(id)) };
      const fetched = await timed(deps, upstream.name, () =>
        traced(
          exchange.span,
          further,
          (sent) => deps.pageSource({ outgoing: sent, method, id }, options),
          ({ response }) => response.status,
        ),
      );
      await observer.onStatus(fetched.response.status);
      const { response } = fetched;
      const named = { ...response, headers: renamed(response.headers, upstream) };
      if (fetched.kind !== 'other') return { ...fetched, response: named };
      if (fetched.errorCode !== undefined) await observer.onError(fetched.errorCode);
      return { ...fetched, response: observedRelay(named, observer) };
    },
  };
}

async function timed<T>(
  { clock, onFetched }: ServeDeps,
  upstream: string,
  fetch: () => Promise<T>,
): Promise<T> {
  const startedAt = clock.now();
  let isAnswered = false;
  try {
    const fetched = await fetch();
    isAnswered = true;
    return fetched;
  } finally {
    onFetched(upstream, clock.now() - startedAt, isAnswered ? 'answered' : 'failed');
  }
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
  const isRefusal: boolean = failure.code === 'header-mismatch';
  summary.outcome = isRefusal ? 'refused' : 'error';
  summary.reason = failure.code;
  if (!isRefusal) summary.error = failure;
  const fwd = isRefusal ? {} : { fwd: 'miss' as const };
  writeError(res, failure, {
    idRaw: message?.idRaw,
    headers: isOfCacheableMethod(message) ? cacheStatusHeader({ ...fwd, detail: failure.code }) : [],
  });
}
