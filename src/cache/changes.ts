/**
 * Owns: what makes entries unusable: changes that an upstream announced, an operator's flush, refused
 * credentials, and things that turned out to be unknown: a list that still shows what the upstream no longer
 * knows is not to be believed (design, laws 17–20; MCP caching, Freshness Calculation).
 */
import type { Clock } from '../clock.js';
import type { Change } from '../core/change.js';
import {
  type CacheableMethod,
  ERROR_CODE,
  isCacheableMethod,
  methodShape,
  NAMED_BY,
} from '../core/protocol.js';
import type { Drop, FlushReach, Store } from './store.js';

export const FLUSH_REASONS = ['watch', 'tap', 'watch-connected', 'operator'] as const;
export type FlushReason = (typeof FLUSH_REASONS)[number];

/** How often unknown things may make an upstream's lists stale, so that no caller can defeat the cache. */
export const UNKNOWN_INTERVAL_MS = 1_000;

/** Errors by which an upstream says that it does not know what was asked for, or knows it otherwise. */
const UNKNOWN_CODES: ReadonlySet<number> = new Set([
  ERROR_CODE.invalidParams,
  ERROR_CODE.methodNotFound,
  ERROR_CODE.headerMismatch,
]);

/** Which list shows what a method asks for by name. */
const SHOWN_IN: Readonly<Record<string, CacheableMethod>> = {
  'tools/call': 'tools/list',
  'prompts/get': 'prompts/list',
  'resources/read': 'resources/list',
};

export interface ChangesDeps {
  readonly store: Store;
  readonly clock: Clock;
  /** The upstreams that a `list_changed` of one flushes (LIST_CHANGED_FLUSH). */
  readonly flushedWith: (upstream: string) => readonly string[];
  readonly onFlushed: (upstream: string, reason: FlushReason, entries: number) => void;
}

/** One thing that a client asked for by name, or one page by its cursor. */
export interface AskedFor {
  readonly method: string;
  readonly name: string;
  readonly authContext: string;
}

export interface Changes {
  /** Applies a change that an upstream announced; resolved when it has taken effect (law 19). */
  apply(upstream: string, change: Change, reason: FlushReason): Promise<void>;
  /** `here` flushes what this process alone holds. */
  flush(upstream: string, reason: FlushReason, reach?: FlushReach): Promise<void>;
  /** The upstream refused these credentials: what was kept for them alone is dropped (law 17). */
  refused(upstream: string, authContext: string): Promise<void>;
  /** The upstream answered a request for one thing with the JSON-RPC error `code`. */
  unknown(upstream: string, asked: AskedFor, code: number): Promise<void>;
}

/** The parameter of this method that an error to it can show to be out of date; undefined for other methods. */
export function shownParam(method: string): 'name' | 'uri' | 'cursor' | undefined {
  if (Object.hasOwn(SHOWN_IN, method)) return NAMED_BY[method];
  return isListMethod(method) ? 'cursor' : undefined;
}

function isListMethod(method: string): method is CacheableMethod {
  return isCacheableMethod(method) && methodShape(method).itemsField !== undefined;
}

export function createChanges(deps: ChangesDeps): Changes {
  const { store, clock } = deps;
  /** Bounded by the number of upstreams. */
  const lastUnknownAt = new Map<string, number>();

  async function flush(
    upstream: string,
    reason: FlushReason,
    reach: FlushReach = 'everywhere',
  ): Promise<void> {
    deps.onFlushed(upstream, reason, await store.flush(upstream, reach));
  }

  return {
    flush,

    async apply(upstream, change, reason) {
      switch (change.kind) {
        case 'list-changed':
          await Promise.all(deps.flushedWith(upstream).map((name) => flush(name, reason)));
          return;
        case 'resource-updated':
          await store.drop(upstream, { kind: 'resource', uri: change.uri });
          return;
        default:
          change satisfies never;
      }
    },

    async refused(upstream, authContext) {
      await store.drop(upstream, { kind: 'context', authContext });
    },

    async unknown(upstream, asked, code) {
      const outdated = whatShows(asked, code);
      if (outdated === undefined) return;
      const now = clock.now();
      if (now < (lastUnknownAt.get(upstream) ?? Number.NEGATIVE_INFINITY) + UNKNOWN_INTERVAL_MS) return;
      if ((await store.drop(upstream, outdated)) > 0) lastUnknownAt.set(upstream, now);
    },
  };
}

/** What still shows a thing that the upstream does not know; undefined where the error says no such thing. */
function whatShows({ method, name, authContext }: AskedFor, code: number): Drop | undefined {
  const list = Object.hasOwn(SHOWN_IN, method) ? SHOWN_IN[method] : undefined;
  if (list !== undefined && UNKNOWN_CODES.has(code))
    return { kind: 'showing', method: list, texts: spellings(name), authContext };
  // Of a list that is kept by pages all that lead on are dropped (MCP caching, Interaction with Pagination).
  if (isListMethod(method) && code === ERROR_CODE.invalidParams)
    return { kind: 'showing', method, texts: ['"nextCursor"'], authContext };
  return undefined;
}

/** A name as servers write it in JSON: plain, with escaped slashes, or in ASCII alone. */
function spellings(name: string): string[] {
  const plain = JSON.stringify(name);
  const ascii = plain.replace(
    /[\u0080-\uffff]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return [...new Set([plain, plain.replaceAll('/', '\\/'), ascii])];
}
