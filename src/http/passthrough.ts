/**
 * Owns: requests that the cache has no part in: sent on as they came, answered as the upstream answers, byte
 * for byte and as it comes (design, law 23). Event streams are looked into for changes on their way (law 18).
 */
import { pipeline } from 'node:stream/promises';
import type { Change } from '../core/change.js';
import {
  contentCodings,
  contentTypeOf,
  EVENT_STREAM_TYPE,
  endToEnd,
  type RawHeaders,
} from '../core/headers.js';
import { tappedChunks } from '../upstream/tap.js';
import type { Outgoing, Transport } from '../upstream/transport.js';
import type { Exchange } from './exchange.js';
import { flushHead, relayTo } from './reply.js';

export interface PassThroughOptions {
  readonly outgoing: Outgoing;
  readonly transport: Transport;
  /** Bounds the wait for the head of the answer, in milliseconds; what follows may take as long as it likes. */
  readonly timeoutMs: number;
  readonly onChange: (change: Change) => Promise<void>;
  /** Fields of the gateway's own. */
  readonly added: RawHeaders;
}

/**
 * Passes one request through.
 * @throws GatewayError where no answer could be begun; an answer that has begun is broken off instead
 */
export async function passThrough(exchange: Exchange, options: PassThroughOptions): Promise<void> {
  const { res, signal } = exchange;
  exchange.setDeadline(options.timeoutMs);
  const response = await options.transport.send(options.outgoing, { signal });
  exchange.liftDeadline();
  const headers = endToEnd(response.headers);
  if (contentTypeOf(headers) === EVENT_STREAM_TYPE) {
    const rest = tappedChunks(response.body, {
      codings: contentCodings(headers),
      onChange: options.onChange,
    });
    const { status, statusText } = response;
    await relayTo(
      res,
      { status, statusText, headers, held: [], rest, discard: () => response.body.destroy() },
      options.added,
    );
    return;
  }
  res.writeHead(response.status, response.statusText, [...headers, ...options.added]);
  flushHead(res);
  await pipeline(response.body, res);
}
