/**
 * Owns: what the admin listener shows: each upstream's part of the cache, its watch, its last flush, and the
 * recent flushes of all. Instants are shown as wall-clock times, counted back from the process's own clock.
 */
import type { MemoryStore } from '../cache/memory-store.js';
import { type Clock, wallTimeBefore } from '../clock.js';
import { remainingMs } from '../core/freshness.js';
import type { ShownEntry, ShownUpstream } from '../http/admin.js';
import type { Metrics } from './metrics.js';
import type { WatchKeeper } from './watch-keeper.js';

/** How many recent flushes are remembered. */
const MAX_FLUSHES = 100;

export interface ShownFlush {
  readonly at: string;
  readonly upstream: string;
  readonly reason: string;
  readonly entries: number;
}

export interface OverviewDeps {
  readonly upstreams: readonly string[];
  readonly memory: MemoryStore;
  readonly keepers: ReadonlyMap<string, WatchKeeper>;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** The generation that replicas share, where they do. */
  readonly sharedGeneration: (upstream: string) => string | undefined;
}

export interface Overview {
  /** When the process started, and what time it is now. */
  times(): { readonly since: string; readonly now: string };
  flushed(upstream: string, reason: string, entries: number): void;
  upstreams(): readonly ShownUpstream[];
  entries(upstream: string, page: { readonly offset: number; readonly limit: number }): readonly ShownEntry[];
  flushes(): readonly ShownFlush[];
}

export function createOverview(deps: OverviewDeps): Overview {
  const { memory, clock, keepers, metrics } = deps;
  const recent: ShownFlush[] = [];
  const last = new Map<string, ShownFlush>();
  const startedAt = clock.now();

  const wallTime = (at: number) => wallTimeBefore(clock.now() - at);

  function shown(name: string): ShownUpstream {
    const { generation, entries, bytes } = memory.inspect(name);
    const keeper = keepers.get(name);
    const flush = last.get(name);
    return {
      name,
      generation: deps.sharedGeneration(name) ?? generation,
      entries,
      bytes,
      ...metrics.tally(name),
      watch: {
        state: keeper?.state ?? 'off',
        since: wallTime(keeper?.since ?? startedAt),
        reason: keeper?.reason ?? null,
      },
      lastFlush: flush === undefined ? null : { at: flush.at, reason: flush.reason, entries: flush.entries },
    };
  }

  return {
    times: () => ({ since: wallTime(startedAt), now: wallTime(clock.now()) }),
    flushed(upstream, reason, entries) {
      const flush = { at: wallTime(clock.now()), upstream, reason, entries };
      last.set(upstream, flush);
      recent.unshift(flush);
      if (recent.length > MAX_FLUSHES) recent.pop();
    },
    upstreams: () => deps.upstreams.map(shown),
    entries: (upstream, page) =>
      memory.list(upstream, page).map((entry) => ({
        method: entry.method,
        scope: entry.scope,
        ageMs: Math.round(clock.now() - entry.receivedAt),
        remainingMs: remainingMs(entry, clock.now()),
        items: entry.items,
        pages: entry.pages,
        bytes: entry.body.length,
        authContext: entry.scope === 'private' ? entry.authContext.slice(0, 12) : null,
      })),
    flushes: () => recent,
  };
}
