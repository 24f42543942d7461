/**
 * Owns: one HTTP exchange with an upstream, on undici: connections, aborts, and the mapping of its errors to
 * ours. Follows no redirect, retries nothing, decodes nothing (design, law 23).
 */
import dns from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { Readable } from 'node:stream';
import { Agent, type Dispatcher } from 'undici';
import type { RawHeaders } from '../core/headers.js';
import { GatewayError } from '../errors.js';

/** One request as it goes out; `path` with its query, from the root on. */
export interface Outgoing {
  readonly method: 'POST' | 'GET' | 'DELETE';
  readonly origin: string;
  readonly path: string;
  readonly headers: RawHeaders;
  readonly body?: Buffer;
}

/** The head of an answer, with all its fields, and its body, which must be read or destroyed. */
export interface UpstreamResponse {
  readonly status: number;
  readonly statusText: string;
  readonly headers: RawHeaders;
  readonly body: Readable;
}

export interface Transport {
  /**
   * Resolves with the head of the answer. Aborting the signal ends the exchange at any time.
   * @throws GatewayError `upstream-unreachable`, or the signal's own reason where that is one
   */
  send(outgoing: Outgoing, options: { readonly signal: AbortSignal }): Promise<UpstreamResponse>;
  close(): Promise<void>;
}

export function createTransport(): Transport {
  // Time limits are the callers': an event stream may be silent for as long as it likes.
  const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0, connect: { lookup } });
  return {
    async send(outgoing, { signal }) {
      try {
        const response = await agent.request({
          origin: outgoing.origin,
          path: outgoing.path,
          method: outgoing.method,
          headers: [...outgoing.headers],
          body: outgoing.body ?? null,
          signal,
          responseHeaders: 'raw',
        });
        // Whoever reads the body sees its failure; a body that nobody reads any more may fail unseen.
        response.body.on('error', () => {});
        return {
          status: response.statusCode,
          statusText: statusTextOf(response),
          headers: rawHeaders(response.headers),
          body: response.body,
        };
      } catch (error) {
        throw toGatewayError(error, signal);
      }
    },
    close: () => agent.destroy(),
  };
}

const LOOPBACKS = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/** `localhost` is both loopback addresses, whichever of them the machine's own tables know (RFC 6761 section 6.3). */
const lookup: LookupFunction = (hostname, options, callback) => {
  if (hostname.toLowerCase() === 'localhost' && options.all === true) callback(null, LOOPBACKS);
  else dns.lookup(hostname, options, callback);
};

/** What a failed exchange is to a client; the cause is for the log. */
export function toGatewayError(error: unknown, signal: AbortSignal): GatewayError {
  if (signal.aborted && signal.reason instanceof GatewayError) return signal.reason;
  if (error instanceof GatewayError) return error;
  return new GatewayError('upstream-unreachable', { cause: error });
}

/** The reason with its bytes as latin1, as node:http writes them; undici has read them as UTF-8. */
function statusTextOf(response: Dispatcher.ResponseData): string {
  const text = 'statusText' in response && typeof response.statusText === 'string' ? response.statusText : '';
  return Buffer.from(text)
    .toString('latin1')
    .replace(/[^\t\x20-\x7e\x80-\xff]/g, '');
}

/** With `responseHeaders: 'raw'` undici gives the flat list that its types do not know of. */
function rawHeaders(headers: unknown): string[] {
  return Array.isArray(headers) ? headers.map(String) : [];
}
