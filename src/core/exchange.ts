/**
 * Owns: the shapes in which an upstream's answer travels between the floors. Types only: `upstream` makes
 * them, `cache` decides on them, `http` writes them, and none of the three imports another for it.
 */
import type { Change } from './change.js';
import type { RawHeaders } from './headers.js';
import type { NotStoredReason } from './reasons.js';
import type { ReceivedPage } from './snapshot.js';

/** An answer on its way to the client as it came: what was read of it so far, and what still comes. */
export interface RelayResponse {
  readonly status: number;
  readonly statusText: string;
  /** The end-to-end fields. */
  readonly headers: RawHeaders;
  /** The bytes that were read and not yet sent on. */
  readonly held: readonly Buffer[];
  /** The bytes that still come; changes that they announce have taken effect before a chunk is given. */
  readonly rest: AsyncIterable<Buffer>;
  /** Ends the exchange with the upstream; for an answer that is not relayed to its end. */
  discard(): void;
}

/** What one request of a cacheable method brought. */
export type Fetched =
  | { readonly kind: 'page'; readonly received: ReceivedPage; readonly response: RelayResponse }
  | {
      readonly kind: 'other';
      readonly reason: NotStoredReason;
      /** The code of a JSON-RPC error. */
      readonly errorCode?: number;
      readonly response: RelayResponse;
    };

/** Where messages go that an upstream sends on the answer's own stream before the answer. */
export interface InterimSink {
  /** Begins the answer as an event stream with this head, unless it has begun. */
  begin(status: number, headers: RawHeaders): void;
  /** Sends bytes on; resolves when the client has room for more. */
  write(bytes: Buffer): Promise<void>;
  /** Whether the answer has begun, with this fetch or with one before it. */
  hasBegun(): boolean;
}

export interface FetchOptions {
  readonly signal: AbortSignal;
  /** Told when the head of the answer has come. */
  readonly onHead?: () => void;
  /**
   * Told of each change that the answer's own stream announces, and awaited before the change is sent on.
   * What comes `before` the answer does not touch it; what comes `after` it makes it untrue (law 11).
   */
  readonly onChange: (change: Change, place: 'before' | 'after') => Promise<void>;
  /** Absent for the later pages of a walk: nobody could read their messages. */
  readonly interim?: InterimSink;
}

/** Sends the client's own request, or the same for the page behind a cursor, given as the upstream sent it. */
export type FetchPage = (cursorRaw: string | undefined, options: FetchOptions) => Promise<Fetched>;
