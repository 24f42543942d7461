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

/** A stored snapshot, page or single result. Instants in milliseconds of the process's clock. */
export interface Entry {
  readonly method: CacheableMethod;
  readonly scope: Scope;
  /** The digest of the authorization context that alone may be served a private entry. */
  readonly authContext: string;
  /** The members of the result without hints, up to and with the closing brace. */
  readonly body: Buffer;
  /** Where in `body` the items of a list lie, without the brackets around them. */
  readonly itemsAt?: { readonly start: number; readonly end: number };
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
  /** A secret of this entry, from which the cursors of its pages are made. */
  readonly seed: string;
}

const HINTS = new Set(['ttlMs', 'cacheScope']);

export interface AssembleOptions {
  readonly method: CacheableMethod;
  readonly policy: FreshnessPolicy;
  /** The `uri` that a `resources/read` asked for. */
  readonly uri: string | undefined;
  readonly authContext: string;
  readonly seed: string;
  /** Whether the one page is kept as a page, with the cursor behind it; else a list is kept as a whole. */
  readonly asPage: boolean;
}

/**
 * Joins the pages of one finished walk, in order, into one entry; or keeps one page by itself.
 * `pages` holds at least one; each has been granted a lifetime above 0.
 */
export function assemble(pages: readonly [ReceivedPage, ...ReceivedPage[]], options: AssembleOptions): Entry {
  const first = pages[0].page;
  const grants = pages.map(({ page }) => grant(page.hints, options.policy));
  const uris = new Set(pages.flatMap(({ page }) => page.uris));
  if (options.uri !== undefined) uris.add(options.uri);
  const { method, authContext, seed } = options;
  return {
    method,
    authContext,
    seed,
    scope: grants.some((g) => g.scope === 'private') ? 'private' : 'public',
    ...joinBody(pages, options),
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

function joinBody(
  pages: readonly [ReceivedPage, ...ReceivedPage[]],
  options: AssembleOptions,
): Pick<Entry, 'body' | 'itemsAt'> {
  const { itemsField } = methodShape(options.method);
  const first = pages[0].page;
  const parts: Buffer[] = [];
  let length = 0;
  let itemsAt: Entry['itemsAt'];
  const add = (part: Buffer) => {
    parts.push(part);
    length += part.length;
  };
  for (const member of first.members) {
    if (HINTS.has(member.key) || (member.key === 'nextCursor' && !options.asPage)) continue;
    if (length > 0) add(COMMA);
    const isItems = member.key === itemsField;
    add(first.bytes.subarray(member.keyStart, isItems ? member.start + 1 : member.end));
    if (!isItems) continue;
    const start = length;
    for (const part of itemsOf(pages)) add(part);
    itemsAt = { start, end: length };
    add(CLOSE_BRACKET);
  }
  add(CLOSE_BRACE);
  return { body: Buffer.concat(parts, length), ...(itemsAt !== undefined && { itemsAt }) };
}

const COMMA = Buffer.from(',');
const CLOSE_BRACKET = Buffer.from(']');
const CLOSE_BRACE = Buffer.from('}');

function itemsOf(pages: readonly ReceivedPage[]): Buffer[] {
  const filled = pages.flatMap(({ page }) =>
    page.items !== undefined && page.items.count > 0 ? [page] : [],
  );
  return filled.flatMap((page, i) => {
    const items = page.bytes.subarray(page.items?.start, page.items?.end);
    return i === 0 ? [items] : [COMMA, items];
  });
}
