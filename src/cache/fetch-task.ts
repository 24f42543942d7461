/** Owns: what a fetch is given, and how it ends. Types only. */
import type { CacheableRequest } from '../core/classify.js';
import type { FetchPage, InterimSink, RelayResponse } from '../core/exchange.js';
import type { FreshnessPolicy, Scope } from '../core/freshness.js';
import type { CacheKeys } from '../core/key.js';
import type { NotStoredReason } from '../core/reasons.js';
import type { Entry, ReceivedPage } from '../core/snapshot.js';
import type { Stamp } from './store.js';

/** What is to be fetched, and under which keys it is kept. */
export interface FetchTask {
  readonly upstream: string;
  readonly policy: FreshnessPolicy;
  readonly request: CacheableRequest;
  readonly keys: CacheKeys;
  /** The keys under which the first page is kept by itself, should the list prove too long. */
  readonly pageKeys: CacheKeys;
  /**
   * `whole`: a list is walked; `page`: the one page is kept with its cursor; `single`: it is kept if there
   * are no more; `none`: nothing is kept.
   */
  readonly mode: 'whole' | 'page' | 'single' | 'none';
  readonly hasCredentials: boolean;
  readonly fetchPage: FetchPage;
  readonly interim: InterimSink;
  /** Aborts when nobody waits any more, or the deadline has passed. */
  readonly signal: AbortSignal;
  /** Sends under that signal; what has been answered is ended no more by the deadline: it may be relayed for long. */
  readonly untilAnswered: <T>(send: (signal: AbortSignal) => Promise<T>) => Promise<T>;
  readonly onHead: () => void;
  /** Told when a page has come. */
  readonly onPage: () => void;
}

/** How a fetch ended. The response belongs to whoever asked first, and must be relayed or discarded. */
export type FetchEnd =
  | {
      readonly kind: 'stored';
      readonly entry: Entry;
      readonly first: ReceivedPage;
      /** The stamp under which it was stored. */
      readonly stamp: Stamp;
      readonly response: RelayResponse;
    }
  /** Whole, but overtaken by flushes to the end: served as stale, and not kept. */
  | { readonly kind: 'overtaken'; readonly entry: Entry; readonly response: RelayResponse }
  | {
      readonly kind: 'not-stored';
      readonly reason: NotStoredReason;
      /** The page that came, where it was not for itself that nothing was stored. */
      readonly first?: FirstPage;
      readonly response: RelayResponse;
    };

/** What the first page of a list tells of the whole. */
export interface FirstPage {
  readonly scope: Scope;
  readonly hasMore: boolean;
}
