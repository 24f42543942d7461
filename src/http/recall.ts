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

/** A request without its body. */
export interface AskedHead {
  readonly url: string;
  readonly rawHeaders: readonly string[];
}

export interface AskedRequest extends AskedHead {
  readonly body: Buffer;
}

export interface Recalled<T> {
  readonly value: T;
  /** The id of this request as it stands in its body. */
  readonly idRaw: string;
}

/** What was kept of requests with one head. */
export interface KnownHead<T> extends AskedHead {
  readonly bodies: Kept<T>[];
}

export interface Recall<T> {
  /** What the connection has asked with this head. */
  headOf(connection: object, asked: AskedHead): KnownHead<T> | undefined;
  /** Keeps `value` for requests like this one; `id` is where its id stands. */
  keep(connection: object, asked: AskedRequest, id: Span, value: T): void;
}

interface Kept<T> {
  readonly before: Buffer;
  readonly after: Buffer;
  readonly value: T;
}

/** An id that can be echoed as it stands: a whole number or plain text without escapes. Others take the long way. */
const PLAIN_ID = /^(?:-?(?:0|[1-9]\d{0,14})|"[ !#-[\]-~]{0,64}")$/;

export function createRecall<T>(): Recall<T> {
  const byConnection = new WeakMap<object, KnownHead<T>[]>();

  function headOf(connection: object, { url, rawHeaders }: AskedHead): KnownHead<T> | undefined {
    const heads = byConnection.get(connection);
    if (heads === undefined) return undefined;
    for (const head of heads) if (head.url === url && hasSameFields(head.rawHeaders, rawHeaders)) return head;
    return undefined;
  }

  return {
    headOf,
    keep(connection, asked, id, value) {
      const { url, rawHeaders, body } = asked;
      const size = rawHeaders.reduce((sum, text) => sum + text.length, body.length + url.length);
      if (size > MAX_RECALLED_BYTES) return;
      const heads = byConnection.get(connection) ?? [];
      byConnection.set(connection, heads);
      const known = headOf(connection, asked);
      if (known !== undefined && recallIn(known, body) !== undefined) return;
      // A copy: what came off the socket is a part of a larger piece of memory.
      const own = Buffer.from(body);
      const kept = { before: own.subarray(0, id.start), after: own.subarray(id.end), value };
      if (known === undefined) heads.unshift({ url, rawHeaders, bodies: [kept] });
      else known.bodies.unshift(kept);
      forgetBeyondLimit(heads);
    },
  };
}

function forgetBeyondLimit(heads: KnownHead<unknown>[]): void {
  const count = heads.reduce((sum, { bodies }) => sum + bodies.length, 0);
  const last = heads.at(-1);
  if (count <= MAX_RECALLED || last === undefined) return;
  last.bodies.pop();
  if (last.bodies.length === 0) heads.pop();
}

/** What was kept for a request of this head that differed in nothing but its id. */
export function recallIn<T>({ bodies }: KnownHead<T>, body: Buffer): Recalled<T> | undefined {
  for (const kept of bodies) {
    const idRaw = idOf(kept, body);
    if (idRaw !== undefined) return { value: kept.value, idRaw };
  }
  return undefined;
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
