/** The upstream's end of event streams that a test holds in its hand. */
import type { ServerResponse } from 'node:http';
import { constants, createBrotliCompress, createGzip } from 'node:zlib';
import { until } from './gate.js';
import { beginEvents, type Respond } from './upstream.js';

export type Coding = 'identity' | 'gzip' | 'br';

export interface HeldStreams {
  /** Begins an event stream, and holds it. */
  readonly respond: Respond;
  /** Waits until the stream is there, and sends it text as it is. */
  write(text: string): Promise<void>;
  /** The same for one message, as an event. */
  send(message: object): Promise<void>;
  end(): void;
}

/** Holds one stream, packed as `coding` says: what is written goes out at once. */
export function heldStream(coding: Coding = 'identity'): HeldStreams {
  let sink: { write(text: string): unknown; flush?(): void; end(): unknown } | undefined;

  function open(res: ServerResponse): void {
    beginEvents(res, coding === 'identity' ? {} : { 'content-encoding': coding });
    if (coding === 'identity') {
      sink = res;
      return;
    }
    const packed =
      coding === 'gzip'
        ? createGzip({ flush: constants.Z_SYNC_FLUSH })
        : createBrotliCompress({ flush: constants.BROTLI_OPERATION_FLUSH });
    packed.pipe(res);
    sink = packed;
  }

  async function write(text: string): Promise<void> {
    await until(() => sink !== undefined);
    sink?.write(text);
    sink?.flush?.();
  }

  return {
    respond: (_request, res) => open(res),
    write,
    send: (message) => write(`event: message\ndata: ${JSON.stringify(message)}\n\n`),
    end: () => void sink?.end(),
  };
}
