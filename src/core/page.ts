/**
 * Owns: what one answer of an upstream is: a result that may be stored, with the spans of its parts, or
 * anything else, which is relayed as it came (design, law 4). Reads bytes, keeps them, prints nothing anew.
 */
import { isUtf8 } from 'node:buffer';
import { isObject } from './change.js';
import type { Hints, SentField } from './freshness.js';
import {
  decodeString,
  hasDoubledKey,
  JsonSyntaxError,
  type Member,
  readArray,
  readObject,
  scanText,
  sliceText,
  visitArray,
} from './json.js';
import { parseMember } from './message.js';
import { type CacheableMethod, methodShape } from './protocol.js';
import type { NotStoredReason } from './reasons.js';

/** One complete result of a cacheable method. For a method without pages it is the only one. */
export interface Page {
  readonly bytes: Buffer;
  /** The members of the result, in the order in which they were sent. */
  readonly members: readonly Member[];
  readonly hints: Hints;
  /** The items of a list; absent for other methods. */
  readonly items?: ItemsSpan;
  /** The next cursor as it was sent, quotes and escapes included; absent at the end (absent or null). */
  readonly nextCursorRaw?: string;
  /** Resources that the contents of a `resources/read` name. */
  readonly uris: readonly string[];
}

export interface ItemsSpan {
  /** From the first item to the end of the last; empty where there is none. */
  readonly start: number;
  readonly end: number;
  readonly count: number;
}

/** `no-answer` is a message that is not the answer to this request: a notification, or one for another id. */
export type ReadReply =
  | { readonly kind: 'no-answer' }
  | { readonly kind: 'page'; readonly page: Page }
  | { readonly kind: 'not-a-page'; readonly reason: NotStoredReason; readonly errorCode?: number };

/**
 * Reads a JSON-RPC answer. `id` is the id that the request bore.
 * Never throws: what is no JSON object is `no-answer`, what is no well-formed answer `unexpected`.
 */
export function readReply(bytes: Buffer, method: CacheableMethod, id: string | number): ReadReply {
  try {
    const text = scanText(bytes);
    if (!isUtf8(bytes)) return notAPage('unexpected');
    const envelope = readObject(bytes, text.start).members;
    const result = envelope.find((member) => member.key === 'result');
    const hasError = envelope.some((member) => member.key === 'error');
    if (parseMember(bytes, envelope, 'id') !== id || (result === undefined && !hasError))
      return { kind: 'no-answer' };
    if (hasDoubledKey(envelope) || parseMember(bytes, envelope, 'jsonrpc') !== '2.0')
      return notAPage('unexpected');
    if (result === undefined) return errorReply(bytes, envelope);
    return hasError ? notAPage('unexpected') : readResult(bytes, result, method);
  } catch (error) {
    if (error instanceof JsonSyntaxError) return { kind: 'no-answer' };
    throw error;
  }
}

function readResult(bytes: Buffer, result: Member, method: CacheableMethod): ReadReply {
  if (bytes[result.start] !== 0x7b) return notAPage('unexpected');
  const { members } = readObject(bytes, result.start);
  if (hasDoubledKey(members)) return notAPage('unexpected');
  const resultType = sentField(bytes, members, 'resultType');
  if (resultType.sent && resultType.value !== 'complete') {
    return notAPage(resultType.value === 'input_required' ? 'input-required' : 'unexpected');
  }
  const shape = methodShape(method);
  for (const [field, type] of Object.entries(shape.required)) {
    if (!isOfType(bytes, members, field, type)) return notAPage('unexpected');
  }
  const nextCursor = members.find((member) => member.key === 'nextCursor');
  const cursorRaw = nextCursor === undefined ? 'null' : sliceText(bytes, nextCursor);
  if (cursorRaw !== 'null' && !cursorRaw.startsWith('"')) return notAPage('unexpected');
  const isList = shape.itemsField !== undefined;
  return {
    kind: 'page',
    page: {
      bytes,
      members,
      hints: {
        ttlMs: sentField(bytes, members, 'ttlMs'),
        cacheScope: sentField(bytes, members, 'cacheScope'),
      },
      ...(isList && { items: itemsSpan(bytes, members, shape.itemsField) }),
      ...(isList && cursorRaw !== 'null' && { nextCursorRaw: cursorRaw }),
      uris: method === 'resources/read' ? contentUris(bytes, members) : [],
    },
  };
}

function notAPage(reason: NotStoredReason): ReadReply {
  return { kind: 'not-a-page', reason };
}

function errorReply(bytes: Buffer, envelope: readonly Member[]): ReadReply {
  const error = parseMember(bytes, envelope, 'error');
  const code = isObject(error) ? error.code : undefined;
  return { kind: 'not-a-page', reason: 'error-reply', ...(typeof code === 'number' && { errorCode: code }) };
}

function sentField(bytes: Buffer, members: readonly Member[], key: string): SentField {
  const value = parseMember(bytes, members, key);
  return value === undefined ? { sent: false } : { sent: true, value };
}

function isOfType(bytes: Buffer, members: readonly Member[], key: string, type: 'array' | 'object'): boolean {
  const member = members.find((m) => m.key === key);
  return member !== undefined && bytes[member.start] === (type === 'array' ? 0x5b : 0x7b);
}

function itemsSpan(bytes: Buffer, members: readonly Member[], field: string): ItemsSpan {
  const member = members.find((m) => m.key === field);
  let span = { start: 0, end: 0, count: 0 };
  if (member === undefined) return span;
  visitArray(bytes, member.start, ({ start, end }) => {
    span = { start: span.count === 0 ? start : span.start, end, count: span.count + 1 };
  });
  return span;
}

function contentUris(bytes: Buffer, members: readonly Member[]): string[] {
  const contents = members.find((m) => m.key === 'contents');
  if (contents === undefined) return [];
  const uris = new Set<string>();
  for (const element of readArray(bytes, contents.start).elements) {
    if (bytes[element.start] !== 0x7b) continue;
    // A doubled key names both: readers differ in which they take.
    for (const member of readObject(bytes, element.start).members) {
      if (member.key === 'uri' && bytes[member.start] === 0x22) uris.add(decodeString(bytes, member));
    }
  }
  return [...uris];
}
