/**
 * Owns: what a connection asked before. A client sends the same bytes again and again, but for the id; then everything
 * that was made of them the first time holds still: what kind of request it is, for whom, and under which keys. Kept
 * with the connection and gone with it, so nothing here is found by credentials; compared byte by byte, so nothing is
 * taken for what it is not.
 */
import type { Span } from '../core/json.js';

/** How many different requests of one connection are kept, and how large each may be, in bytes. */
export const MAX_RECALLED = 8;
export const MAX_RECALLED_BYTES = 8_192;

export interface AskedRequest {
  readonly url: string;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}

export interface Recalled<T> {
  readonly value: T;
  /** The id of this request as it stands in its body. */
  readonly idRaw: string;
}

export interface Recall<T> {
  /** What was kept for a request of the connection that differed in nothing but its id. */
  find(connection: object, asked: AskedRequest): Recalled<T> | undefined;
  /** Keeps `value` for requests like this one; `id` is where its id stands. */
  keep(connection: object, asked: AskedRequest, id: Span, value: T): void;
}

interface Kept<T> {
  readonly url: string;
  readonly rawHeaders: readonly string[];
  readonly before: Buffer;
  readonly after: Buffer;
  readonly value: T;
}

/** An id that can be echoed as it stands: a whole number or plain text without escapes. Others take the long way. */
const PLAIN_ID = /^(?:-?(?:0|[1-9]\d{0,14})|"[ !#-[\]-~]{0,64}")$/;

export function createRecall<T>(): Recall<T> {
  const byConnection = new WeakMap<object, Kept<T>[]>();
  return {
    find(connection, asked) {
      const all = byConnection.get(connection);
      if (all === undefined) return undefined;
      for (const kept of all) {
        const idRaw = kept.url === asked.url ? idOf(kept, asked.body) : undefined;
        if (idRaw !== undefined && hasSameFields(kept.rawHeaders, asked.rawHeaders))
          return { value: kept.value, idRaw };
      }
      return undefined;
    },
    keep(connection, { url, rawHeaders, body }, id, value) {
      const size = rawHeaders.reduce((sum, text) => sum + text.length, body.length + url.length);
      if (size > MAX_RECALLED_BYTES) return;
      const all = byConnection.get(connection) ?? [];
      byConnection.set(connection, all);
      all.unshift({
        url,
        rawHeaders,
        before: body.subarray(0, id.start),
        after: body.subarray(id.end),
        value,
      });
      if (all.length > MAX_RECALLED) all.pop();
    },
  };
}

/** The id in `body`, where everything around it is as it was. */
function idOf({ before, after }: Kept<unknown>, body: Buffer): string | undefined {
  const end = body.length - after.length;
  if (end <= before.length) return undefined;
  if (before.compare(body, 0, before.length) !== 0 || after.compare(body, end) !== 0) return undefined;
  const idRaw = body.toString('latin1', before.length, end);
  return PLAIN_ID.test(idRaw) ? idRaw : undefined;
}

/** Whether all fields are the same, but for the length, which changes with the id and which Node has checked. */
function hasSameFields(kept: readonly string[], sent: readonly string[]): boolean {
  if (kept.length !== sent.length) return false;
  for (let i = 0; i < kept.length; i += 1) {
    if (kept[i] !== sent[i] && (i % 2 === 0 || kept[i - 1]?.toLowerCase() !== 'content-length')) return false;
  }
  return true;
}
