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

/** What one chunk of a stream may unpack to: a few kilobytes can be made to stand for gigabytes. */
export const MAX_UNPACKED_BYTES = 33_554_432;

const GZIP_LIKE = new Set(['gzip', 'x-gzip', 'deflate']);

/** Whether a body with these content codings can be read here. */
export function canDecode(codings: readonly string[]): boolean {
  return (
    codings.length === 0 || (codings.length === 1 && (codings[0] === 'br' || GZIP_LIKE.has(codings[0] ?? '')))
  );
}

/**
 * The unpacked body, unless it is broken or larger than `maxBytes`.
 * `codings` must be such that canDecode holds.
 */
export async function decodeWhole(
  body: Buffer,
  codings: readonly string[],
  maxBytes: number,
): Promise<Buffer | 'broken' | 'too-large'> {
  if (codings.length === 0) return body;
  const options = { maxOutputLength: maxBytes };
  try {
    return codings[0] === 'br' ? await brotliWhole(body, options) : await unzipWhole(body, options);
  } catch (error) {
    return error instanceof RangeError ? 'too-large' : 'broken';
  }
}

/** Unpacks a stream chunk by chunk: all that a chunk yields is there before the next is taken. */
export interface StreamDecoder {
  /** @throws where the stream is broken, or a chunk yields more than MAX_UNPACKED_BYTES */
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
  let length = 0;
  let failure: Error | undefined;
  let fail: (error: Error) => void = () => {};
  transform.on('data', (part: Buffer) => {
    parts.push(part);
    length += part.length;
    if (length > MAX_UNPACKED_BYTES) transform.destroy(new Error('a chunk unpacks to too much'));
  });
  transform.on('error', (error) => {
    failure = error;
    parts = [];
    // Broken bytes end the transform without a word to whoever wrote them.
    fail(error);
  });
  return {
    decode: (chunk) =>
      new Promise((resolve, reject) => {
        if (failure !== undefined) {
          reject(failure);
          return;
        }
        fail = reject;
        transform.write(chunk, (error) => {
          const broken = error ?? transform.errored;
          if (broken) {
            reject(broken);
            return;
          }
          const whole = Buffer.concat(parts);
          parts = [];
          length = 0;
          resolve(whole);
        });
      }),
    close: () => transform.destroy(),
  };
}
