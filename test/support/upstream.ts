/**
 * A scripted upstream: a real HTTP server whose answers a test writes, that logs every request and counts.
 * What the gateway sends on its own account (its watch) is answered apart, and not counted with the rest.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface SeenRequest {
  readonly httpMethod: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  /** The parsed body; undefined where it is no JSON object. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects to find
  readonly json: any;
}

export type Respond = (request: SeenRequest, res: ServerResponse) => void | Promise<void>;

export interface ScriptedUpstream {
  readonly origin: string;
  /** The endpoint, `origin` and `/mcp`. */
  readonly url: string;
  /** Every request that is not the gateway's own watch, in order. */
  readonly requests: SeenRequest[];
  readonly watchRequests: SeenRequest[];
  /** How many requests of this JSON-RPC method came, or how many in all. */
  count(rpcMethod?: string): number;
  respond: Respond;
  /** Answers the gateway's watch; refuses it unless a test says otherwise. */
  respondToWatch: Respond;
  close(): Promise<void>;
}

const WATCH_METHODS = new Set(['subscriptions/listen', 'initialize', 'notifications/initialized']);

export async function startUpstream(
  respond: Respond,
  options: { host?: string; port?: number } = {},
): Promise<ScriptedUpstream> {
  const requests: SeenRequest[] = [];
  const watchRequests: SeenRequest[] = [];
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    req.on('error', () => {});
    try {
      for await (const chunk of req) chunks.push(chunk);
    } catch {
      return;
    }
    const body = Buffer.concat(chunks);
    const request: SeenRequest = {
      httpMethod: req.method ?? '',
      url: req.url ?? '',
      headers: req.headers,
      rawHeaders: req.rawHeaders,
      body,
      json: parse(body),
    };
    const id: unknown = request.json?.id;
    const isWatch =
      (typeof id === 'string' && id.startsWith('mcp-cache-gateway-watch')) ||
      req.headers['mcp-session-id'] === 'watch-session';
    if (isWatch && WATCH_METHODS.has(request.json?.method ?? 'initialize')) {
      watchRequests.push(request);
      await upstream.respondToWatch(request, res);
    } else {
      requests.push(request);
      await upstream.respond(request, res);
    }
  });
  await new Promise<void>((resolve) =>
    server.listen(options.port ?? 0, options.host ?? '127.0.0.1', resolve),
  );
  const { port } = server.address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  const upstream: ScriptedUpstream = {
    origin,
    url: `${origin}/mcp`,
    requests,
    watchRequests,
    count: (rpcMethod) =>
      rpcMethod === undefined ? requests.length : requests.filter((r) => r.json?.method === rpcMethod).length,
    respond,
    respondToWatch: (request, res) =>
      sendJson(
        res,
        {
          jsonrpc: '2.0',
          id: request.json?.id ?? null,
          error: { code: -32601, message: 'Method not found' },
        },
        404,
      ),
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  return upstream;
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** Sends a JSON body; a string goes out as it is. */
export function sendJson(
  res: ServerResponse,
  value: unknown,
  status = 200,
  headers: Record<string, string | string[]> = {},
): void {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  res.writeHead(status, { 'content-type': 'application/json', ...headers });
  res.end(text);
}

/** Answers with a result under the request's id. */
export function sendResult(
  res: ServerResponse,
  request: SeenRequest,
  result: unknown,
  headers: Record<string, string | string[]> = {},
): void {
  sendJson(res, { jsonrpc: '2.0', id: request.json.id, result }, 200, headers);
}

export function sendError(res: ServerResponse, request: SeenRequest, code: number, status = 200): void {
  sendJson(res, { jsonrpc: '2.0', id: request.json?.id, error: { code, message: 'no' } }, status);
}

/** A complete result with good hints. */
export function goodResult(fields: Record<string, unknown>): Record<string, unknown> {
  return { resultType: 'complete', ...fields, ttlMs: 60_000, cacheScope: 'public' };
}

/** Begins an event stream. */
export function beginEvents(res: ServerResponse, headers: Record<string, string> = {}): void {
  res.writeHead(200, { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no', ...headers });
  res.flushHeaders();
}

export function sendEvent(res: ServerResponse, message: unknown): void {
  res.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
}

/** Tells a subscriber what it will be told of: what it asked for, or less. */
export function sendAcknowledgement(
  res: ServerResponse,
  request: SeenRequest,
  notifications: object = request.json.params.notifications,
): void {
  sendEvent(res, {
    jsonrpc: '2.0',
    method: 'notifications/subscriptions/acknowledged',
    params: { _meta: { 'io.modelcontextprotocol/subscriptionId': request.json.id }, notifications },
  });
}

/** A watch whose stream a test holds in its hand. */
export interface HeldWatch {
  readonly respond: Respond;
  /** Sends a notification on every open stream. */
  notify(method: string, params?: Record<string, unknown>): void;
  readonly streams: Set<ServerResponse>;
  /** Cuts every stream without a goodbye. */
  cut(): void;
}

/** Accepts `subscriptions/listen` of the modern era. */
export function heldWatch(): HeldWatch {
  const streams = new Set<ServerResponse>();
  const ids = new Map<ServerResponse, unknown>();
  return {
    streams,
    respond(request, res) {
      beginEvents(res);
      ids.set(res, request.json.id);
      sendAcknowledgement(res, request);
      streams.add(res);
      res.on('close', () => streams.delete(res));
    },
    notify(method, params = {}) {
      for (const res of streams) {
        sendEvent(res, {
          jsonrpc: '2.0',
          method,
          params: { _meta: { 'io.modelcontextprotocol/subscriptionId': ids.get(res) }, ...params },
        });
      }
    },
    cut() {
      for (const res of streams) res.destroy();
    },
  };
}
