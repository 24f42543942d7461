/**
 * Owns: the coordination of one answer: look up, else fetch and walk, then store under the stamp taken before
 * (design, laws 4–7, 9–12, 14, 18–20). The one judge of freshness. Refuses to know HTTP: it is given a
 * function that fetches a page, and gives back what is to be written.
 */
import type { Clock } from '../clock.js';
import type { CacheStatus } from '../core/cache-status.js';
import type { Change } from '../core/change.js';
import type { CacheableRequest } from '../core/classify.js';
import type { Fetched, FetchPage, InterimSink, RelayResponse } from '../core/exchange.js';
import { type FreshnessPolicy, grant, isFresh, remainingMs } from '../core/freshness.js';
import type { CacheKeys } from '../core/key.js';
import { ERROR_CODE } from '../core/protocol.js';
import type { NotStoredReason } from '../core/reasons.js';
import { assemble, type Entry, type ReceivedPage } from '../core/snapshot.js';
import { type NextPage, type WalkLimits, walk } from '../core/walk.js';
import { GatewayError } from '../errors.js';
import type { Stamp, Store } from './store.js';
import type { Uncacheable } from './uncacheable.js';

/** How often a flush restarts a walk of several pages, and a fetch of a single one (law 11). */
const MAX_WALK_RESTARTS = 3;
const MAX_SINGLE_RESTARTS = 1;

/** One request of a cacheable method, with the means to ask its upstream. */
export interface CacheCall {
  readonly upstream: string;
  readonly policy: FreshnessPolicy;
  readonly request: CacheableRequest;
  readonly keys: CacheKeys;
  readonly hasCredentials: boolean;
  readonly fetchPage: FetchPage;
  readonly interim: InterimSink;
  /** Aborts when the client has left or the deadline has passed. */
  readonly signal: AbortSignal;
}

/** What is to be written to the client. */
export type Answer =
  | {
      readonly kind: 'entry';
      readonly entry: Entry;
      readonly remainingMs: number;
      /** Absent where the answer is the client's own fetch. */
      readonly ageMs?: number;
      /** The answer to the client's own request, whose fields are its own; absent on a hit (law 15). */
      readonly response?: RelayResponse;
      readonly status: CacheStatus;
      readonly pages: number;
    }
  | {
      readonly kind: 'relay';
      readonly response: RelayResponse;
      readonly status: CacheStatus;
      readonly pages: number;
    };

/** What happens that an operator should hear of. */
export interface ListCacheEvents {
  flushed(upstream: string, reason: FlushReason, entries: number): void;
  walkEnded(upstream: string, method: string, reason: NotStoredReason): void;
  scopeMissing(upstream: string, method: string): void;
}

export const FLUSH_REASONS = ['watch', 'tap', 'watch-connected', 'operator'] as const;
export type FlushReason = (typeof FLUSH_REASONS)[number];

export interface ListCacheDeps {
  readonly store: Store;
  readonly uncacheable: Uncacheable;
  readonly clock: Clock;
  readonly limits: WalkLimits;
  /** The upstreams that a `list_changed` of one flushes with it (LIST_CHANGED_FLUSH). */
  readonly flushedWith: (upstream: string) => readonly string[];
  readonly events: ListCacheEvents;
}

export interface ListCache {
  /** @throws GatewayError where the upstream cannot be reached or does not answer in time */
  answer(call: CacheCall): Promise<Answer>;
  /** Applies a change that an upstream announced; resolved when it has taken effect (law 19). */
  apply(upstream: string, change: Change, reason: FlushReason): Promise<void>;
  flush(upstream: string, reason: FlushReason): Promise<void>;
}

