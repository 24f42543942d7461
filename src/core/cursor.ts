/**
 * Owns: the gateway's own cursors (design, law 13). One names a snapshot and a position in it, and bears a
 * code that only the snapshot's own seed makes, over the position and the caller's key: so it holds for one
 * list, one upstream and one authorization context, and an altered one is worth nothing. It begins with a tag
 * of its upstream, so that the cursors of a gateway behind this one are not taken for ours.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

export interface OwnCursor {
  readonly tag: string;
  readonly snapshotId: string;
  /** The position of the first item of the page. */
  readonly offset: number;
  readonly code: string;
}

const FORM = /^mcg\.([\w-]{8})\.([\w-]{22})\.(\d{1,9})\.([\w-]{22})$/;
const OURS = /^mcg\.([\w-]{8})\./;

/** The tag of an upstream. */
export function cursorTag(upstream: { readonly name: string; readonly url: string }): string {
  const text = JSON.stringify(['cursor', upstream.name, upstream.url]);
  return createHash('sha256').update(text).digest('base64url').slice(0, 8);
}

/** The public name of the snapshot with this seed; the seed cannot be told from it. */
export function snapshotIdOf(seed: string): string {
  return createHash('sha256')
    .update(JSON.stringify(['snapshot', seed]))
    .digest('base64url')
    .slice(0, 22);
}

export interface CursorParts {
  readonly tag: string;
  readonly seed: string;
  readonly offset: number;
  /** The key under which this caller's own answers are stored. */
  readonly ownKey: string;
}

/** A cursor for the page that begins at `offset`; of characters that JSON does not escape. */
export function makeCursor(parts: CursorParts): string {
  return `mcg.${parts.tag}.${snapshotIdOf(parts.seed)}.${parts.offset}.${codeOf(parts)}`;
}

/** The tag of a cursor that looks like one of ours; undefined for any other. */
export function tagOf(cursor: string): string | undefined {
  return OURS.exec(cursor)?.[1];
}

/** The parts of a well-formed cursor; undefined for any other. */
export function readCursor(cursor: string): OwnCursor | undefined {
  const match = FORM.exec(cursor);
  if (match === null) return undefined;
  const [, tag = '', snapshotId = '', offset = '', code = ''] = match;
  return String(Number(offset)) === offset ? { tag, snapshotId, offset: Number(offset), code } : undefined;
}

/** Whether the cursor was made for this snapshot and this caller, and not altered since. */
export function isGenuine(cursor: OwnCursor, seed: string, ownKey: string): boolean {
  const expected = codeOf({ tag: cursor.tag, seed, offset: cursor.offset, ownKey });
  return timingSafeEqual(Buffer.from(expected), Buffer.from(cursor.code));
}

function codeOf({ tag, seed, offset, ownKey }: CursorParts): string {
  return createHmac('sha256', seed)
    .update(JSON.stringify([tag, offset, ownKey]))
    .digest('base64url')
    .slice(0, 22);
}
