/** Owns: how the parts of the cache are put together. */
import type { Clock } from '../clock.js';
import type { WalkLimits } from '../core/walk.js';
import { type Changes, type ChangesDeps, createChanges } from './changes.js';
import { createFetcher, type FetcherEvents } from './fetcher.js';
import { createFlights, type Fleet } from './flights.js';
import { createListCache, type ListCache } from './list-cache.js';
import { createMemory } from './memory.js';
import { createPaging } from './paging.js';
import type { Store } from './store.js';

export interface CacheOptions {
  readonly store: Store;
  /** The other replicas, if there are any. */
  readonly fleet?: Fleet | undefined;
  readonly clock: Clock;
  /** A number from 0 up to, and without, 1. */
  readonly random: () => number;
  readonly upstreams: readonly { readonly name: string; readonly url: string }[];
  readonly limits: WalkLimits;
  readonly staleIfErrorMs: number;
  readonly pageSize: number;
  readonly flushedWith: ChangesDeps['flushedWith'];
  readonly events: FetcherEvents & { readonly flushed: ChangesDeps['onFlushed'] };
}

export function createCache(options: CacheOptions): {
  readonly listCache: ListCache;
  readonly changes: Changes;
} {
  const { store, clock, events, staleIfErrorMs } = options;
  const memory = createMemory(clock, options.random);
  const changes = createChanges({
    store,
    clock,
    flushedWith: options.flushedWith,
    onFlushed: events.flushed,
  });
  const fetch = createFetcher({
    store,
    events,
    limits: options.limits,
    apply: (upstream, change) => changes.apply(upstream, change, 'tap'),
  });
  const listCache = createListCache({
    store,
    clock,
    memory,
    flights: createFlights({ fetch, memory, clock, fleet: options.fleet }),
    paging: createPaging({ store, staleIfErrorMs, pageSize: options.pageSize, upstreams: options.upstreams }),
    staleIfErrorMs,
  });
  return { listCache, changes };
}
