/** Event streams that an upstream packs, flushed after each event, as servers do that stream. */
import { once } from 'node:events';
import { constants, createBrotliCompress, createDeflate, createGzip } from 'node:zlib';

export const PACKINGS = ['gzip', 'deflate', 'br'] as const;
export type Packing = (typeof PACKINGS)[number];

/** One chunk for each event, and one that ends the stream. */
export async function packEvents(coding: Packing, events: readonly string[]): Promise<Buffer[]> {
  const packer = createPacker(coding);
  let parts: Buffer[] = [];
  const take = () => Buffer.concat(parts.splice(0));
  packer.on('data', (part: Buffer) => parts.push(part));
  const chunks: Buffer[] = [];
  for (const event of events) {
    packer.write(event);
    await new Promise<void>((resolve) => packer.flush(resolve));
    chunks.push(take());
  }
  packer.end();
  await once(packer, 'end');
  chunks.push(take());
  parts = [];
  return chunks;
}

function createPacker(coding: Packing) {
  if (coding === 'br') return createBrotliCompress({ flush: constants.BROTLI_OPERATION_PROCESS });
  return coding === 'gzip' ? createGzip() : createDeflate();
}

/** The bytes in pieces of `size`. */
export function cut(bytes: Buffer, size: number): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size));
  return pieces;
}
