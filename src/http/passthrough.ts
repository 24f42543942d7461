/**
 * Owns: requests that the cache has no part in: sent on as they came, answered as the upstream answers, byte
 * for byte and as it comes (design, law 23). What passes can be looked at; nothing of it is held back or changed.
 */
import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { RelayResponse } from '../core/exchange.js';
import {
  contentCodings,
  contentTypeOf,
  EVENT_STREAM_TYPE,
  endToEnd,
  JSON_TYPE,
  type RawHeaders,
} from '../core/headers.js';
import { canDecode, decodeWhole } from '../upstream/decode.js';
import { tappedChunks } from '../upstream/tap.js';
import type { Outgoing, Transport } from '../upstream/transport.js';
import type { Exchange } from './exchange.js';
import { flushHeadSoon, relayTo, writeHead } from './reply.js';
import { traced } from './traced.js';

/** Who is told of what passes. Each is awaited before that goes on to the client. */
export interface Observer {
  onStatus(status: number): Promise<void>;
  /** A message of an event stream. */
  onEvent(data: Buffer): Promise<void>;
  /** What may be a whole JSON body, of at most MAX_OBSERVED_BYTES; absent: nobody wants to see it. */
  readonly onBody?: ((data: Buffer) => Promise<void>) | undefined;
}

/** Errors are small: a larger body is not looked at, in bytes. */
export const MAX_OBSERVED_BYTES = 65_536;

export interface PassThroughOptions {
  readonly outgoing: Outgoing;
  readonly transport: Transport;
  /** Bounds the wait for the head of the answer, in milliseconds; what follows may take as long as it likes. */
  readonly timeoutMs: number;
  readonly observer: Observer;
  /** Fields of the gateway's own. */
  readonly added: RawHeaders;
  /** Aborts when an event stream is to be ended, as a stream of this listener. */
  readonly ending: AbortSignal;
  /** What an answer's fields go out as (law 24); mostly as they are. */
  readonly rename: (headers: RawHeaders) => RawHeaders;
}

/**
 * Passes one request through.
 * @throws GatewayError where no answer could be begun; an answer that has begun is broken off instead
 */
export async function passThrough(exchange: Exchange, options: PassThroughOptions): Promise<void> {
  const { res, signal } = exchange;
  const { observer } = options;
  exchange.setDeadline(options.timeoutMs);
  const response = await traced(
    exchange.span,
    options.outgoing,
    (outgoing) => options.transport.send(outgoing, { signal }),
    ({ status }) => status,
  );
  exchange.liftDeadline();
  await observer.onStatus(response.status);
  const headers = options.rename(endToEnd(response.headers));
  const type = contentTypeOf(headers);
  const codings = contentCodings(headers);
  const { status, statusText, body } = response;
  if (type === EVENT_STREAM_TYPE) {
    const rest = tappedChunks(body, { codings, onEvent: observer.onEvent });
    const discard = () => body.destroy();
    const stream = { status, statusText, headers, held: [], rest, discard };
    await endingWith(options.ending, res, discard, relayTo(res, stream, options.added));
    return;
  }
  writeHead(res, status, statusText, [...headers, ...options.added]);
  flushHeadSoon(res);
  const { onBody } = observer;
  const isLookedAt = type === JSON_TYPE && onBody !== undefined && canDecode(codings);
  await pour(body, res, isLookedAt ? lookFor(codings, onBody) : () => undefined);
}

/** Looks at a chunk before it goes on; undefined: it may go on at once. */
type Look = (chunk: Buffer) => Promise<void> | undefined;

/** Gives all of `body` to the client, as fast as it takes it. Rejects where it breaks off, or the client leaves. */
function pour(body: Readable, res: ServerResponse, look: Look): Promise<void> {
  return new Promise((resolve, reject) => {
    let looking: Promise<void> | undefined;
    const goOn = () => {
      if (looking === undefined) body.resume();
    };
    const give = (chunk: Buffer) => {
      looking = undefined;
      if (res.write(chunk)) body.resume();
      else body.pause();
    };
    body.on('data', (chunk: Buffer) => {
      looking = look(chunk)?.then(() => give(chunk));
      if (looking === undefined) give(chunk);
      else {
        body.pause();
        looking.catch(reject);
      }
    });
    body.on('end', () => {
      if (looking === undefined) res.end();
      else looking.then(() => res.end(), reject);
    });
    body.on('error', reject);
    // It may have broken off before anybody looked, or without a word.
    const onClose = () => {
      if (!body.readableEnded) reject(body.errored ?? new Error('the answer broke off'));
    };
    if (body.destroyed) onClose();
    body.on('close', onClose);
    res.on('drain', goOn);
    res.on('close', () => {
      if (res.writableFinished) resolve();
      else reject(new Error('the client has left'));
      body.destroy();
    });
    if (res.destroyed) body.destroy();
  });
}

/** Ends a stream that is being relayed when the signal aborts: properly, as if the upstream had ended it. */
async function endingWith(
  signal: AbortSignal,
  res: ServerResponse,
  discard: () => void,
  relaying: Promise<void>,
): Promise<void> {
  signal.addEventListener('abort', discard, { once: true });
  if (signal.aborted) discard();
  try {
    await relaying;
  } catch (error) {
    if (!signal.aborted) throw error;
    res.end();
  } finally {
    signal.removeEventListener('abort', discard);
  }
}

/** An answer that the cache does not keep, its JSON body looked at in the same way. */
export function observedRelay(response: RelayResponse, { onBody }: Observer): RelayResponse {
  const codings = contentCodings(response.headers);
  if (onBody === undefined || contentTypeOf(response.headers) !== JSON_TYPE || !canDecode(codings))
    return response;
  return { ...response, rest: observed(codings, onBody)(response.rest) };
}

/** Gives chunks on as they come, none before a small body that it may have completed has been looked at. */
function observed(codings: readonly string[], onBody: (data: Buffer) => Promise<void>) {
  return async function* (source: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
    const look = lookFor(codings, onBody);
    for await (const chunk of source) {
      await look(chunk);
      yield chunk;
    }
  };
}

function lookFor(codings: readonly string[], onBody: (data: Buffer) => Promise<void>): Look {
  let chunks: Buffer[] = [];
  let length = 0;
  return (chunk) => {
    length += chunk.length;
    if (length <= MAX_OBSERVED_BYTES) chunks.push(chunk);
    else chunks = [];
    if (chunks.length === 0 || !(codings.length > 0 || endsLikeAnObject(chunk))) return undefined;
    const sent = chunks.length === 1 ? chunk : Buffer.concat(chunks);
    return codings.length === 0 ? onBody(sent) : lookInto(sent, codings, onBody);
  };
}

async function lookInto(
  packed: Buffer,
  codings: readonly string[],
  onBody: (data: Buffer) => Promise<void>,
): Promise<void> {
  const whole = await decodeWhole(packed, codings, MAX_OBSERVED_BYTES);
  if (Buffer.isBuffer(whole)) await onBody(whole);
}

const SPACE: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d]);
const BRACE = 0x7d;

/** Whether nothing but white space follows a closing brace: the only place where a JSON object can end. */
function endsLikeAnObject(chunk: Buffer): boolean {
  let end = chunk.length - 1;
  while (end >= 0 && SPACE.has(chunk[end])) end -= 1;
  return chunk[end] === BRACE;
}
