/**
 * Owns: the counters: one table of what is counted, with prom-client, and a tally by upstream for people. Every
 * label comes from a closed list or from the configuration: no client can make a new series.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Outcome } from '../core/reasons.js';

/** What one answered request was. */
export interface CountedRequest {
  readonly upstream: string;
  /** As MCP defines it, else `other`. */
  readonly method: string;
  readonly outcome: Outcome;
  readonly reason?: string | undefined;
  readonly collapsed?: boolean | undefined;
  /** Pages that the answer was made of. */
  readonly pages?: number | undefined;
  readonly durationMs: number;
}

/** What was counted of one upstream since the start. */
export interface Tally {
  hits: number;
  misses: number;
  stale: number;
  bypassed: number;
  coalesced: number;
  /** Requests that the upstream was spared: pages of answers that came from memory. */
  upstreamCallsSaved: number;
  /** Why answers did not come fresh from the cache. */
  readonly reasons: Record<string, number>;
}

/** What is read when somebody asks for the numbers. */
export interface Readings {
  readonly entries: (upstream: string) => { readonly entries: number; readonly bytes: number };
  readonly isWatchConnected: (upstream: string) => boolean;
  /** Absent: there is no shared tier. */
  readonly isRedisUp?: (() => boolean) | undefined;
}

export interface Metrics {
  request(request: CountedRequest): void;
  upstreamFetch(upstream: string, durationMs: number): void;
  walkEnded(upstream: string, reason: string): void;
  flushed(upstream: string, reason: string, entries: number): void;
  evicted(): void;
  redisFailed(reason: 'away' | 'strange-value'): void;
  leaseWaited(upstream: string): void;
  tally(upstream: string): Readonly<Tally>;
  /** The Prometheus text format. */
  text(readings: Readings): Promise<string>;
  readonly contentType: string;
  /** The names and help texts of what is registered, Node's own left out. */
  readonly table: readonly { readonly name: string; readonly help: string }[];
}

const PREFIX = 'mcp_cache_gateway_';
/** From a hit in memory to a slow walk, in seconds. */
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export function createMetrics(upstreams: readonly string[]): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const counter = (name: string, help: string, labelNames: string[]) =>
    new Counter({ name: `${PREFIX}${name}`, help, labelNames, registers });
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name: `${PREFIX}${name}`, help, labelNames, registers });
  const histogram = (name: string, help: string, labelNames: string[]) =>
    new Histogram({ name: `${PREFIX}${name}`, help, labelNames, buckets: SECONDS, registers });

  const requests = counter('requests_total', 'Requests answered', ['upstream', 'method', 'outcome']);
  const bypasses = counter('bypass_total', 'Requests that never consult the cache, by reason', [
    'upstream',
    'reason',
  ]);
  const notStored = counter('not_stored_total', 'Results relayed and not stored, by reason', [
    'upstream',
    'reason',
  ]);
  const seconds = histogram('request_duration_seconds', 'Time to answer a request', ['upstream', 'outcome']);
  const fetches = histogram('upstream_fetch_duration_seconds', 'Time to fetch one page or result', [
    'upstream',
  ]);
  const walksEnded = counter('walks_ended_total', 'Walks given up before the end, by reason', [
    'upstream',
    'reason',
  ]);
  const pages = counter('walked_pages_total', 'Pages of answers that were fetched', ['upstream']);
  const coalesced = counter('coalesced_total', 'Requests that another one’s fetch answered', ['upstream']);
  const flushes = counter('flushes_total', 'Flushes, by reason', ['upstream', 'reason']);
  const flushedEntries = counter('flushed_entries_total', 'Entries that flushes freed', ['upstream']);
  const evictions = counter('evictions_total', 'Entries evicted for room', []);
  const redisFailures = counter(
    'redis_failures_total',
    'Times that Redis went away or held a strange value',
    ['reason'],
  );
  const leaseWaits = counter('lease_waits_total', 'Fetches that waited for another replica', ['upstream']);
  const entries = gauge('entries', 'Entries in memory', ['upstream']);
  const bytes = gauge('entries_bytes', 'Bytes of the entries in memory', ['upstream']);
  const watches = gauge('watch_connected', '1 while the watch of an upstream stands here', ['upstream']);
  const redisUp = gauge('redis_up', '1 while Redis is in use');
  const table = registry.getMetricsAsArray().map(({ name, help }) => ({ name, help }));
  collectDefaultMetrics({ register: registry });

  const tallies = new Map<string, Tally>(upstreams.map((name) => [name, newTally()]));
  for (const upstream of upstreams) {
    coalesced.inc({ upstream }, 0);
    for (const outcome of ['hit', 'miss']) requests.inc({ upstream, method: 'tools/list', outcome }, 0);
  }

  return {
    table,
    contentType: registry.contentType,
    request({ upstream, method, outcome, reason, collapsed, pages: count = 0, durationMs }) {
      requests.inc({ upstream, method, outcome });
      seconds.observe({ upstream, outcome }, durationMs / 1000);
      if (reason !== undefined && outcome === 'bypass') bypasses.inc({ upstream, reason });
      if (reason !== undefined && (outcome === 'miss' || outcome === 'stale'))
        notStored.inc({ upstream, reason });
      if (collapsed === true) coalesced.inc({ upstream });
      else if (outcome === 'miss') pages.inc({ upstream }, count);
      add(tallies.get(upstream), { outcome, reason, collapsed: collapsed === true, pages: count });
    },
    upstreamFetch: (upstream, durationMs) => fetches.observe({ upstream }, durationMs / 1000),
    walkEnded: (upstream, reason) => walksEnded.inc({ upstream, reason }),
    flushed(upstream, reason, count) {
      flushes.inc({ upstream, reason });
      flushedEntries.inc({ upstream }, count);
    },
    evicted: () => evictions.inc(),
    redisFailed: (reason) => redisFailures.inc({ reason }),
    leaseWaited: (upstream) => leaseWaits.inc({ upstream }),
    tally: (upstream) => tallies.get(upstream) ?? newTally(),
    async text(readings) {
      for (const upstream of upstreams) {
        const held = readings.entries(upstream);
        entries.set({ upstream }, held.entries);
        bytes.set({ upstream }, held.bytes);
        watches.set({ upstream }, readings.isWatchConnected(upstream) ? 1 : 0);
      }
      redisUp.set(readings.isRedisUp?.() === true ? 1 : 0);
      return registry.metrics();
    },
  };
}

function newTally(): Tally {
  return { hits: 0, misses: 0, stale: 0, bypassed: 0, coalesced: 0, upstreamCallsSaved: 0, reasons: {} };
}

function add(
  tally: Tally | undefined,
  {
    outcome,
    reason,
    collapsed,
    pages,
  }: Pick<CountedRequest, 'outcome' | 'reason'> & { readonly collapsed: boolean; readonly pages: number },
): void {
  if (tally === undefined) return;
  if (outcome !== 'hit' && reason !== undefined) tally.reasons[reason] = (tally.reasons[reason] ?? 0) + 1;
  if (outcome === 'hit') tally.hits += 1;
  else if (outcome === 'miss') tally.misses += 1;
  else if (outcome === 'stale') tally.stale += 1;
  else if (outcome === 'bypass') tally.bypassed += 1;
  if (collapsed) tally.coalesced += 1;
  if (outcome === 'hit' || collapsed) tally.upstreamCallsSaved += pages;
}
