/**
 * Owns: where the values of a JSON text lie, in bytes. A value that the gateway stores or rewrites is
 * copied by its span and never printed anew, so a number beyond 2^53, the order of keys and every escape
 * leave as they came (design, law 12). Refuses: anything that RFC 8259 does not allow, and nesting deeper
 * than MAX_DEPTH, so that what is spliced into an answer is known to be whole.
 */

/** A half-open range of bytes: from `start` up to, and without, `end`. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** One member of an object: its decoded name, where the quoted name begins, and the span of its value. */
export interface Member extends Span {
  readonly key: string;
  readonly keyStart: number;
}

/** Deeper nesting is refused: no result of MCP comes near it, and the bound keeps the scan's stack small. */
export const MAX_DEPTH = 10_000;

export class JsonSyntaxError extends Error {
  override readonly name = 'JsonSyntaxError';
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** The first position at or after `at` that holds no JSON white space. */
export function skipSpace(bytes: Uint8Array, at: number): number {
  let i = at;
  for (;;) {
    const c = bytes[i];
    if (c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09) i += 1;
    else return i;
  }
}

/**
 * The span of the one JSON text that fills `bytes`, white space around it aside.
 * @throws JsonSyntaxError where `bytes` is not exactly one JSON text (RFC 8259 section 2)
 */
export function scanText(bytes: Uint8Array): Span {
  const start = skipSpace(bytes, 0);
  const end = scanValue(bytes, start);
  if (skipSpace(bytes, end) !== bytes.length) throw new JsonSyntaxError('more than one value');
  return { start, end };
}

/**
 * The members of the object that begins at `at`, in order, doubles included.
 * @throws JsonSyntaxError where no well-formed object begins there
 */
export function readObject(
  bytes: Uint8Array,
  at: number,
): { readonly members: Member[]; readonly end: number } {
  if (bytes[at] !== OPEN_BRACE) throw new JsonSyntaxError('not an object');
  const members: Member[] = [];
  let i = skipSpace(bytes, at + 1);
  if (bytes[i] === CLOSE_BRACE) return { members, end: i + 1 };
  for (;;) {
    const keyEnd = scanString(bytes, i);
    const start = skipSpace(bytes, expectColon(bytes, keyEnd));
    const end = scanValue(bytes, start);
    members.push({ key: decodeString(bytes, { start: i, end: keyEnd }), keyStart: i, start, end });
    i = skipSpace(bytes, end);
    if (bytes[i] === CLOSE_BRACE) return { members, end: i + 1 };
    if (bytes[i] !== COMMA) throw new JsonSyntaxError('a comma or a brace was expected');
    i = skipSpace(bytes, i + 1);
  }
}

/**
 * The elements of the array that begins at `at`, in order.
 * @throws JsonSyntaxError where no well-formed array begins there
 */
export function readArray(
  bytes: Uint8Array,
  at: number,
): { readonly elements: Span[]; readonly end: number } {
  const elements: Span[] = [];
  const end = visitArray(bytes, at, (element) => elements.push(element));
  return { elements, end };
}

/** Tells of each element in turn, and keeps none: there may be millions. Returns the end, and throws as readArray does. */
export function visitArray(bytes: Uint8Array, at: number, visit: (element: Span) => void): number {
  if (bytes[at] !== OPEN_BRACKET) throw new JsonSyntaxError('not an array');
  let i = skipSpace(bytes, at + 1);
  if (bytes[i] === CLOSE_BRACKET) return i + 1;
  for (;;) {
    const end = scanValue(bytes, i);
    visit({ start: i, end });
    i = skipSpace(bytes, end);
    if (bytes[i] === CLOSE_BRACKET) return i + 1;
    if (bytes[i] !== COMMA) throw new JsonSyntaxError('a comma or a bracket was expected');
    i = skipSpace(bytes, i + 1);
  }
}

/** The text of the string whose quoted form lies in `span`; the span must have been scanned. */
export function decodeString(bytes: Uint8Array, span: Span): string {
  const raw = sliceText(bytes, span);
  if (!raw.includes('\\')) return raw.slice(1, -1);
  const value: unknown = JSON.parse(raw);
  return typeof value === 'string' ? value : '';
}

/** The bytes of `span` as text. */
export function sliceText(bytes: Uint8Array, span: Span): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + span.start, span.end - span.start).toString('utf8');
}

/** Whether two members bear one name: two readers could take different ones for the truth. */
export function hasDoubledKey(members: readonly Member[]): boolean {
  return new Set(members.map((member) => member.key)).size !== members.length;
}

/**
 * The end of the value that begins at `at`. Iterative: depth costs no call stack.
 * @throws JsonSyntaxError where no well-formed value begins there
 */
