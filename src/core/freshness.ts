/**
 * Owns: how long a result may be kept, and for whom, from what the server said and the operator allows
 * (design, laws 5 and 7; MCP 2026-07-28 server/utilities/caching). Missing and malformed hints fall to the
 * safe side: stale at once, or private.
 */

export type Scope = 'public' | 'private';

/** A field of a result as it was sent: absent, or any JSON value. */
export type SentField = { readonly sent: false } | { readonly sent: true; readonly value: unknown };

/** The caching hints of one page, as sent. */
export interface Hints {
  readonly ttlMs: SentField;
  readonly cacheScope: SentField;
}

/** What the operator allows for one upstream; all durations in milliseconds. */
export interface FreshnessPolicy {
  readonly defaultTtlMs: number;
  readonly minTtlMs: number;
  readonly maxTtlMs: number;
  readonly defaultScope: Scope;
  readonly scope: 'auto' | Scope;
}

/** What is granted to a result. A lifetime of 0 is immediately stale. */
export interface Grant {
  readonly lifetimeMs: number;
  readonly scope: Scope;
}

/** The lifetime and scope of a result (laws 5 and 7). */
export function grant(hints: Hints, policy: FreshnessPolicy): Grant {
  return { lifetimeMs: lifetimeOf(hints.ttlMs, policy), scope: scopeOf(hints, policy) };
}

function lifetimeOf(ttlMs: SentField, policy: FreshnessPolicy): number {
  const hinted = ttlMs.sent ? hintedLifetime(ttlMs.value) : policy.defaultTtlMs;
  return Math.min(Math.max(hinted, policy.minTtlMs), policy.maxTtlMs);
}

/** Law 5: the whole part of a finite positive number; 0 for everything else. */
function hintedLifetime(value: unknown): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) return 0;
  return Math.max(0, Math.trunc(value));
}

function scopeOf(hints: Hints, policy: FreshnessPolicy): Scope {
  if (policy.scope === 'private') return 'private';
  if (hints.cacheScope.sent) return hints.cacheScope.value === 'public' ? 'public' : 'private';
  if (policy.scope === 'public') return 'public';
  return lifetimeIsTheServers(hints.ttlMs, policy) ? policy.defaultScope : 'private';
}

/** Whether the lifetime rests on the server's own word rather than on a default or floor of ours. */
function lifetimeIsTheServers(ttlMs: SentField, policy: FreshnessPolicy): boolean {
  return ttlMs.sent && hintedLifetime(ttlMs.value) >= policy.minTtlMs;
}

/**
 * The whole milliseconds that remain of an entry's lifetime, never negative; goes out as `ttlMs` (law 12).
 * Instants in milliseconds of one clock.
 */
export function remainingMs(entry: { readonly expiresAt: number }, now: number): number {
  return Math.max(0, Math.floor(entry.expiresAt - now));
}

/**
 * Fresh before the instant of expiry (RFC 9111 section 4.2), and only while a whole millisecond remains:
 * a hit never says `ttlMs` 0, and never more than the truth.
 */
export function isFresh(entry: { readonly expiresAt: number }, now: number): boolean {
  return remainingMs(entry, now) > 0;
}
