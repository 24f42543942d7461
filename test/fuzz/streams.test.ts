/** Event streams and packed bodies, cut anywhere: what is read never depends on the cuts, nor grows beyond its bound. */
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { createEventScanner } from '../../src/core/sse.js';
import { createStreamDecoder, decodeWhole } from '../../src/upstream/decode.js';
import { tap } from '../../src/upstream/tap.js';
import { EVENT_STREAMS } from './corpus.js';
import type { Random } from './random.js';
import { readEventStream } from './reference.js';
import { countInputs, fuzz, fuzzSlowly, MAX_INPUT_MS, TIMEOUT_MS } from './runs.js';
import { expectSame } from './same.js';

/** The bytes in pieces, some of them empty. */
function pieces(bytes: Buffer, random: Random): Buffer[] {
  const ends = Array.from({ length: random.below(6) }, () => random.below(bytes.length + 1));
  ends.push(bytes.length);
  ends.sort((a, b) => a - b);
  return ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end));
}

const byteByByte = (bytes: Buffer) => Array.from(bytes, (byte) => Buffer.of(byte));

interface Read {
  readonly events: readonly string[];
  readonly pending: string | undefined;
  /** How far into the whole stream each event had come when it was told. */
  readonly ends: readonly number[];
}

function read(chunks: readonly Buffer[], maxDataBytes = 1_000_000): Read {
  const scanner = createEventScanner({ maxDataBytes });
  const events: string[] = [];
  const ends: number[] = [];
  let fed = 0;
  for (const chunk of chunks) {
    for (const { data, end } of scanner.feed(chunk)) {
      events.push(data.toString('latin1'));
      ends.push(fed + end);
    }
    fed += chunk.length;
  }
  return { events, ends, pending: scanner.pending()?.toString('latin1') };
}

/** The length of the longest event, in bytes, its line ends left aside. */
function longest(bytes: Buffer): number {
  let most = 0;
  let length = 0;
  for (const line of bytes.toString('latin1').split(/\r\n|\r|\n/)) {
    length = line === '' ? 0 : length + line.length;
    most = Math.max(most, length);
  }
  return most;
}

describe('an event stream', { timeout: TIMEOUT_MS }, () => {
  test('is read as the standard says, however it is cut', () => {
    fuzz({ name: 'events', corpus: EVENT_STREAMS, runs: 10_000 }, (bytes, random) => {
      const wanted = readEventStream(bytes);
      for (const chunks of [[bytes], pieces(bytes, random)]) {
        const { events, pending, ends } = read(chunks);
        expectSame({ events, pending }, wanted);
        for (const [i, end] of [...ends.entries()].slice(-3))
          expectSame(readEventStream(bytes.subarray(0, end)).events, events.slice(0, i + 1));
      }
    });
  });

  test('is read the same cut at every byte, and byte by byte', () => {
    fuzz({ name: 'every cut', corpus: EVENT_STREAMS, runs: 60 }, (bytes) => {
      const wanted = readEventStream(bytes);
      const seen = (chunks: readonly Buffer[]) => {
        const { events, pending } = read(chunks);
        return { events, pending };
      };
      expectSame(seen(byteByByte(bytes)), wanted);
      for (let cut = 0; cut <= bytes.length; cut += 1 + (bytes.length >> 8)) {
        countInputs();
        expectSame(seen([bytes.subarray(0, cut), bytes.subarray(cut)]), wanted);
      }
    });
  });

  test('with a bound shows no event beyond it, all events within it, and the same ones however it is cut', () => {
    const MAX = 40;
    fuzz({ name: 'bounded', corpus: EVENT_STREAMS, runs: 3_000 }, (bytes, random) => {
      const whole = read([bytes], MAX);
      for (const chunks of [byteByByte(bytes), pieces(bytes, random)]) {
        const cut = read(chunks, MAX);
        expectSame([cut.events, cut.pending], [whole.events, whole.pending]);
      }
      for (const data of whole.events) expect(data.length).toBeLessThanOrEqual(MAX);
      if (longest(bytes) <= MAX) expectSame(whole.events, readEventStream(bytes).events);
    });
  });
});

