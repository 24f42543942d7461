/**
 * Owns: the walk through the pages of a list, from the first to the one without a cursor (design, laws 9
 * and 10; MCP 2026-07-28 server/utilities/pagination). It always ends: by its end, by a limit, or by a
 * failure; a part of a list is never given out as the whole.
 */
import type { NotStoredReason } from './reasons.js';
import type { ReceivedPage } from './snapshot.js';

export interface WalkLimits {
  readonly maxPages: number;
  readonly maxItems: number;
  /** The sum of the pages' bytes. */
  readonly maxBytes: number;
}

/** What asking for one further page brought. */
export type NextPage =
  | { readonly kind: 'page'; readonly received: ReceivedPage }
  | { readonly kind: 'failed'; readonly reason: NotStoredReason }
  | { readonly kind: 'invalid-cursor' };

export interface WalkDeps {
  readonly limits: WalkLimits;
  fetchNext(cursorRaw: string): Promise<NextPage>;
  /** Whether a page may be kept at all: one that is immediately stale ends the walk. */
  isStorable(received: ReceivedPage): boolean;
  /** Whether what was fetched so far is from before a flush, so that going on is in vain. */
  isSuperseded(): boolean;
}

export type WalkEnd =
  | { readonly kind: 'complete'; readonly pages: readonly [ReceivedPage, ...ReceivedPage[]] }
  | { readonly kind: 'ended'; readonly reason: NotStoredReason }
  | { readonly kind: 'superseded'; readonly pages: number }
  | { readonly kind: 'invalid-cursor' };

/** Follows the cursors from `first` on. Rejects only as `fetchNext` does. */
export async function walk(first: ReceivedPage, deps: WalkDeps): Promise<WalkEnd> {
  const pages: [ReceivedPage, ...ReceivedPage[]] = [first];
  const seen = new Set<string>();
  let items = first.page.items?.count ?? 0;
  let bytes = first.page.bytes.length;
  for (let last = first; last.page.nextCursorRaw !== undefined; ) {
    const cursor = last.page.nextCursorRaw;
    if (deps.isSuperseded()) return { kind: 'superseded', pages: pages.length };
    const limit = exceeded(deps.limits, { pages: pages.length + 1, items, bytes });
    if (limit !== undefined) return { kind: 'ended', reason: limit };
    // Compared as text, so that two spellings of one cursor are one.
    const text: string = JSON.parse(cursor);
    if (seen.has(text)) return { kind: 'ended', reason: 'cursor-loop' };
    seen.add(text);
    const next = await deps.fetchNext(cursor);
    if (next.kind === 'invalid-cursor') return next;
    if (next.kind === 'failed') return { kind: 'ended', reason: next.reason };
    last = next.received;
    if (!deps.isStorable(last)) return { kind: 'ended', reason: 'page-stale' };
    pages.push(last);
    items += last.page.items?.count ?? 0;
    bytes += last.page.bytes.length;
  }
  const limit = exceeded(deps.limits, { pages: pages.length, items, bytes });
  return limit === undefined ? { kind: 'complete', pages } : { kind: 'ended', reason: limit };
}

function exceeded(
  limits: WalkLimits,
  sum: { readonly pages: number; readonly items: number; readonly bytes: number },
): NotStoredReason | undefined {
  if (sum.pages > limits.maxPages) return 'max-pages';
  if (sum.items > limits.maxItems) return 'max-items';
  return sum.bytes > limits.maxBytes ? 'too-large' : undefined;
}
