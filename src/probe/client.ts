/**
 * Owns: asking an MCP server as a client does, in the era that it speaks (2026-07-28 basic/versioning): what it is, and
 * what it answers to one method.
 */
import { randomUUID } from 'node:crypto';
import { isObject } from '../core/change.js';
import { contentTypeOf, EVENT_STREAM_TYPE, JSON_TYPE } from '../core/headers.js';
import {
  type CacheableMethod,
  type Era,
  HEADER,
  LEGACY_VERSION,
  META,
  MODERN_VERSION,
  methodShape,
} from '../core/protocol.js';

export type Fields = Readonly<Record<string, unknown>>;

/** Who asks: its name to the server, and further fields of every request. */
export interface Caller {
  readonly clientInfo: { readonly name: string; readonly version: string };
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** How a server is spoken to once it is known. */
export interface Dialect {
  readonly era: Era;
  readonly headers: Readonly<Record<string, string>>;
  readonly server: { readonly name: string; readonly version: string };
  /** The names of what it declares. */
  readonly capabilities: readonly string[];
}

export interface ProbeAnswer {
  readonly status: number;
  readonly result: Fields | undefined;
  /** Of a JSON-RPC error: its message, and its code. */
  readonly error: string | undefined;
  readonly errorCode: unknown;
  readonly headers: Headers;
}

/** Finds out the era; undefined, with the last answer, where the server takes neither. Rejects as `fetch` does. */
export async function greet(
  url: string,
  caller: Caller,
): Promise<{ readonly dialect: Dialect } | { readonly dialect?: undefined; readonly answer: ProbeAnswer }> {
  const modern = await ask(url, 'server/discover', { era: 'modern', headers: {} }, caller);
  if (modern.result !== undefined) {
    const meta = isObject(modern.result._meta) ? modern.result._meta : {};
    const info = modern.result.serverInfo ?? meta['io.modelcontextprotocol/serverInfo'];
    return { dialect: dialectOf('modern', {}, info, modern.result.capabilities) };
  }
  if (modern.status === 401 || modern.status === 403) return { answer: modern };
  const params = { protocolVersion: LEGACY_VERSION, capabilities: {}, clientInfo: caller.clientInfo };
  const legacy = await ask(url, 'initialize', { era: 'legacy', headers: {} }, caller, params);
  const { result } = legacy;
  if (result === undefined || typeof result.protocolVersion !== 'string') return { answer: legacy };
  const session = legacy.headers.get(HEADER.session);
  const headers = {
    [HEADER.protocolVersion]: result.protocolVersion,
    ...(session !== null && { [HEADER.session]: session }),
  };
  await send(url, { jsonrpc: '2.0', method: 'notifications/initialized' }, headers, caller);
  return { dialect: dialectOf('legacy', headers, result.serverInfo, result.capabilities) };
}

/** Ends what `greet` began. */
export async function leave(url: string, { headers }: Dialect, caller: Caller): Promise<void> {
  if (HEADER.session in headers)
    await fetch(url, { method: 'DELETE', headers: { ...caller.headers, ...headers }, signal: caller.signal });
}

/** Asks one thing. Rejects as `fetch` does. */
export async function ask(
  url: string,
  method: string,
  { era, headers }: Pick<Dialect, 'era' | 'headers'>,
  caller: Caller,
  params: Fields = {},
): Promise<ProbeAnswer> {
  // The gateway and the server itself may be asked the same in one session, in which no id may come twice.
  const id = `mcp-cache-gateway-probe-${randomUUID()}`;
  const meta = {
    [META.protocolVersion]: MODERN_VERSION,
    [META.clientInfo]: caller.clientInfo,
    [META.clientCapabilities]: {},
  };
  const isModern = era === 'modern';
  const message = { jsonrpc: '2.0', id, method, params: isModern ? { ...params, _meta: meta } : params };
  const own = isModern ? { [HEADER.protocolVersion]: MODERN_VERSION, [HEADER.method]: method } : {};
  const response = await send(url, message, { ...own, ...headers }, caller);
  const answer = messagesIn(response.text, response.headers).find((one) => one.id === id);
  const error = isObject(answer?.error) ? answer.error : undefined;
  return {
    status: response.status,
    headers: response.headers,
    result: isObject(answer?.result) ? answer.result : undefined,
    error: typeof error?.message === 'string' ? error.message : undefined,
    errorCode: error?.code,
  };
}

/** How long a list is, page after page from `first` on, as far as `maxPages`, or as they come. */
export async function measureList(
  first: ProbeAnswer,
  method: CacheableMethod,
  maxPages: number,
  askNext: (cursor: string) => Promise<ProbeAnswer>,
): Promise<{ readonly pages: number; readonly items: number }> {
  const { itemsField = '' } = methodShape(method);
  const seen = new Set<string>();
  let [pages, items] = [0, 0];
  for (let { result } = first; ; ) {
    const page = result?.[itemsField];
    if (!Array.isArray(page)) break;
    pages += 1;
    items += page.length;
    const cursor = result?.nextCursor;
    if (typeof cursor !== 'string' || seen.has(cursor) || pages >= maxPages) break;
    seen.add(cursor);
    const next = await askNext(cursor).catch(() => undefined);
    if (next === undefined) break;
    ({ result } = next);
  }
  return { pages, items };
}

async function send(url: string, message: Fields, headers: Readonly<Record<string, string>>, caller: Caller) {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': JSON_TYPE,
      accept: `${JSON_TYPE}, ${EVENT_STREAM_TYPE}`,
      ...caller.headers,
      ...headers,
    },
    body: JSON.stringify(message),
    redirect: 'manual',
    signal: caller.signal,
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

function messagesIn(text: string, headers: Headers): readonly Fields[] {
  const isStream = contentTypeOf(['content-type', headers.get('content-type') ?? '']) === EVENT_STREAM_TYPE;
  const texts = isStream
    ? text.split(/\r\n|\r|\n/).flatMap((line) => (line.startsWith('data:') ? [line.slice(5)] : []))
    : [text];
  return texts.map(parse).filter(isObject);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function dialectOf(era: Era, headers: Dialect['headers'], info: unknown, capabilities: unknown): Dialect {
  const text = (value: unknown) => (typeof value === 'string' ? value : 'unknown');
  const { name, version } = isObject(info) ? info : {};
  return {
    era,
    headers,
    server: { name: text(name), version: text(version) },
    capabilities: isObject(capabilities) ? Object.keys(capabilities) : [],
  };
}
