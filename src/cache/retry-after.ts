/** Owns: how long an upstream asks not to be asked again (RFC 9110 section 10.2.3). */
import { type RawHeaders, singleValue } from '../core/headers.js';

/** Longer waits than this are not believed, in milliseconds. */
export const MAX_RETRY_AFTER_MS = 300_000;

/** The wait in milliseconds; 0 where none is named. A date is measured by the upstream's own `Date`, not by our clock. */
export function retryAfterMs(headers: RawHeaders): number {
  const value = singleValue(headers, 'retry-after')?.trim() ?? '';
  if (/^\d{1,9}$/.test(value)) return Math.min(Number(value) * 1000, MAX_RETRY_AFTER_MS);
  const wait = Date.parse(value) - Date.parse(singleValue(headers, 'date') ?? '');
  return Number.isFinite(wait) ? Math.min(Math.max(0, wait), MAX_RETRY_AFTER_MS) : 0;
}
