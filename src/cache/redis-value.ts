/**
 * Owns: how an entry is written for the shared tier: one line of JSON that a person can read in a console, then
 * the bytes. Lifetimes are durations, since no two machines' clocks agree (design, law 26). What is not exactly
 * of this form is no value: it is a miss, and replaced.
 */
import { createHash } from 'node:crypto';
import { isObject } from '../core/change.js';
import { readObject } from '../core/json.js';
import { isCacheableMethod } from '../core/protocol.js';
import type { Entry } from '../core/snapshot.js';

/** Moves with every change of the form. */
const VERSION = 1;

export interface Encoded {
  readonly value: Buffer;
  /** How long the value is to be kept, in milliseconds. */
  readonly keepMs: number;
}

/**
 * The entry as it is stored under `key`. `keepPastExpiryMs` is how long it is kept for stale answers.
 * `now` is an instant of the process's clock.
 */
export function encodeEntry(entry: Entry, key: string, now: number, keepPastExpiryMs: number): Encoded {
  const lifetimeMs = Math.max(0, Math.floor(entry.expiresAt - now));
  const keepMs = lifetimeMs + keepPastExpiryMs;
  const { method, scope, authContext, itemsAt, sentHints, pages, items, uris, seed } = entry;
  const ageMs = Math.ceil(now - entry.receivedAt);
  const head = {
    v: VERSION,
    key,
    method,
    scope,
    authContext,
    lifetimeMs,
    ageMs,
    keepMs,
    itemsAt,
    sentHints,
    pages,
    items,
    uris,
    seed,
  };
  const line = JSON.stringify({ ...head, sum: sumOf(head, entry.body) });
  return { value: Buffer.concat([Buffer.from(`${line}\n`), entry.body]), keepMs };
}

/** Shows that nothing was changed: a scope that somebody edited would show one caller's data to another. */
function sumOf(head: object, body: Buffer): string {
  return createHash('sha256')
    .update(`${JSON.stringify(head)}\n`)
    .update(body)
    .digest('base64url');
}

/**
 * The entry in `value`, of whose time `leftMs` milliseconds were left when Redis was asked at `askedAt`;
 * undefined for anything that is not a value of this form under this key.
 */
export function decodeEntry(
  value: Buffer,
  key: string,
  time: { readonly leftMs: number; readonly askedAt: number },
): Entry | undefined {
  const lineEnd = value.indexOf(0x0a);
  if (lineEnd === -1) return undefined;
  const body = value.subarray(lineEnd + 1);
  const head = parseHead(value.subarray(0, lineEnd), body);
  if (head === undefined || head.key !== key || time.leftMs < 0 || time.leftMs > head.keepMs)
    return undefined;
  if (!isBody(body, head.itemsAt)) return undefined;
  const sinceWrittenMs = head.keepMs - time.leftMs;
  const { key: _key, lifetimeMs, ageMs, keepMs: _keepMs, ...told } = head;
  return {
    ...told,
    body,
    receivedAt: time.askedAt - ageMs - sinceWrittenMs,
    expiresAt: time.askedAt + lifetimeMs - sinceWrittenMs,
  };
}

type Head = Omit<Entry, 'body' | 'receivedAt' | 'expiresAt'> & {
  readonly key: string;
  readonly lifetimeMs: number;
  readonly ageMs: number;
  readonly keepMs: number;
};

function parseHead(line: Buffer, body: Buffer): Head | undefined {
  let told: unknown;
  try {
    told = JSON.parse(line.toString('utf8'));
  } catch {
    return undefined;
  }
  if (!isObject(told) || told.v !== VERSION) return undefined;
  const { sum, ...head } = told;
  if (sum !== sumOf(head, body)) return undefined;
  const {
    key,
    method,
    scope,
    authContext,
    lifetimeMs,
    ageMs,
    keepMs,
    itemsAt,
    sentHints,
    pages,
    items,
    uris,
    seed,
  } = head;
  if (typeof key !== 'string' || typeof method !== 'string' || !isCacheableMethod(method)) return undefined;
  if (scope !== 'public' && scope !== 'private') return undefined;
  if (typeof authContext !== 'string' || typeof seed !== 'string') return undefined;
  if (!isCount(lifetimeMs) || !isCount(ageMs) || !isCount(keepMs) || !isCount(pages) || !isCount(items))
    return undefined;
  if (
    !isObject(sentHints) ||
    typeof sentHints.ttlMs !== 'boolean' ||
    typeof sentHints.cacheScope !== 'boolean'
  )
    return undefined;
  if (!Array.isArray(uris) || !uris.every((uri) => typeof uri === 'string')) return undefined;
  const span = spanOf(itemsAt);
  if (itemsAt !== undefined && span === undefined) return undefined;
  return {
    key,
    method,
    scope,
    authContext,
    lifetimeMs,
    ageMs,
    keepMs,
    pages,
    items,
    uris,
    seed,
    sentHints: { ttlMs: sentHints.ttlMs, cacheScope: sentHints.cacheScope },
    ...(span !== undefined && { itemsAt: span }),
  };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function spanOf(value: unknown): Entry['itemsAt'] {
  if (!isObject(value) || !isCount(value.start) || !isCount(value.end) || value.end < value.start)
    return undefined;
  return { start: value.start, end: value.end };
}

/**
 * Whether the bytes are the rest of an object, as an answer needs it, and the items one of its members: foreign bytes
 * must not end up in an answer, nor an answer be cut at foreign places.
 */
function isBody(body: Buffer, itemsAt: Entry['itemsAt']): boolean {
  try {
    const whole = Buffer.concat([OPEN_BRACE, body]);
    const { members, end } = readObject(whole, 0);
    if (end !== whole.length) return false;
    // In `whole` all lies one byte further on, and a member's span has the brackets around the items.
    return (
      itemsAt === undefined ||
      members.some(
        (m) => m.start === itemsAt.start && m.end === itemsAt.end + 2 && whole[m.start] === OPEN_BRACKET,
      )
    );
  } catch {
    return false;
  }
}

const OPEN_BRACE = Buffer.from('{');
const OPEN_BRACKET = 0x5b;
