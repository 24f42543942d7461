/**
 * Owns: one fetch of a key, from the first request to the store (design, laws 4–7, 9–11, 18–20): pages are
 * walked, overtaken fetches begin anew, and what may not be kept is given back to be relayed.
 */
import { randomBytes } from 'node:crypto';
import type { Change } from '../core/change.js';
import type { Fetched, RelayResponse } from '../core/exchange.js';
import { grant } from '../core/freshness.js';
import type { CacheKeys } from '../core/key.js';
import { ERROR_CODE } from '../core/protocol.js';
import type { NotStoredReason } from '../core/reasons.js';
import { assemble, type Entry, type ReceivedPage } from '../core/snapshot.js';
import { type NextPage, type WalkLimits, walk } from '../core/walk.js';
import { GatewayError } from '../errors.js';
import type { FetchEnd, FetchTask } from './fetch-task.js';
import type { Stamp, Store } from './store.js';

/** How often a flush restarts a walk of several pages, and a fetch of a single one (law 11). */
const MAX_WALK_RESTARTS = 3;
const MAX_SINGLE_RESTARTS = 1;

export interface FetcherEvents {
  /** A list was walked to its end. */
  walked(upstream: string, pages: number): void;
  /** A walk failed or met a limit, and its list is not kept as a whole. */
  walkEnded(upstream: string, method: string, reason: NotStoredReason): void;
  scopeMissing(upstream: string, method: string): void;
}

export interface FetcherDeps {
  readonly store: Store;
  readonly limits: WalkLimits;
  readonly events: FetcherEvents;
  /** Applies a change that the upstream announced on an answer's own stream. */
  readonly apply: (upstream: string, change: Change) => Promise<void>;
}

/** @throws GatewayError where the upstream cannot be reached or does not answer in time */
export type Fetch = (task: FetchTask) => Promise<FetchEnd>;

interface Attempt {
  readonly task: FetchTask;
  readonly restarts: number;
  stamp: Stamp;
}

type AttemptEnd = FetchEnd | { readonly kind: 'restart' };

