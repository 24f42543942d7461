/**
 * Owns: writing answers to the client: relayed ones as they came, stored ones as an envelope around their
 * bytes, the gateway's own errors. Writes to the socket's response itself, so that nothing is buffered,
 * renamed or added on the way (design, laws 12, 15 and 23).
 */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Answer, EntryAnswer } from '../cache/answer.js';
import { type CacheStatus, formatCacheStatus, wholeSeconds } from '../core/cache-status.js';
import type { InterimSink, RelayResponse } from '../core/exchange.js';
import {
  contentCodings,
  contentTypeOf,
  EVENT_STREAM_TYPE,
  filterHeaders,
  JSON_TYPE,
  type RawHeaders,
} from '../core/headers.js';
import { ERROR_CODE, type Era } from '../core/protocol.js';
import { splice, toEvent } from '../core/splice.js';
import type { GatewayError } from '../errors.js';

/** Thrown where a stream breaks off after its head went out: the client must see that it is not whole. */
export function breakOff(res: ServerResponse): void {
  res.destroy();
}

const NOTHING = Buffer.alloc(0);

/** Sends the head at once. `flushHeaders` would write it as UTF-8 and so change bytes beyond ASCII. */
export function flushHead(res: ServerResponse): void {
  res.write(NOTHING);
}

/** The same, together with what of the body is already there. */
export function flushHeadSoon(res: ServerResponse): void {
  res.cork();
  flushHead(res);
  setImmediate(() => res.uncork());
}

/** Resolves when the client has room for more, or has left. */
export async function writeChunk(res: ServerResponse, chunk: Buffer | string): Promise<void> {
  if (res.destroyed || res.write(chunk)) return;
  const settled = new AbortController();
  const { signal } = settled;
  try {
    await Promise.race([once(res, 'drain', { signal }), once(res, 'close', { signal })]);
  } finally {
    settled.abort();
  }
}

/** Sends an answer on as it came. `added` are fields of the gateway's own. */
export async function relayTo(
  res: ServerResponse,
  response: RelayResponse,
  added: RawHeaders,
): Promise<void> {
  // The client's leaving ends the exchange with the upstream, even while that is silent.
  res.once('close', () => response.discard());
  if (res.destroyed) response.discard();
  const isFurther = res.headersSent;
  if (!isFurther) {
    writeHead(res, response.status, response.statusText, [...response.headers, ...added]);
    flushHead(res);
  }
  for await (const chunk of isFurther ? eventsOf(response) : bodyOf(response)) {
    await writeChunk(res, chunk);
    if (res.destroyed) break;
  }
  res.end();
}

/** Fields that every answer to a request bears, whoever wrote it. */
const ownFieldsOf = new WeakMap<ServerResponse, RawHeaders>();

/** Puts fields on the answer to come; they replace those of the same name, but for `Vary`, which adds up. */
export function putOnAnswer(res: ServerResponse, fields: RawHeaders): void {
  if (fields.length > 0) ownFieldsOf.set(res, fields);
}

export function ownFieldsOn(res: ServerResponse): RawHeaders {
  return ownFieldsOf.get(res) ?? [];
}

/** Writes the head of an answer, with Node's own reason where none is given. Nothing else in the gateway does. */
export function writeHead(
  res: ServerResponse,
  status: number,
  statusText: string | undefined,
  headers: RawHeaders,
): ServerResponse {
  const own = ownFieldsOf.get(res);
  const all = own === undefined ? [...headers] : withOwn(headers, own);
  return statusText === undefined ? res.writeHead(status, all) : res.writeHead(status, statusText, all);
}

function withOwn(headers: RawHeaders, own: RawHeaders): string[] {
  const replaced = new Set(own.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase()));
  replaced.delete('vary');
  return [...filterHeaders(headers, (name) => !replaced.has(name)), ...own];
}

async function* bodyOf({ held, rest }: RelayResponse): AsyncIterable<Buffer> {
  yield* held;
  yield* rest;
}

/** What was fetched anew after the client's answer had begun as an event stream: a body of JSON becomes an event. */
async function* eventsOf(response: RelayResponse): AsyncIterable<Buffer | string> {
  const type = contentCodings(response.headers).length > 0 ? '' : contentTypeOf(response.headers);
  if (type === EVENT_STREAM_TYPE) {
    yield* bodyOf(response);
    return;
  }
  if (type !== JSON_TYPE) throw new Error(`no part of an event stream: status ${response.status}`);
  yield 'event: message\ndata: ';
  // Line ends are white space between tokens here: a blank says the same.
  for await (const chunk of bodyOf(response)) {
    yield Buffer.from(chunk.toString('latin1').replace(/[\r\n]/g, ' '), 'latin1');
  }
  yield '\n\n';
}

export function cacheStatusHeader(status: CacheStatus): RawHeaders {
  return ['Cache-Status', formatCacheStatus(status)];
}

