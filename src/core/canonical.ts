/**
 * Owns: one text for all JSON values that mean the same to every reader: keys sorted, white space gone,
 * strings in one spelling. Numbers keep their digits, since two that differ only beyond 2^53 are not the
 * same parameter (design, law 3). Refuses: doubled keys, which two readers may read differently.
 */
import {
  decodeString,
  hasDoubledKey,
  type Member,
  readArray,
  readObject,
  type Span,
  sliceText,
} from './json.js';

/** Parameters nested deeper than this are not compared: no method of MCP has such, and recursion stays small. */
export const MAX_CANONICAL_DEPTH = 64;

export class NotCanonicalError extends Error {
  override readonly name = 'NotCanonicalError';
}

/**
 * The canonical text of the value in `span`, which must have been scanned.
 * @throws NotCanonicalError on a doubled key at any depth, or on nesting beyond MAX_CANONICAL_DEPTH
 */
export function canonicalText(bytes: Uint8Array, span: Span, depth = 0): string {
  if (depth > MAX_CANONICAL_DEPTH) throw new NotCanonicalError('nested too deep');
  const first = bytes[span.start];
  if (first === 0x7b) return canonicalMembers(bytes, readObject(bytes, span.start).members, depth);
  if (first === 0x5b) {
    const { elements } = readArray(bytes, span.start);
    return `[${elements.map((element) => canonicalText(bytes, element, depth + 1)).join(',')}]`;
  }
  if (first === 0x22) return JSON.stringify(decodeString(bytes, span));
  return sliceText(bytes, span);
}

/**
 * The canonical text of an object made of `members`; the empty string for none.
 * @throws NotCanonicalError as canonicalText does
 */
export function canonicalMembers(bytes: Uint8Array, members: readonly Member[], depth = 0): string {
  if (hasDoubledKey(members)) throw new NotCanonicalError('a doubled key');
  const sorted = [...members].sort((a, b) => (a.key < b.key ? -1 : 1));
  const parts = sorted.map((m) => `${JSON.stringify(m.key)}:${canonicalText(bytes, m, depth + 1)}`);
  return `{${parts.join(',')}}`;
}