export function createListCache(deps: ListCacheDeps): ListCache {
  const { store, clock, uncacheable, events } = deps;

  async function flush(upstream: string, reason: FlushReason): Promise<void> {
    events.flushed(upstream, reason, await store.flush(upstream));
  }

  async function apply(upstream: string, change: Change, reason: FlushReason): Promise<void> {
    switch (change.kind) {
      case 'list-changed':
        await Promise.all(deps.flushedWith(upstream).map((name) => flush(name, reason)));
        return;
      case 'resource-updated':
        await store.drop(upstream, change.uri);
        return;
      default:
        change satisfies never;
    }
  }

  async function answer(call: CacheCall): Promise<Answer> {
    const found = await store.read(call.upstream, [call.keys.own, call.keys.shared]);
    const now = clock.now();
    const entry = found.find((candidate) => candidate !== undefined && isFresh(candidate, now));
    if (entry !== undefined) return hit(entry, now);
    return fetchAndStore(call, found.some((candidate) => candidate !== undefined) ? 'stale' : 'miss');
  }

  /** Fetches until a result is stored, or relayed, or so often overtaken by flushes that it is given up. */
  async function fetchAndStore(call: CacheCall, fwd: 'miss' | 'stale'): Promise<Answer> {
    for (let restarts = 0; ; restarts += 1) {
      const attempt = createAttempt(call, await store.stamp(call.upstream), restarts);
      const outcome = await runAttempt(attempt);
      if (outcome.kind === 'answer') return outcome.make(fwd);
    }
  }

  type AttemptOutcome =
    | { readonly kind: 'answer'; readonly make: (fwd: 'miss' | 'stale') => Answer }
    | { readonly kind: 'restart' };

  interface Attempt {
    readonly call: CacheCall;
    readonly restarts: number;
    stamp: Stamp;
  }

  function createAttempt(call: CacheCall, stamp: Stamp, restarts: number): Attempt {
    return { call, stamp, restarts };
  }

  async function runAttempt(attempt: Attempt): Promise<AttemptOutcome> {
    const { call } = attempt;
    const fetched = await call.fetchPage(undefined, {
      signal: call.signal,
      interim: call.interim,
      onChange: (change, place) =>
        place === 'before' ? applyOwnChange(attempt, change) : apply(call.upstream, change, 'tap'),
    });
    if (fetched.kind === 'other') return relay(fetched.response, fetched.reason);
    const { received, response } = fetched;
    warnOfMissingScope(call, received);
    if (grant(received.page.hints, call.policy).lifetimeMs === 0) return relay(response, 'zero-lifetime');
    if (uncacheable.isMarked(call.keys.own)) return relay(response, 'uncacheable');
    return keep(attempt, received, response);
  }

  /** A change on the answer's own stream makes untrue what was cached, but not the answer that follows (law 11). */
  async function applyOwnChange(attempt: Attempt, change: Change): Promise<void> {
    const { upstream } = attempt.call;
    const wasCurrent = store.isCurrent(upstream, attempt.stamp);
    const applied = apply(upstream, change, 'tap');
    if (wasCurrent) attempt.stamp = await store.stamp(upstream);
    await applied;
  }

  async function keep(
    attempt: Attempt,
    first: ReceivedPage,
    response: RelayResponse,
  ): Promise<AttemptOutcome> {
    const { call, restarts } = attempt;
    const isSingle = first.page.nextCursorRaw === undefined;
    const mayRestart = restarts < (isSingle ? MAX_SINGLE_RESTARTS : MAX_WALK_RESTARTS);
    const end = await walk(first, {
      limits: deps.limits,
      fetchNext: (cursorRaw) => fetchNext(attempt, cursorRaw),
      isStorable: ({ page }) => grant(page.hints, call.policy).lifetimeMs > 0,
      isSuperseded: () => mayRestart && !store.isCurrent(call.upstream, attempt.stamp),
    });
    switch (end.kind) {
      case 'complete':
        return store_(attempt, end.pages, response, mayRestart);
      case 'superseded':
        return restart(response);
      case 'invalid-cursor':
        return restarts === 0 ? restart(response) : giveUp(call, response, 'page-failed');
      case 'ended':
        return giveUp(call, response, end.reason);
      default:
        return end satisfies never;
    }
  }

  async function fetchNext(attempt: Attempt, cursorRaw: string): Promise<NextPage> {
    const { call } = attempt;
    let fetched: Fetched;
    try {
      fetched = await call.fetchPage(cursorRaw, {
        signal: call.signal,
        // The pages before it came before the change: the stamp stays, and the walk counts as overtaken.
        onChange: (change) => apply(call.upstream, change, 'tap'),
      });
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      return { kind: 'failed', reason: error.code === 'upstream-timeout' ? 'deadline' : 'page-failed' };
    }
    fetched.response.discard();
    if (fetched.kind === 'page') return { kind: 'page', received: fetched.received };
    if (fetched.errorCode === ERROR_CODE.invalidParams) return { kind: 'invalid-cursor' };
    return { kind: 'failed', reason: fetched.reason === 'too-large' ? 'too-large' : 'page-failed' };
  }

  async function store_(
    attempt: Attempt,
    pages: readonly [ReceivedPage, ...ReceivedPage[]],
    response: RelayResponse,
    mayRestart: boolean,
  ): Promise<AttemptOutcome> {
    const { call } = attempt;
    const entry = assemble(pages, {
      method: call.request.method,
      policy: call.policy,
      uri: call.request.uri,
    });
    const key = entry.scope === 'public' ? call.keys.shared : call.keys.own;
    const result = await store.write(call.upstream, key, entry, attempt.stamp);
    switch (result) {
      case 'stored':
        return answered((fwd) => stored(entry, pages[0], response, fwd));
      case 'too-large':
        return giveUp(call, response, 'too-large');
      case 'superseded':
        return superseded(attempt, entry, response, mayRestart);
      default:
        return result satisfies never;
    }
  }

  function superseded(
    attempt: Attempt,
    entry: Entry,
    response: RelayResponse,
    mayRestart: boolean,
  ): AttemptOutcome {
    // Only a resource was dropped: what the upstream answered is the client's, it is merely not kept.
    if (store.isCurrent(attempt.call.upstream, attempt.stamp)) return relay(response, 'superseded');
    if (mayRestart) return restart(response);
    uncacheable.mark(attempt.call.keys.own);
    events.walkEnded(attempt.call.upstream, attempt.call.request.method, 'superseded');
    return answered((fwd) => ({
      kind: 'entry',
      entry,
      remainingMs: 0,
      response,
      status: { fwd, detail: 'superseded' },
      pages: entry.pages,
    }));
  }

  /** Law 10: the first page goes out as it came, and the key is not walked again for a while. */
  function giveUp(call: CacheCall, response: RelayResponse, reason: NotStoredReason): AttemptOutcome {
    uncacheable.mark(call.keys.own);
    events.walkEnded(call.upstream, call.request.method, reason);
    return relay(response, reason);
  }

  function warnOfMissingScope(call: CacheCall, received: ReceivedPage): void {
    const { ttlMs, cacheScope } = received.page.hints;
    const hasLifetime = ttlMs.sent && grant(received.page.hints, call.policy).lifetimeMs > 0;
    if (hasLifetime && !cacheScope.sent && call.hasCredentials) {
      events.scopeMissing(call.upstream, call.request.method);
    }
  }

  function stored(entry: Entry, first: ReceivedPage, response: RelayResponse, fwd: 'miss' | 'stale'): Answer {
    const remaining = remainingMs(entry, clock.now());
    const status: CacheStatus = { fwd, stored: true, remainingMs: remaining };
    return saysNoMoreThan(entry, first)
      ? { kind: 'relay', response, status, pages: 1 }
      : { kind: 'entry', entry, remainingMs: remaining, response, status, pages: entry.pages };
  }

  return { answer, apply, flush };
}

