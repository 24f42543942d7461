/**
 * Owns: the protected-resource metadata of an upstream, answered at the path that RFC 9728 gives to its endpoint
 * here (design, law 24). Asked for without anybody's credentials; relayed, or made to name this gateway.
 */
import { contentTypeOf, endToEnd, JSON_TYPE } from '../core/headers.js';
import { metadataPaths, type PublicNames, renameResource } from '../core/resource-metadata.js';
import { GatewayError } from '../errors.js';
import { readWhole } from '../upstream/body.js';
import type { Transport, UpstreamResponse } from '../upstream/transport.js';
import type { Exchange } from './exchange.js';
import { relayTo, writeError, writeJson } from './reply.js';
import type { UpstreamRoute } from './task.js';

export interface MetadataOptions {
  readonly upstream: UpstreamRoute;
  readonly transport: Transport;
  /** Present: the document is made to name this gateway. */
  readonly names: PublicNames | undefined;
}

/** Answers with the upstream's document, or with the upstream's own verdict that there is none. */
export async function serveMetadata(exchange: Exchange, options: MetadataOptions): Promise<void> {
  exchange.setDeadline(options.upstream.timeoutMs);
  const response = await find(exchange, options);
  exchange.liftDeadline();
  const headers = endToEnd(response.headers);
  const { status, statusText, body } = response;
  const isDocument = status === 200 && contentTypeOf(headers) === JSON_TYPE;
  if (options.names === undefined || !isDocument) {
    const discard = () => body.destroy();
    await relayTo(exchange.res, { status, statusText, headers, held: [], rest: body, discard }, []);
    return;
  }
  const whole = await readWhole(response);
  const renamed = whole === undefined ? undefined : renameResource(whole, options.names);
  if (renamed === undefined) writeError(exchange.res, new GatewayError('upstream-unreachable'));
  else writeJson(exchange.res, 200, renamed, []);
}

/** The answer at the first path that has one; else the last. */
async function find(
  { signal }: Exchange,
  { upstream, transport }: MetadataOptions,
): Promise<UpstreamResponse> {
  let last: UpstreamResponse | undefined;
  for (const path of metadataPaths(upstream.path)) {
    last?.body.destroy();
    const headers = ['accept', JSON_TYPE];
    last = await transport.send({ method: 'GET', origin: upstream.origin, path, headers }, { signal });
    if (last.status >= 200 && last.status < 300) return last;
  }
  if (last === undefined) throw new GatewayError('not-found');
  return last;
}
