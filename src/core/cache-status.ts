/** Owns: the `Cache-Status` field of an answer (RFC 9211) and the whole seconds of `Age` (RFC 9111). */
import type { ErrorCode } from '../errors.js';
import type { BypassReason, CursorReason, NotStoredReason, StaleReason } from './reasons.js';

/** Why, in the words of the log. */
export type Detail = BypassReason | NotStoredReason | StaleReason | CursorReason | ErrorCode;

export interface CacheStatus {
  readonly hit?: boolean;
  readonly fwd?: 'miss' | 'stale' | 'bypass';
  readonly stored?: boolean;
  readonly collapsed?: boolean;
  /** What remains of the lifetime, in milliseconds; printed in whole seconds. */
  readonly remainingMs?: number;
  readonly detail?: Detail;
}

export const CACHE_NAME = 'mcp-cache-gateway';

/** The field's value, such as `mcp-cache-gateway; hit; ttl=59`. */
export function formatCacheStatus(status: CacheStatus): string {
  let value: string = CACHE_NAME;
  if (status.hit) value += '; hit';
  if (status.fwd !== undefined) value += `; fwd=${status.fwd}`;
  if (status.stored) value += '; stored';
  if (status.collapsed) value += '; collapsed';
  if (status.remainingMs !== undefined) value += `; ttl=${wholeSeconds(status.remainingMs)}`;
  if (status.detail !== undefined) value += `; detail=${status.detail}`;
  return value;
}

/** Milliseconds as whole seconds, rounded down. */
export function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1000);
}
