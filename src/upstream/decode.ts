/**
 * Owns: unpacking what an upstream compressed, for the gateway's own reading only; the client gets the bytes
 * that were sent (RFC 9110 section 8.4). Every unpacked size is bounded.
 */
import type { Transform } from 'node:stream';
import { promisify } from 'node:util';
import {
  brotliDecompress,
  constants,
  createBrotliDecompress,
  createInflate,
  createUnzip,
  unzip,
} from 'node:zlib';

const unzipWhole = promisify(unzip);
const brotliWhole = promisify(brotliDecompress);

const GZIP_LIKE = new Set(['gzip', 'x-gzip', 'deflate']);

/** Whether a body with these content codings can be read here. */
export function canDecode(codings: readonly string[]): boolean {
  return (
    codings.length === 0 || (codings.length === 1 && (codings[0] === 'br' || GZIP_LIKE.has(codings[0] ?? '')))
  );
}

/**
 * The unpacked body; undefined where it is broken, or larger than `maxBytes`.
 * `codings` must be such that canDecode holds.
 */
export async function decodeWhole(
  body: Buffer,
  codings: readonly string[],
  maxBytes: number,
): Promise<Buffer | undefined> {
  if (codings.length === 0) return body;
  const options = { maxOutputLength: maxBytes };
  try {
    return codings[0] === 'br' ? await brotliWhole(body, options) : await unzipWhole(body, options);
  } catch {
    return undefined;
  }
}

/** Unpacks a stream chunk by chunk: all that a chunk yields is there before the next is taken. */
export interface StreamDecoder {
  /** @throws where the stream is broken */
  decode(chunk: Buffer): Promise<Buffer>;
  close(): void;
}

/** A decoder for one body; undefined where nothing is to be unpacked. */
export function createStreamDecoder(codings: readonly string[]): StreamDecoder | undefined {
  if (codings.length === 0) return undefined;
  return wrap(createTransform(codings[0] ?? ''));
}

function createTransform(coding: string): Transform {
  if (coding === 'br') return createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH });
  if (coding === 'deflate') return createInflate({ finishFlush: constants.Z_SYNC_FLUSH });
  return createUnzip({ finishFlush: constants.Z_SYNC_FLUSH });
}

function wrap(transform: Transform): StreamDecoder {
  let parts: Buffer[] = [];
  let failure: Error | undefined;
  transform.on('data', (part: Buffer) => parts.push(part));
  transform.on('error', (error) => {
    failure = error;
  });
  return {
    decode: (chunk) =>
      new Promise((resolve, reject) => {
        if (failure !== undefined) {
          reject(failure);
          return;
        }
        transform.write(chunk, (error) => {
          if (error) {
            reject(error);
            return;
          }
          const whole = Buffer.concat(parts);
          parts = [];
          resolve(whole);
        });
      }),
    close: () => transform.destroy(),
  };
}
