/**
 * Owns: writing answers to the client: relayed ones as they came, stored ones as an envelope around their
 * bytes, the gateway's own errors. Writes to the socket's response itself, so that nothing is buffered,
 * renamed or added on the way (design, laws 12, 15 and 23).
 */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Answer } from '../cache/list-cache.js';
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
import type { Era } from '../core/protocol.js';
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

function writeHead(res: ServerResponse, status: number, statusText: string, headers: RawHeaders): void {
  if (statusText === '') res.writeHead(status, [...headers]);
  else res.writeHead(status, statusText, [...headers]);
}

export function cacheStatusHeader(status: CacheStatus): RawHeaders {
  return ['Cache-Status', formatCacheStatus(status)];
}

/** Where messages go that come before the answer; its stream has then begun, and the answer is an event in it. */
export function createInterimSink(res: ServerResponse, onBegin: () => void): InterimSink {
  return {
    begin(status, headers) {
      if (res.headersSent) return;
      onBegin();
      writeHead(res, status, '', [...headers, ...cacheStatusHeader({ fwd: 'miss' })]);
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
  if (answer.kind === 'relay') {
    await relayTo(res, answer.response, status);
    return;
  }
  answer.response?.discard();
  const spliced = splice(answer.entry, { ...request, remainingMs: answer.remainingMs });
  if (res.headersSent) {
    res.end(toEvent(spliced));
    return;
  }
  const length = Buffer.byteLength(spliced.head) + spliced.body.length + spliced.tail.length;
  const headers = ['Content-Type', JSON_TYPE, 'Content-Length', String(length), ...status];
  if (answer.ageMs !== undefined) headers.push('Age', String(wholeSeconds(answer.ageMs)));
  writeHead(res, 200, '', [...ownFields(answer.response), ...headers]);
  res.cork();
  res.write(Buffer.from(spliced.head));
  res.write(spliced.body);
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
  const body = error.toBody(options.idRaw);
  res.writeHead(error.status, [
    'Content-Type',
    JSON_TYPE,
    'Content-Length',
    String(Buffer.byteLength(body)),
    ...(options.headers ?? []),
  ]);
  res.end(body);
}