export function scanValue(bytes: Uint8Array, at: number): number {
  const closers: number[] = [];
  let i = at;
  for (;;) {
    const c = bytes[i];
    if (c === OPEN_BRACE || c === OPEN_BRACKET) {
      const closer = c + 2;
      const inner = skipSpace(bytes, i + 1);
      if (bytes[inner] !== closer) {
        if (closers.length === MAX_DEPTH) throw new JsonSyntaxError('nested too deep');
        closers.push(closer);
        i = closer === CLOSE_BRACE ? scanKey(bytes, inner) : inner;
        continue;
      }
      i = inner + 1;
    } else {
      i = scanScalar(bytes, i);
    }
    const next = leaveClosed(bytes, i, closers);
    if (closers.length === 0) return next;
    i = next;
  }
}

/** After a value: closes what ends here; returns where the next value begins, or the end when all is closed. */
function leaveClosed(bytes: Uint8Array, at: number, closers: number[]): number {
  let i = at;
  while (closers.length > 0) {
    const closer = closers[closers.length - 1];
    i = skipSpace(bytes, i);
    if (bytes[i] === closer) {
      closers.pop();
      i += 1;
    } else if (bytes[i] === COMMA) {
      const next = skipSpace(bytes, i + 1);
      return closer === CLOSE_BRACE ? scanKey(bytes, next) : next;
    } else {
      throw new JsonSyntaxError('a comma or the end of a container was expected');
    }
  }
  return i;
}

function scanKey(bytes: Uint8Array, at: number): number {
  return skipSpace(bytes, expectColon(bytes, scanString(bytes, at)));
}

function expectColon(bytes: Uint8Array, at: number): number {
  const i = skipSpace(bytes, at);
  if (bytes[i] !== COLON) throw new JsonSyntaxError('a colon was expected');
  return i + 1;
}

function scanScalar(bytes: Uint8Array, at: number): number {
  const c = bytes[at];
  if (c === QUOTE) return scanString(bytes, at);
  if (c === 0x74) return scanWord(bytes, at, 'true');
  if (c === 0x66) return scanWord(bytes, at, 'false');
  if (c === 0x6e) return scanWord(bytes, at, 'null');
  return scanNumber(bytes, at);
}

function scanWord(bytes: Uint8Array, at: number, word: string): number {
  for (let k = 0; k < word.length; k += 1) {
    if (bytes[at + k] !== word.charCodeAt(k)) throw new JsonSyntaxError('an unknown word');
  }
  return at + word.length;
}

function scanString(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== QUOTE) throw new JsonSyntaxError('a string was expected');
  let i = at + 1;
  for (;;) {
    const c = bytes[i];
    if (c === QUOTE) return i + 1;
    if (c === undefined || c < 0x20) throw new JsonSyntaxError('a string does not end');
    i = c === BACKSLASH ? scanEscape(bytes, i + 1) : i + 1;
  }
}

function scanEscape(bytes: Uint8Array, at: number): number {
  const c = bytes[at];
  if (c === 0x75) {
    for (let k = 1; k <= 4; k += 1) if (!isHex(bytes[at + k])) throw new JsonSyntaxError('a broken escape');
    return at + 5;
  }
  // " \ / b f n r t
  if (
    c === QUOTE ||
    c === BACKSLASH ||
    c === 0x2f ||
    c === 0x62 ||
    c === 0x66 ||
    c === 0x6e ||
    c === 0x72 ||
    c === 0x74
  ) {
    return at + 1;
  }
  throw new JsonSyntaxError('a broken escape');
}

function scanNumber(bytes: Uint8Array, at: number): number {
  let i = bytes[at] === 0x2d ? at + 1 : at;
  if (bytes[i] === 0x30) i += 1;
  else i = scanDigits(bytes, i);
  if (bytes[i] === 0x2e) i = scanDigits(bytes, i + 1);
  if (bytes[i] === 0x65 || bytes[i] === 0x45) {
    const sign = bytes[i + 1];
    i = scanDigits(bytes, sign === 0x2b || sign === 0x2d ? i + 2 : i + 1);
  }
  return i;
}

function scanDigits(bytes: Uint8Array, at: number): number {
  let i = at;
  while (isDigit(bytes[i])) i += 1;
  if (i === at) throw new JsonSyntaxError('a value was expected');
  return i;
}

function isDigit(c: number | undefined): boolean {
  return c !== undefined && c >= 0x30 && c <= 0x39;
}

function isHex(c: number | undefined): boolean {
  return isDigit(c) || (c !== undefined && (c | 0x20) >= 0x61 && (c | 0x20) <= 0x66);
}