export function createFetcher(deps: FetcherDeps): Fetch {
  const { store, events } = deps;

  async function runAttempt(attempt: Attempt): Promise<AttemptEnd> {
    const { task } = attempt;
    const fetched = await task.untilAnswered((signal) =>
      task.fetchPage(undefined, {
        signal,
        interim: task.interim,
        onHead: task.onHead,
        onChange: (change, place) =>
          place === 'before' ? applyOwnChange(attempt, change) : deps.apply(task.upstream, change),
      }),
    );
    task.onPage();
    if (fetched.kind === 'other') return notStored(fetched.response, fetched.reason);
    const { received, response } = fetched;
    warnOfMissingScope(task, received);
    if (!isStorable(task, received)) return notStored(response, 'zero-lifetime');
    const hasMore = received.page.nextCursorRaw !== undefined;
    if (task.mode === 'none' || (task.mode === 'single' && hasMore))
      return notStored(response, 'uncacheable');
    if (task.mode === 'whole') return keepWhole(attempt, received, response);
    return keep(attempt, [received], { response, mayRestart: attempt.restarts < MAX_SINGLE_RESTARTS });
  }

  /** A change on the answer's own stream makes untrue what was cached, but not the answer that follows (law 11). */
  async function applyOwnChange(attempt: Attempt, change: Change): Promise<void> {
    const { upstream } = attempt.task;
    const wasCurrent = store.isCurrent(upstream, attempt.stamp);
    const applied = deps.apply(upstream, change);
    if (wasCurrent) attempt.stamp = await store.stamp(upstream);
    await applied;
  }

  async function keepWhole(
    attempt: Attempt,
    first: ReceivedPage,
    response: RelayResponse,
  ): Promise<AttemptEnd> {
    const { task, restarts } = attempt;
    const isSingle = first.page.nextCursorRaw === undefined;
    const mayRestart = restarts < (isSingle ? MAX_SINGLE_RESTARTS : MAX_WALK_RESTARTS);
    const end = await walk(first, {
      limits: deps.limits,
      fetchNext: (cursorRaw) => fetchNext(task, cursorRaw),
      isStorable: (received) => isStorable(task, received),
      isSuperseded: () => mayRestart && !store.isCurrent(task.upstream, attempt.stamp),
    });
    switch (end.kind) {
      case 'complete':
        events.walked(task.upstream, end.pages.length);
        return keep(attempt, end.pages, { response, mayRestart });
      case 'superseded':
        return restart(response);
      case 'invalid-cursor':
        return restarts === 0 ? restart(response) : giveUp(attempt, first, response, 'page-failed');
      case 'ended':
        return giveUp(attempt, first, response, end.reason);
      default:
        return end satisfies never;
    }
  }

  async function fetchNext(task: FetchTask, cursorRaw: string): Promise<NextPage> {
    let fetched: Fetched;
    try {
      fetched = await task.fetchPage(
        cursorRaw,
        // The pages before it came before the change: the stamp stays, and the walk counts as overtaken.
        { signal: task.signal, onChange: (change) => deps.apply(task.upstream, change) },
      );
    } catch (error) {
      if (!(error instanceof GatewayError) || isAbandoned(task.signal)) throw error;
      return { kind: 'failed', reason: error.code === 'upstream-timeout' ? 'deadline' : 'page-failed' };
    }
    task.onPage();
    fetched.response.discard();
    if (fetched.kind === 'page') return { kind: 'page', received: fetched.received };
    if (fetched.errorCode === ERROR_CODE.invalidParams) return { kind: 'invalid-cursor' };
    return { kind: 'failed', reason: fetched.reason === 'too-large' ? 'too-large' : 'page-failed' };
  }

  async function keep(
    attempt: Attempt,
    pages: readonly [ReceivedPage, ...ReceivedPage[]],
    options: { readonly response: RelayResponse; readonly mayRestart: boolean },
  ): Promise<AttemptEnd> {
    const { task } = attempt;
    const { response } = options;
    const entry = entryOf(task, pages, task.mode === 'page');
    const result = await store.write(task.upstream, keyFor(entry, task.keys), entry, attempt.stamp);
    switch (result) {
      case 'stored':
        return { kind: 'stored', entry, first: pages[0], stamp: attempt.stamp, response };
      case 'unavailable':
        return notStored(response, 'unavailable');
      case 'too-large':
        return giveUp(attempt, pages[0], response, 'too-large');
      case 'superseded':
        // Only a resource was dropped: what the upstream answered is the client's, it is merely not kept.
        if (store.isCurrent(task.upstream, attempt.stamp)) return notStored(response, 'superseded');
        if (options.mayRestart) return restart(response);
        events.walkEnded(task.upstream, task.request.method, 'superseded');
        return { kind: 'overtaken', entry, response };
      default:
        return result satisfies never;
    }
  }

  /** Law 10: the first page goes out as it came; of a list that is merely too long it is kept by itself. */
  async function giveUp(
    attempt: Attempt,
    first: ReceivedPage,
    response: RelayResponse,
    reason: NotStoredReason,
  ): Promise<AttemptEnd> {
    const { task } = attempt;
    events.walkEnded(task.upstream, task.request.method, reason);
    const hasMore = first.page.nextCursorRaw !== undefined;
    if (hasMore && isLimit(reason)) {
      const page = entryOf(task, [first], true);
      await store.write(task.upstream, keyFor(page, task.pageKeys), page, attempt.stamp);
    }
    const { scope } = grant(first.page.hints, task.policy);
    return { kind: 'not-stored', reason, response, first: { scope, hasMore } };
  }

  function warnOfMissingScope(task: FetchTask, received: ReceivedPage): void {
    const { ttlMs, cacheScope } = received.page.hints;
    if (ttlMs.sent && !cacheScope.sent && task.hasCredentials && isStorable(task, received)) {
      events.scopeMissing(task.upstream, task.request.method);
    }
  }

  return async (task) => {
    for (let restarts = 0; ; restarts += 1) {
      const end = await runAttempt({ task, restarts, stamp: await store.stamp(task.upstream) });
      if (end.kind !== 'restart') return end;
    }
  };
}

/** Whether the fetch was ended because nobody waits for it any more: that is no failure of the upstream. */
function isAbandoned(signal: AbortSignal): boolean {
  return signal.aborted && !(signal.reason instanceof GatewayError);
}

/** Whether a walk ended because the list is too long, and not because it is unsound. */
export function isLimit(reason: NotStoredReason): boolean {
  return reason === 'max-pages' || reason === 'max-items' || reason === 'too-large' || reason === 'deadline';
}

function isStorable(task: FetchTask, { page }: ReceivedPage): boolean {
  return grant(page.hints, task.policy).lifetimeMs > 0;
}

function entryOf(task: FetchTask, pages: readonly [ReceivedPage, ...ReceivedPage[]], asPage: boolean): Entry {
  const { method, uri } = task.request;
  const { policy } = task;
  const seed = randomBytes(32).toString('base64url');
  return assemble(pages, { method, policy, uri, seed, asPage, authContext: task.keys.authContext });
}

function keyFor(entry: Entry, keys: CacheKeys): string {
  return entry.scope === 'public' ? keys.shared : keys.own;
}

function notStored(response: RelayResponse, reason: NotStoredReason): FetchEnd {
  return { kind: 'not-stored', reason, response };
}

function restart(response: RelayResponse): { readonly kind: 'restart' } {
  response.discard();
  return { kind: 'restart' };
}
