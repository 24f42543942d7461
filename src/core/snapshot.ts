/**
 * Owns: how the pages of one list become one entry (design, laws 6, 7 and 12). The items are copied byte
 * for byte, the other fields come from the first page, the hints are left out: they are written anew into
 * each answer, because what remains of a lifetime is different each time.
 */
import type { FreshnessPolicy, Grant, Scope } from './freshness.js';
import { grant } from './freshness.js';
import type { Page } from './page.js';
import { type CacheableMethod, methodShape } from './protocol.js';

/** A page with the instant at which it was received, in milliseconds of the process's clock. */
export interface ReceivedPage {
  readonly page: Page;
  readonly receivedAt: number;
}

/** A stored snapshot or single result. Instants in milliseconds of the process's clock. */
export interface Entry {
  readonly method: CacheableMethod;
  readonly scope: Scope;
  /** The members of the result without hints and cursor, up to and with the closing brace. */
  readonly body: Buffer;
  /** Which hints the upstream itself sent, since a legacy client is told no others. */
  readonly sentHints: { readonly ttlMs: boolean; readonly cacheScope: boolean };
  /** When the oldest page was received. */
  readonly receivedAt: number;
  /** When the shortest-lived page becomes stale. */
  readonly expiresAt: number;
  readonly pages: number;
  /** How many items a list has; 0 for other methods. */
  readonly items: number;
  /** Resources whose update drops this entry: the one asked for and those that the contents name. */
  readonly uris: readonly string[];
}

const REWRITTEN = new Set(['ttlMs', 'cacheScope', 'nextCursor']);

export interface AssembleOptions {
  readonly method: CacheableMethod;
  readonly policy: FreshnessPolicy;
  /** The `uri` that a `resources/read` asked for. */
  readonly uri: string | undefined;
}

/**
 * Joins the pages of one finished walk, in order, into one entry.
 * `pages` holds at least one; each has been granted a lifetime above 0.
 */
export function assemble(pages: readonly [ReceivedPage, ...ReceivedPage[]], options: AssembleOptions): Entry {
  const first = pages[0].page;
  const grants = pages.map(({ page }) => grant(page.hints, options.policy));
  const uris = new Set(pages.flatMap(({ page }) => page.uris));
  if (options.uri !== undefined) uris.add(options.uri);
  return {
    method: options.method,
    scope: grants.some((g) => g.scope === 'private') ? 'private' : 'public',
    body: joinBody(pages, methodShape(options.method).itemsField),
    sentHints: { ttlMs: first.hints.ttlMs.sent, cacheScope: first.hints.cacheScope.sent },
    receivedAt: Math.min(...pages.map((p) => p.receivedAt)),
    expiresAt: earliestExpiry(pages, grants),
    pages: pages.length,
    items: pages.reduce((sum, { page }) => sum + (page.items?.count ?? 0), 0),
    uris: [...uris],
  };
}

function earliestExpiry(pages: readonly ReceivedPage[], grants: readonly Grant[]): number {
  return Math.min(...pages.map((p, i) => p.receivedAt + (grants[i]?.lifetimeMs ?? 0)));
}

function joinBody(pages: readonly [ReceivedPage, ...ReceivedPage[]], itemsField: string | undefined): Buffer {
  const first = pages[0].page;
  const parts: Buffer[] = [];
  for (const member of first.members) {
    if (REWRITTEN.has(member.key)) continue;
    parts.push(Buffer.from(parts.length === 0 ? '' : ','));
    const isItems = member.key === itemsField;
    parts.push(first.bytes.subarray(member.keyStart, isItems ? member.start : member.end));
    if (isItems) parts.push(...joinItems(pages));
  }
  parts.push(Buffer.from('}'));
  return Buffer.concat(parts);
}

function joinItems(pages: readonly ReceivedPage[]): Buffer[] {
  const filled = pages.flatMap(({ page }) =>
    page.items !== undefined && page.items.count > 0 ? [page] : [],
  );
  const parts = filled.flatMap((page, i) => [
    Buffer.from(i === 0 ? '' : ','),
    page.bytes.subarray(page.items?.start, page.items?.end),
  ]);
  return [Buffer.from('['), ...parts, Buffer.from(']')];
}
