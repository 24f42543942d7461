/** Owns: small bodies that the gateway reads for itself: whole, unpacked, and bounded. */
import { isObject } from '../core/change.js';
import { contentCodings, endToEnd } from '../core/headers.js';
import { canDecode, decodeWhole } from './decode.js';
import { MAX_NOTIFICATION_BYTES } from './tap.js';
import type { UpstreamResponse } from './transport.js';

/** The body, unpacked; undefined where it is larger than MAX_NOTIFICATION_BYTES, or cannot be unpacked. */
export async function readWhole(response: UpstreamResponse): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response.body) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MAX_NOTIFICATION_BYTES) return undefined;
  }
  const codings = contentCodings(endToEnd(response.headers));
  if (!canDecode(codings)) return undefined;
  const bytes = await decodeWhole(Buffer.concat(chunks), codings, MAX_NOTIFICATION_BYTES);
  return Buffer.isBuffer(bytes) ? bytes : undefined;
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
