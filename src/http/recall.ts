/**
 * Owns: what the last requests of a connection were, so that one that differs from an earlier one in nothing but
 * its id need not be read and judged anew. Kept with the connection, and gone with it: nothing here is looked
 * up by a credential. Refuses: everything that differs in a field or a byte that could matter.
 */
import type { RawHeaders } from '../core/headers.js';
import type { CacheKeys } from '../core/key.js';
import type { CacheableMethod, Era } from '../core/protocol.js';

/** What was found out about a request, its id apart. */
export interface Finding {
  readonly upstream: string;
  readonly method: CacheableMethod;
  readonly era: Era;
  readonly keys: CacheKeys;
  /** The digest of the credentials alone. */
  readonly credentials: string;
}

/** A request as it came. */
export interface SeenRequest {
  readonly url: string;
  readonly headers: RawHeaders;
  readonly body: Buffer;
}

export interface Recalled {
  readonly finding: Finding;
  readonly idRaw: string;
}

export interface Recall {
  /** What is known of a request like this one on this connection. */
  find(connection: object, request: SeenRequest): Recalled | undefined;
  /** Keeps what was found out; `id` is where the id lies in the body. */
  keep(
    connection: object,
    request: SeenRequest,
    id: { readonly start: number; readonly end: number },
    finding: Finding,
  ): void;
}

/** How many different requests are kept of one connection, and how large a body may be, in bytes. */
const MAX_KEPT = 8;
const MAX_BODY_BYTES = 8_192;

/** Fields that say nothing about the answer, and differ from one request to the next. */
const PASSING = new Set(['content-length', 'traceparent', 'tracestate', 'baggage']);

interface Kept {
  readonly url: string;
  readonly headers: RawHeaders;
  readonly before: Buffer;
  readonly after: Buffer;
  readonly finding: Finding;
}

export function createRecall(): Recall {
  const byConnection = new WeakMap<object, Kept[]>();
  return {
    find(connection, request) {
      for (const kept of byConnection.get(connection) ?? []) {
        const idRaw = kept.url === request.url ? idBetween(request.body, kept) : undefined;
        if (idRaw !== undefined && sameHeaders(kept.headers, request.headers))
          return { finding: kept.finding, idRaw };
      }
      return undefined;
    },
    keep(connection, { url, headers, body }, id, finding) {
      if (body.length > MAX_BODY_BYTES) return;
      const kept = byConnection.get(connection) ?? [];
      kept.unshift({
        url,
        headers,
        before: body.subarray(0, id.start),
        after: body.subarray(id.end),
        finding,
      });
      if (kept.length > MAX_KEPT) kept.pop();
      byConnection.set(connection, kept);
    },
  };
}

/** The id in a body that is otherwise the same; undefined where it is not, or where the id is no plain one. */
function idBetween(body: Buffer, { before, after }: Kept): string | undefined {
  const end = body.length - after.length;
  if (end <= before.length || body.compare(before, 0, before.length, 0, before.length) !== 0)
    return undefined;
  if (body.compare(after, 0, after.length, end) !== 0) return undefined;
  const raw = body.toString('latin1', before.length, end);
  // A whole token of its own, without an escape: what is around it keeps its meaning.
  return /^(?:0|-?[1-9]\d{0,14}|"[\w .:/+=@-]{0,128}")$/.test(raw) ? raw : undefined;
}

function sameHeaders(kept: RawHeaders, headers: RawHeaders): boolean {
  if (kept.length !== headers.length) return false;
  for (let i = 0; i < headers.length; i += 2) {
    if (kept[i] !== headers[i]) return false;
    if (kept[i + 1] !== headers[i + 1] && !PASSING.has((headers[i] ?? '').toLowerCase())) return false;
  }
  return true;
}