function answered(make: (fwd: 'miss' | 'stale') => Answer): { kind: 'answer'; make: typeof make } {
  return { kind: 'answer', make };
}

function relay(response: RelayResponse, detail: NotStoredReason) {
  return answered((fwd) => ({ kind: 'relay', response, status: { fwd, detail }, pages: 1 }));
}

function restart(response: RelayResponse): { kind: 'restart' } {
  response.discard();
  return { kind: 'restart' };
}

function hit(entry: Entry, now: number): Answer {
  const remaining = remainingMs(entry, now);
  return {
    kind: 'entry',
    entry,
    remainingMs: remaining,
    ageMs: now - entry.receivedAt,
    status: { hit: true, remainingMs: remaining },
    pages: entry.pages,
  };
}

/**
 * Whether the one page, sent on as it came, promises the client no more than the entry holds to: then its
 * very bytes can go out. A longer lifetime or a wider scope than was granted would live on in the client.
 */
function saysNoMoreThan(entry: Entry, { page, receivedAt }: ReceivedPage): boolean {
  const { ttlMs, cacheScope } = page.hints;
  if (entry.pages > 1 || page.members.some((member) => member.key === 'nextCursor')) return false;
  const granted = entry.expiresAt - receivedAt;
  if (ttlMs.sent && typeof ttlMs.value === 'number' && Math.trunc(ttlMs.value) > granted) return false;
  const saysPublic = cacheScope.sent ? cacheScope.value === 'public' : ttlMs.sent;
  return !(saysPublic && entry.scope === 'private');
}
