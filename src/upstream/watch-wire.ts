/**
 * Owns: the messages that the gateway sends on its own account, as the revision that it speaks demands
 * (2026-07-28 and 2025-11-25 basic/transports), and the reading of what comes back.
 */
import { isObject } from '../core/change.js';
import {
  contentCodings,
  contentTypeOf,
  EVENT_STREAM_TYPE,
  endToEnd,
  type InjectedHeaders,
  JSON_TYPE,
  upstreamHeaders,
} from '../core/headers.js';
import { decodeWhole } from './decode.js';
import { MAX_NOTIFICATION_BYTES, tap } from './tap.js';
import type { Transport, UpstreamResponse } from './transport.js';

/** The upstream that is watched. */
export interface WatchTarget {
  readonly name: string;
  readonly origin: string;
  readonly path: string;
  readonly injected: InjectedHeaders;
  /** How long to wait for the head of an answer, in milliseconds. */
  readonly timeoutMs: number;
}

export interface Wire {
  /** Sends one message; `headers` are added to those that every message has. */
  post(message: object, headers: readonly string[], signal: AbortSignal): Promise<UpstreamResponse>;
  get(headers: readonly string[], signal: AbortSignal): Promise<UpstreamResponse>;
  delete(headers: readonly string[], signal: AbortSignal): Promise<UpstreamResponse>;
}

export function createWire(target: WatchTarget, transport: Transport): Wire {
  const { origin, path } = target;
  const withOwn = (headers: readonly string[]) => upstreamHeaders(headers, target.injected);
  return {
    post: (message, headers, signal) =>
      transport.send(
        {
          method: 'POST',
          origin,
          path,
          headers: withOwn([
            'content-type',
            JSON_TYPE,
            'accept',
            `${JSON_TYPE}, ${EVENT_STREAM_TYPE}`,
            'accept-encoding',
            'identity',
            ...headers,
          ]),
          body: Buffer.from(JSON.stringify(message)),
        },
        { signal },
      ),
    get: (headers, signal) =>
      transport.send(
        {
          method: 'GET',
          origin,
          path,
          headers: withOwn(['accept', EVENT_STREAM_TYPE, 'accept-encoding', 'identity', ...headers]),
        },
        { signal },
      ),
    delete: (headers, signal) =>
      transport.send({ method: 'DELETE', origin, path, headers: withOwn(headers) }, { signal }),
  };
}

export function isEventStream(response: UpstreamResponse): boolean {
  return contentTypeOf(response.headers) === EVENT_STREAM_TYPE;
}

/** The messages of an event stream, one after the other, until it ends. Rejects as the connection does. */
export async function* messagesOf(response: UpstreamResponse): AsyncIterable<Buffer> {
  const codings = contentCodings(endToEnd(response.headers));
  for await (const { events } of tap(response.body, { codings, maxDataBytes: MAX_NOTIFICATION_BYTES })
    .chunks) {
    for (const { data } of events) yield data;
  }
}

/**
 * The answer to the request with `id`, from a JSON body or an event stream; undefined where there is none.
 * A body beyond MAX_NOTIFICATION_BYTES is no answer. The exchange is over afterwards.
 */
export async function readAnswer(
  response: UpstreamResponse,
  id: string,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  try {
    for await (const data of isEventStream(response) ? messagesOf(response) : wholeBody(response)) {
      const message = parseObject(data);
      // An error about a request that could not be read bears no id, or null.
      if (message?.id === id || (message?.error !== undefined && (message.id ?? null) === null))
        return message;
    }
    return undefined;
  } finally {
    response.body.destroy();
  }
}

async function* wholeBody(response: UpstreamResponse): AsyncIterable<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response.body) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MAX_NOTIFICATION_BYTES) return;
  }
  const codings = contentCodings(endToEnd(response.headers));
  const bytes = await decodeWhole(Buffer.concat(chunks), codings.slice(0, 1), MAX_NOTIFICATION_BYTES);
  if (Buffer.isBuffer(bytes)) yield bytes;
}

/** The JSON object that the bytes hold; undefined for anything else. */
export function parseObject(bytes: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The code of a JSON-RPC error message. */
export function errorCodeOf(message: Readonly<Record<string, unknown>> | undefined): number | undefined {
  const error = message?.error;
  return isObject(error) && typeof error.code === 'number' ? error.code : undefined;
}