const PACKERS = {
  gzip: gzipSync,
  'x-gzip': gzipSync,
  br: brotliCompressSync,
  deflate: deflateSync,
} as const;
type Coding = keyof typeof PACKERS;
const CODINGS: readonly Coding[] = ['gzip', 'x-gzip', 'br', 'deflate'];

/** Fails where a promise does not settle. */
function settled<T>(promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('it never settles')), MAX_INPUT_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** All that a decoder gives before it fails or ends. */
async function unpack(
  chunks: readonly Buffer[],
  coding: Coding,
): Promise<{ text: Buffer; isBroken: boolean }> {
  const decoder = createStreamDecoder([coding]);
  if (decoder === undefined) throw new Error('no decoder');
  const parts: Buffer[] = [];
  try {
    for (const chunk of chunks) parts.push(await settled(decoder.decode(chunk)));
    return { text: Buffer.concat(parts), isBroken: false };
  } catch (error) {
    if (String(error).includes('never settles')) throw error;
    return { text: Buffer.concat(parts), isBroken: true };
  } finally {
    decoder.close();
  }
}

const TEXT = Buffer.from(`data: ${JSON.stringify({ a: 'é'.repeat(30), b: [1, 2, 3] })}\n\n`.repeat(3));

describe('a packed body', { timeout: TIMEOUT_MS }, () => {
  test.each(CODINGS)(
    'of %s is the same cut at every byte, and broken where it ends too early',
    async (coding) => {
      const packed = PACKERS[coding](TEXT);
      expectSame(await decodeWhole(packed, [coding], TEXT.length), TEXT);
      expect(await decodeWhole(packed, [coding], TEXT.length - 1)).toBe('too-large');
      for (let cut = 0; cut < packed.length; cut += 1) {
        countInputs();
        const chunks = [packed.subarray(0, cut), packed.subarray(cut)];
        expectSame(await unpack(chunks, coding), { text: TEXT, isBroken: false });
        expect(await decodeWhole(packed.subarray(0, cut), [coding], 10_000)).toBe('broken');
      }
      expectSame(await unpack(byteByByte(packed), coding), { text: TEXT, isBroken: false });
    },
  );

  test.each(CODINGS)(
    'of %s that is damaged is read within the bound, or is broken, and always settles',
    async (coding) => {
      const MAX = 4_096;
      const corpus = [TEXT, Buffer.alloc(0), Buffer.alloc(3_000)].map((text) => PACKERS[coding](text));
      corpus.push(deflateRawSync(TEXT), PACKERS[coding](Buffer.alloc(200_000)), Buffer.concat([...corpus]));
      await fuzzSlowly({ name: coding, corpus, runs: 300 }, async (bytes, random) => {
        const whole = await settled(decodeWhole(bytes, [coding], MAX));
        if (Buffer.isBuffer(whole)) expect(whole.length).toBeLessThanOrEqual(MAX);
        const once = await unpack([bytes], coding);
        const cut = await unpack(pieces(bytes, random), coding);
        // What comes before a break is given on chunk by chunk; bytes behind the end may be read or not.
        const common = Math.min(once.text.length, cut.text.length);
        expectSame(cut.text.subarray(0, common), once.text.subarray(0, common));
      });
    },
  );

  test('is tapped with the events of what it unpacks to, however it is cut', async () => {
    const corpus = EVENT_STREAMS.filter((bytes) => bytes.length < 1_500);
    await fuzzSlowly({ name: 'tap', corpus, runs: 1_000 }, async (bytes, random) => {
      const coding = random.pick(['identity', ...CODINGS] as const);
      const packed = coding === 'identity' ? bytes : PACKERS[coding](bytes);
      const codings = coding === 'identity' ? [] : [coding];
      async function* body(): AsyncIterable<Buffer> {
        yield* pieces(packed, random);
      }
      const { chunks, scanner } = tap(body(), { codings, maxDataBytes: 1_000_000 });
      const raws: Buffer[] = [];
      const events: string[] = [];
      for (let next = await settled(chunks.next()); next.done !== true; next = await settled(chunks.next())) {
        raws.push(next.value.raw);
        events.push(...next.value.events.map(({ data }) => data.toString('latin1')));
      }
      expectSame(Buffer.concat(raws), packed);
      expectSame({ events, pending: scanner.pending()?.toString('latin1') }, readEventStream(bytes));
    });
  });
});
