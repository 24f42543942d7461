/**
 * Owns: whose credentials an upstream accepted, and when (PUBLIC_SHARING=verified): only they are served what
 * another's request brought. Keeps digests alone, and a bounded number of them.
 */
import type { Clock } from '../clock.js';
import { createBounded } from './bounded.js';

const MAX_CREDENTIALS = 100_000;

export interface Verified {
  /** Notes the status of an answer to a request that carried these credentials. */
  observe(upstream: string, credentials: () => string, status: number): void;
  /** Whether a public entry may be served to a caller with these credentials. */
  mayShare(upstream: string, credentials: () => string): boolean;
}

/** With `sharing` `any` everybody may; the time to live is in milliseconds. */
export function createVerified(
  clock: Clock,
  options: { readonly sharing: 'any' | 'verified'; readonly ttlMs: number },
): Verified {
  if (options.sharing === 'any') return { observe() {}, mayShare: () => true };
  const acceptedAt = createBounded<number>(MAX_CREDENTIALS);
  const keyOf = (upstream: string, credentials: string) => `${upstream} ${credentials}`;
  return {
    observe(upstream, credentials, status) {
      const key = keyOf(upstream, credentials());
      if (status >= 200 && status < 300) acceptedAt.set(key, clock.now());
      else if (status === 401 || status === 403) acceptedAt.delete(key);
    },
    mayShare(upstream, credentials) {
      const at = acceptedAt.get(keyOf(upstream, credentials()));
      return at !== undefined && clock.now() < at + options.ttlMs;
    },
  };
}