/** Where messages go that come before the answer; its stream has then begun, and the answer is an event in it. */
export function createInterimSink(res: ServerResponse): InterimSink {
  return {
    begin(status, headers) {
      if (res.headersSent) return;
      writeHead(res, status, undefined, [...headers, ...cacheStatusHeader({ fwd: 'miss' })]);
      flushHead(res);
    },
    write: (bytes) => writeChunk(res, bytes),
    hasBegun: () => res.headersSent,
  };
}

/** Writes what the cache decided. */
export async function writeAnswer(
  res: ServerResponse,
  answer: Answer,
  request: { readonly idRaw: string; readonly era: Era },
): Promise<void> {
  const status = cacheStatusHeader(answer.status);
  switch (answer.kind) {
    case 'relay':
      await relayTo(res, answer.response, status);
      return;
    case 'invalid-cursor':
      writeJson(res, 200, invalidCursorBody(request.idRaw), status);
      return;
    case 'entry':
      writeEntry(res, answer, request);
      return;
    default:
      answer satisfies never;
  }
}

/** Law 13: the protocol's own word for a cursor that is none (any more); a client begins anew upon it. */
function invalidCursorBody(idRaw: string): string {
  const error = JSON.stringify({ code: ERROR_CODE.invalidParams, message: 'Invalid cursor' });
  return `{"jsonrpc":"2.0","id":${idRaw},"error":${error}}`;
}

const PLAIN = /^[ -~]*$/;

export function writeEntry(
  res: ServerResponse,
  answer: EntryAnswer,
  request: { readonly idRaw: string; readonly era: Era },
): void {
  answer.response?.discard();
  const spliced = splice(answer.entry, { ...request, remainingMs: answer.remainingMs, slice: answer.slice });
  if (res.headersSent) {
    res.end(toEvent(spliced));
    return;
  }
  const bodyLength = spliced.body.reduce((sum, part) => sum + part.length, 0);
  const length = Buffer.byteLength(spliced.head) + bodyLength + spliced.tail.length;
  const headers = [
    'Content-Type',
    JSON_TYPE,
    'Content-Length',
    String(length),
    ...cacheStatusHeader(answer.status),
  ];
  if (answer.ageMs !== undefined) headers.push('Age', String(wholeSeconds(answer.ageMs)));
  writeHead(res, 200, undefined, [...ownFields(answer.response), ...headers]);
  res.cork();
  // A text goes out together with the fields, in one write; what is not plain is written as the bytes that it is.
  if (PLAIN.test(spliced.head)) res.write(spliced.head, 'latin1');
  else res.write(Buffer.from(spliced.head));
  for (const part of spliced.body) res.write(part);
  res.end(spliced.tail);
  res.uncork();
}

/** The fields of the answer to the client's own request that hold for the joined result as well. */
function ownFields(response: RelayResponse | undefined): RawHeaders {
  const aboutTheBody =
    /^(content-|etag$|last-modified$|accept-ranges$|age$|x-accel-buffering$|digest$|repr-digest$)/;
  return response === undefined ? [] : filterHeaders(response.headers, (name) => !aboutTheBody.test(name));
}

/** Answers with a failure of the gateway's own; does nothing but break off where an answer has begun. */
export function writeError(
  res: ServerResponse,
  error: GatewayError,
  options: { readonly idRaw?: string | undefined; readonly headers?: RawHeaders } = {},
): void {
  if (res.headersSent || res.destroyed) {
    breakOff(res);
    return;
  }
  writeJson(res, error.status, error.toBody(options.idRaw), options.headers ?? []);
}

/** How much of a refused body is read and thrown away, in bytes, before the client is cut off. */
export const MAX_DISCARDED_BYTES = 134_217_728;
/** How long its next bytes, or the next request, are waited for, in milliseconds. */
const DISCARD_IDLE_MS = 2_000;

/**
 * Answers a request whose body is not wanted. The rest of it is read all the same, within bounds: a connection
 * closed on a client that still sends is reset, and the client never sees why (RFC 9112 section 9.6).
 */
export function refuse(req: IncomingMessage, res: ServerResponse, error: GatewayError): void {
  writeError(res, error);
  let discarded = 0;
  req.on('data', (chunk: Buffer) => {
    discarded += chunk.length;
    if (discarded > MAX_DISCARDED_BYTES) req.destroy();
  });
  // Once the answer is out Node sets the time for which it keeps an idle connection.
  res.once('finish', () => req.socket.setTimeout(DISCARD_IDLE_MS));
}

/** Writes a JSON body of the gateway's own. */
export function writeJson(
  res: ServerResponse,
  status: number,
  body: string | Buffer,
  headers: RawHeaders,
): void {
  const length = String(Buffer.byteLength(body));
  writeHead(res, status, undefined, ['Content-Type', JSON_TYPE, 'Content-Length', length, ...headers]);
  res.end(body);
}
