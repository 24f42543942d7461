/** Unpacking for the gateway's own reading: law 23, case C44. */
import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import {
  canDecode,
  createStreamDecoder,
  decodeWhole,
  MAX_UNPACKED_BYTES,
} from '../../src/upstream/decode.js';
import { cut, PACKINGS, packEvents } from '../support/packed.js';

const TEXT = Buffer.from('{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'.repeat(50));

describe('what can be read', () => {
  test.each([[[]], [['gzip']], [['x-gzip']], [['deflate']], [['br']]])('%j can', (codings) => {
    expect(canDecode(codings)).toBe(true);
  });

  test.each([[['zstd']], [['compress']], [['gzip', 'br']], [['']]])('%j cannot', (codings) => {
    expect(canDecode(codings)).toBe(false);
  });
});

describe('a whole body', () => {
  const packed: [string, Buffer][] = [
    ['gzip', gzipSync(TEXT)],
    ['x-gzip', gzipSync(TEXT)],
    ['deflate', deflateSync(TEXT)],
    ['br', brotliCompressSync(TEXT)],
  ];

  test.each(packed)('of %s is unpacked', async (coding, body) => {
    expect(await decodeWhole(body, [coding], TEXT.length)).toEqual(TEXT);
  });

  test('that is not packed stays as it is', async () => {
    expect(await decodeWhole(TEXT, [], 1)).toBe(TEXT);
  });

  test.each(packed)('of %s beyond the bound is not unpacked, however small it came', async (coding, body) => {
    expect(body.length).toBeLessThan(TEXT.length - 1);
    expect(await decodeWhole(body, [coding], TEXT.length - 1)).toBe('too-large');
  });

  test.each(packed)('of %s that is broken or cut is none', async (coding, body) => {
    expect(await decodeWhole(TEXT, [coding], 1_000_000)).toBe('broken');
    expect(await decodeWhole(body.subarray(0, body.length / 2), [coding], 1_000_000)).toBe('broken');
  });
});

describe('a stream', () => {
  const EVENTS = ['data: one\n\n', `data: ${'two'.repeat(40_000)}\n\n`, 'data: three\n\n'];

  test.each(PACKINGS)('of %s yields each event with the chunk that brings its end', async (coding) => {
    const decoder = createStreamDecoder([coding]);
    const seen: (string | undefined)[] = [];
    for (const chunk of await packEvents(coding, EVENTS))
      seen.push((await decoder?.decode(chunk))?.toString());
    expect(seen.slice(0, EVENTS.length)).toEqual(EVENTS);
    expect(seen.join('')).toBe(EVENTS.join(''));
    decoder?.close();
  });

  test.each(PACKINGS)('of %s may be cut anywhere', async (coding) => {
    const decoder = createStreamDecoder([coding]);
    const whole = Buffer.concat(await packEvents(coding, ['data: a\n\n', 'data: b\n\n']));
    let text = '';
    for (const byte of cut(whole, 1)) text += await decoder?.decode(byte);
    expect(text).toBe('data: a\n\ndata: b\n\n');
    decoder?.close();
  });

  test.each(PACKINGS)('of %s that is broken says so, then and afterwards', async (coding) => {
    const decoder = createStreamDecoder([coding]);
    await expect(decoder?.decode(Buffer.from('no packed bytes at all'))).rejects.toThrow();
    await expect(decoder?.decode(Buffer.from('x'))).rejects.toThrow();
    decoder?.close();
  });

  test('of which one chunk stands for more than the bound is taken for broken', async () => {
    const bomb = brotliCompressSync(Buffer.alloc(2 * MAX_UNPACKED_BYTES), {
      params: { [constants.BROTLI_PARAM_QUALITY]: 1 },
    });
    expect(bomb.length).toBeLessThan(100_000);
    const decoder = createStreamDecoder(['br']);
    await expect(decoder?.decode(bomb)).rejects.toThrow('too much');
    decoder?.close();
  });

  test('that is not packed needs no decoder', () => {
    expect(createStreamDecoder([])).toBeUndefined();
  });
});
