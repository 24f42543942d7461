/** Owns: what the cache gives back to be written, and the small decisions on how an entry is told. */
import type { CacheStatus } from '../core/cache-status.js';
import type { RelayResponse } from '../core/exchange.js';
import { remainingMs } from '../core/freshness.js';
import type { NotStoredReason, StaleReason } from '../core/reasons.js';
import type { Entry, ReceivedPage } from '../core/snapshot.js';
import type { Slice } from '../core/splice.js';

/** An answer out of an entry. */
export interface EntryAnswer {
  readonly kind: 'entry';
  readonly entry: Entry;
  /** What goes out as `ttlMs`. */
  readonly remainingMs: number;
  /** Absent where the answer is the client's own fetch. */
  readonly ageMs?: number;
  /** The answer to the client's own request, whose fields are its own; absent on a hit (law 15). */
  readonly response?: RelayResponse;
  readonly slice?: Slice | undefined;
  readonly status: CacheStatus;
  readonly pages: number;
}

export interface RelayAnswer {
  readonly kind: 'relay';
  readonly response: RelayResponse;
  readonly status: CacheStatus;
  readonly pages: number;
}

/** A cursor of the gateway's that names nothing any more, or not for this caller. */
export interface InvalidCursorAnswer {
  readonly kind: 'invalid-cursor';
  readonly status: CacheStatus;
  readonly pages: number;
}

export type Answer = EntryAnswer | RelayAnswer | InvalidCursorAnswer;

/** A fresh entry; `waited` tells what the request was before it waited for another's fetch. */
export function freshAnswer(entry: Entry, now: number, waited?: 'miss' | 'stale'): EntryAnswer {
  const remaining = remainingMs(entry, now);
  return {
    kind: 'entry',
    entry,
    remainingMs: remaining,
    ageMs: now - entry.receivedAt,
    status:
      waited === undefined
        ? { hit: true, remainingMs: remaining }
        : { fwd: waited, collapsed: true, remainingMs: remaining },
    pages: entry.pages,
  };
}

/** A stale entry that answers because the upstream did not (law 17). */
export function staleAnswer(entry: Entry, now: number, reason: StaleReason): EntryAnswer {
  return {
    kind: 'entry',
    entry,
    remainingMs: 0,
    ageMs: now - entry.receivedAt,
    status: { fwd: 'stale', detail: reason },
    pages: entry.pages,
  };
}

export interface OwnFetch {
  readonly fwd: 'miss' | 'stale';
  readonly response: RelayResponse;
}

export interface Stored {
  readonly entry: Entry;
  readonly first: ReceivedPage;
  /** Whether the entry will be cut into pages, so that the bytes cannot go out as they came. */
  readonly isCut: boolean;
}

/** The answer to the request whose own fetch was stored. */
export function storedAnswer({ entry, first, isCut }: Stored, now: number, own: OwnFetch): Answer {
  const remaining = remainingMs(entry, now);
  const status: CacheStatus = { fwd: own.fwd, stored: true, remainingMs: remaining };
  const { response } = own;
  return !isCut && saysNoMoreThan(entry, first)
    ? { kind: 'relay', response, status, pages: 1 }
    : { kind: 'entry', entry, remainingMs: remaining, response, status, pages: entry.pages };
}

/** The answer to the request whose own fetch was whole, but overtaken: as stale, and not kept (law 11). */
export function overtakenAnswer(entry: Entry, own: OwnFetch): Answer {
  const status: CacheStatus = { fwd: own.fwd, detail: 'superseded' };
  return { kind: 'entry', entry, remainingMs: 0, response: own.response, status, pages: entry.pages };
}

export function relayAnswer(reason: NotStoredReason, own: OwnFetch): Answer {
  return { kind: 'relay', response: own.response, status: { fwd: own.fwd, detail: reason }, pages: 1 };
}

/**
 * Whether the one page, sent on as it came, promises the client no more than the entry holds to: then its
 * very bytes can go out. A longer lifetime or a wider scope than was granted would live on in the client.
 */
function saysNoMoreThan(entry: Entry, { page, receivedAt }: ReceivedPage): boolean {
  const { ttlMs, cacheScope } = page.hints;
  const sentCursor = page.members.find((member) => member.key === 'nextCursor');
  const keepsCursor = page.nextCursorRaw !== undefined && entry.pages === 1;
  if (entry.pages > 1 || (sentCursor !== undefined && !keepsCursor)) return false;
  const granted = entry.expiresAt - receivedAt;
  if (ttlMs.sent && typeof ttlMs.value === 'number' && Math.trunc(ttlMs.value) > granted) return false;
  const saysPublic = cacheScope.sent ? cacheScope.value === 'public' : ttlMs.sent;
  return !(saysPublic && entry.scope === 'private');
}
