/**
 * Owns: the envelope around stored bytes: an entry or a slice of it, a request's own id, what remains of the
 * lifetime (design, laws 12 and 14). The stored bytes are not copied.
 */
import type { Era } from './protocol.js';
import type { Entry } from './snapshot.js';

/** A page of a snapshot: a run of its items, and the cursor behind them. */
export interface Slice {
  /** Where in the entry's body the items lie. */
  readonly start: number;
  readonly end: number;
  /** Absent on the last page; of characters that JSON does not escape. */
  readonly nextCursor?: string;
}

export interface SpliceOptions {
  /** The request's id as it stood in its body. */
  readonly idRaw: string;
  readonly era: Era;
  /** What goes out as `ttlMs`: whole milliseconds that remain; 0 for what is stale. */
  readonly remainingMs: number;
  /** Absent: the entry is served whole. */
  readonly slice?: Slice | undefined;
}

/** The answer in parts, to be written one after the other. */
export interface Spliced {
  readonly head: string;
  readonly body: readonly Buffer[];
  readonly tail: string;
}

/** The JSON-RPC response that carries `entry` to one request. */
export function splice(entry: Entry, options: SpliceOptions): Spliced {
  const modern = options.era === 'modern';
  const { slice } = options;
  let hints = '';
  if (modern || entry.sentHints.ttlMs) hints += `"ttlMs":${options.remainingMs},`;
  if (modern || entry.sentHints.cacheScope) hints += `"cacheScope":"${entry.scope}",`;
  if (slice?.nextCursor !== undefined) hints += `"nextCursor":"${slice.nextCursor}",`;
  return {
    head: `{"jsonrpc":"2.0","id":${options.idRaw},"result":{${hints}`,
    body: slice === undefined ? [entry.body] : slicedBody(entry, slice),
    tail: '}',
  };
}

function slicedBody({ body, itemsAt }: Entry, slice: Slice): Buffer[] {
  if (itemsAt === undefined) return [body];
  return [body.subarray(0, itemsAt.start), body.subarray(slice.start, slice.end), body.subarray(itemsAt.end)];
}

/** The same as one event of an event stream; white space between tokens may break the JSON into lines. */
export function toEvent(spliced: Spliced): string {
  const text = spliced.head + spliced.body.map((part) => part.toString('utf8')).join('') + spliced.tail;
  const lines = text.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`);
  return `event: message\n${lines.join('')}\n`;
}
