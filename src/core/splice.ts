/**
 * Owns: the envelope around stored bytes: an entry, a request's own id, what remains of the lifetime
 * (design, laws 12 and 14). The stored bytes are not copied.
 */
import type { Era } from './protocol.js';
import type { Entry } from './snapshot.js';

export interface SpliceOptions {
  /** The request's id as it stood in its body. */
  readonly idRaw: string;
  readonly era: Era;
  /** What goes out as `ttlMs`: whole milliseconds that remain; 0 for what is stale. */
  readonly remainingMs: number;
}

/** The answer in three parts, to be written one after the other. */
export interface Spliced {
  readonly head: string;
  readonly body: Buffer;
  readonly tail: string;
}

/** The JSON-RPC response that carries `entry` to one request. */
export function splice(entry: Entry, options: SpliceOptions): Spliced {
  const modern = options.era === 'modern';
  let hints = '';
  if (modern || entry.sentHints.ttlMs) hints += `"ttlMs":${options.remainingMs},`;
  if (modern || entry.sentHints.cacheScope) hints += `"cacheScope":"${entry.scope}",`;
  return { head: `{"jsonrpc":"2.0","id":${options.idRaw},"result":{${hints}`, body: entry.body, tail: '}' };
}

/** The same as one event of an event stream; white space between tokens may break the JSON into lines. */
export function toEvent(spliced: Spliced): string {
  const text = spliced.head + spliced.body.toString('utf8') + spliced.tail;
  return `event: message\n${text
    .split(/\r\n|\r|\n/)
    .map((line) => `data: ${line}\n`)
    .join('')}\n`;
}
