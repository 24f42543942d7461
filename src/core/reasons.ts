/**
 * Owns: the closed lists of what happened to a request and why. One word is the same in `Cache-Status`, the
 * log and the counters (RFC 9211; design, section 2).
 */

/** What happened to a request of a cacheable method. */
export const OUTCOMES = ['hit', 'miss', 'stale', 'bypass', 'refused', 'error'] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** Why a request never consults the cache (law 1, law 2). */
export const BYPASS_REASONS = [
  'not-cacheable-method',
  'not-json-rpc',
  'batch',
  'notification',
  'response',
  'unusable-id',
  'has-cursor',
  'multi-round-trip',
  'incomplete-request',
  'unknown-version',
  'ambiguous-params',
  'unexpected-member',
  'large-request',
] as const;
export type BypassReason = (typeof BYPASS_REASONS)[number];

/** Why a stale entry answered (law 17). */
export const STALE_REASONS = ['upstream-failed', 'upstream-slow', 'backoff'] as const;
export type StaleReason = (typeof STALE_REASONS)[number];

/** What became of one of the gateway's own cursors (law 13). */
export const CURSOR_REASONS = ['invalid-cursor', 'walk-past-expiry'] as const;
export type CursorReason = (typeof CURSOR_REASONS)[number];

/** Why a result was relayed and not stored (laws 4, 5, 10, 11). */
export const NOT_STORED_REASONS = [
  'status',
  'error-reply',
  'input-required',
  'unexpected',
  'zero-lifetime',
  'too-large',
  'unavailable',
  'superseded',
  'uncacheable',
  'cursor-loop',
  'page-stale',
  'page-failed',
  'max-pages',
  'max-items',
  'deadline',
] as const;
export type NotStoredReason = (typeof NOT_STORED_REASONS)[number];

/** Whether a reason is one of a list's. */
export function isOneOf<T extends string>(list: readonly T[], reason: string | undefined): reason is T {
  const words: readonly (string | undefined)[] = list;
  return words.includes(reason);
}
