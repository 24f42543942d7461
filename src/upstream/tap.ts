/**
 * Owns: reading an event stream that passes through. Each chunk is given on as it came, but not before the
 * messages that end in it have been looked at, and what they change has taken effect (design, law 19).
 */
import { createEventScanner, type EventScanner } from '../core/sse.js';
import { canDecode, createStreamDecoder } from './decode.js';

export interface TappedEvent {
  readonly data: Buffer;
  /** Where the event ended in `text`. */
  readonly end: number;
}

/** One chunk of an event stream. */
export interface TappedChunk {
  /** The bytes as they came. */
  readonly raw: Buffer;
  /** The same unpacked; absent where it cannot be. */
  readonly text: Buffer | undefined;
  /** The events that ended in it. */
  readonly events: readonly TappedEvent[];
}

export interface TapOptions {
  readonly codings: readonly string[];
  /** Data beyond this is not looked at. */
  readonly maxDataBytes: number;
}

/** A notification of change is small: larger data in a stream that merely passes is not held for a look. */
export const MAX_NOTIFICATION_BYTES = 262_144;

export interface Tap {
  readonly scanner: EventScanner;
  readonly chunks: AsyncIterableIterator<TappedChunk>;
}

/**
 * Looks into the stream. What cannot be unpacked, or is broken, goes on unread.
 * The iterator rejects as `body` does, and ends it when it is closed.
 */
export function tap(body: AsyncIterable<Buffer>, options: TapOptions): Tap {
  const scanner = createEventScanner(options);
  return { scanner, chunks: tapChunks(body, scanner, options.codings) };
}

async function* tapChunks(
  body: AsyncIterable<Buffer>,
  scanner: EventScanner,
  codings: readonly string[],
): AsyncIterableIterator<TappedChunk> {
  const decoder = canDecode(codings) ? createStreamDecoder(codings) : undefined;
  let isReadable = canDecode(codings);
  try {
    for await (const raw of body) {
      let text = isReadable ? raw : undefined;
      if (decoder !== undefined && isReadable) {
        text = await decoder.decode(raw).catch(() => undefined);
        isReadable = text !== undefined;
      }
      yield { raw, text, events: text === undefined ? [] : scanner.feed(text) };
    }
  } finally {
    decoder?.close();
  }
}

/** The chunks of an event stream that passes through, each given on once `onEvent` has seen what ended in it. */
export async function* tappedChunks(
  body: AsyncIterable<Buffer>,
  options: { readonly codings: readonly string[]; readonly onEvent: (data: Buffer) => Promise<void> },
): AsyncIterable<Buffer> {
  const stream = tap(body, { codings: options.codings, maxDataBytes: MAX_NOTIFICATION_BYTES });
  for await (const { raw, events } of stream.chunks) {
    for (const { data } of events) await options.onEvent(data);
    yield raw;
  }
}
