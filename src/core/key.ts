/**
 * Owns: which requests share an entry (design, laws 3 and 8). A key is the digest of a JSON array, never a
 * joined text, so that no part can pose as two; credentials enter it only through their own digest.
 */
import { createHash } from 'node:crypto';
import type { CacheableRequest } from './classify.js';
import { type InjectedHeaders, type RawHeaders, valuesOf } from './headers.js';
import { HEADER } from './protocol.js';

export interface KeyParts {
  readonly upstream: { readonly name: string; readonly url: string };
  /** The request's own query string, without the question mark. */
  readonly query: string;
  readonly request: CacheableRequest;
  /** The fields that are sent upstream. */
  readonly headers: RawHeaders;
  /** Names, in lower case, of further fields that are part of the key. */
  readonly varyHeaders: readonly string[];
}

/** The keys of one request: what all may share, and what is the caller's own. */
export interface CacheKeys {
  readonly shared: string;
  readonly own: string;
  /** The digest of the authorization context. */
  readonly authContext: string;
}

/** The two keys under which a request's answer may be stored; `authContext` as authContextOf gives it. */
export function cacheKeys(parts: KeyParts, authContext: string): CacheKeys {
  const { upstream, query, request, headers } = parts;
  const shared = digest([
    upstream.name,
    upstream.url,
    query,
    request.method,
    request.version ?? null,
    request.paramsText,
    request.metaText,
    parts.varyHeaders.map((name) => valuesOf(headers, name)),
    // A legacy server refuses a request without its session: such a request is not of the same form.
    request.era === 'legacy' && valuesOf(headers, HEADER.session).length > 0,
  ]);
  return { shared, own: digest([shared, authContext]), authContext };
}

/** The keys under which one page of a list is kept by itself; `cursor` is absent for the first. */
export function pageKeys(keys: CacheKeys, cursor: string | undefined): CacheKeys {
  const shared = digest([keys.shared, 'page', cursor ?? null]);
  return { shared, own: digest([shared, keys.authContext]), authContext: keys.authContext };
}

export interface AuthContextParts {
  /** The fields that are sent upstream, the operator's own credentials among them. */
  readonly headers: RawHeaders;
  /** Names, in lower case, of the fields that carry credentials. */
  readonly authHeaders: readonly string[];
  /** What the operator adds; it may make a caller of us under any name. */
  readonly injected: InjectedHeaders;
  /** Whether the session id belongs to the context: before 2026-07-28 a list could differ by session. */
  readonly era: 'modern' | 'legacy';
}

/** The digest of the caller's identity as the upstream sees it (law 8). */
export function authContextOf(parts: AuthContextParts): string {
  const names = parts.era === 'legacy' ? [...parts.authHeaders, HEADER.session] : parts.authHeaders;
  return digest([names.map((name) => [name, ...valuesOf(parts.headers, name)]), parts.injected.headers]);
}

function digest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url');
}
