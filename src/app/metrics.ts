/**
 * Owns: the counters: one table of what is counted, with prom-client. Every label comes from a closed list or
 * from the configuration: no client can make a new series.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { FLUSH_REASONS, type FlushReason } from '../cache/changes.js';
import {
  BYPASS_REASONS,
  isOneOf,
  NOT_STORED_REASONS,
  type NotStoredReason,
  STALE_REASONS,
} from '../core/reasons.js';
import type { FetchEnding } from '../http/task.js';
import { createDurations } from './durations.js';
import { type CountedRequest, createTallies, type Tally } from './tally.js';

/** What is read when somebody asks for the numbers. */
export interface Readings {
  readonly entries: (upstream: string) => { readonly entries: number; readonly bytes: number };
  readonly isWatchConnected: (upstream: string) => boolean;
  /** Absent: there is no shared tier. */
  readonly isRedisUp?: (() => boolean) | undefined;
}

export interface Metrics {
  request(request: CountedRequest): void;
  upstreamFetch(upstream: string, durationMs: number, end: FetchEnding): void;
  walked(upstream: string, pages: number): void;
  walkEnded(upstream: string, reason: NotStoredReason): void;
  flushed(upstream: string, reason: FlushReason, entries: number): void;
  evicted(): void;
  redisFailed(reason: RedisFailure): void;
  leaseWaited(upstream: string): void;
  tally(upstream: string): Readonly<Tally>;
  /** The Prometheus text format. */
  text(readings: Readings): Promise<string>;
  readonly contentType: string;
  /** The names and help texts of what is registered, Node's own left out. */
  readonly table: readonly { readonly name: string; readonly help: string }[];
}

const REDIS_FAILURES = ['away', 'strange-value'] as const;
type RedisFailure = (typeof REDIS_FAILURES)[number];

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

  const answered = createPending();
  const requests = new Counter({
    name: `${PREFIX}requests_total`,
    help: 'Requests answered',
    labelNames: ['upstream', 'method', 'outcome'],
    registers,
    collect() {
      for (const { labels, count } of answered.take()) this.inc(labels, count);
    },
  });
  const bypasses = counter('bypass_total', 'Requests that never consult the cache, by reason', [
    'upstream',
    'reason',
  ]);
  const notStored = counter('not_stored_total', 'Results relayed and not stored, by reason', [
    'upstream',
    'reason',
  ]);
  const staleAnswers = counter('stale_answers_total', 'Stale entries that answered, by reason', [
    'upstream',
    'reason',
  ]);
  const seconds = createDurations({
    name: `${PREFIX}request_duration_seconds`,
    help: 'Time to answer a request, to its end',
    labelNames: ['upstream', 'outcome'],
    buckets: SECONDS,
  });
  registry.registerMetric(seconds.metric);
  const fetches = histogram(
    'upstream_fetch_duration_seconds',
    'Time to fetch one page or result: answered, or failed',
    ['upstream', 'end'],
  );
  const walks = counter('walks_total', 'Lists walked to their end', ['upstream']);
  const pages = counter('walked_pages_total', 'Pages of the lists walked to their end', ['upstream']);
  const walksEnded = counter('walks_ended_total', 'Walks given up before the end, by reason', [
    'upstream',
    'reason',
  ]);
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
  const redisUp = gauge('redis_up', '1 while Redis is in use, 0 while it is away');
  const table = registry.getMetricsAsArray().map(({ name, help }) => ({ name, help }));
  collectDefaultMetrics({ register: registry });

  const tallies = createTallies(upstreams);
  // What is there from the start shows its first increase as one.
  for (const reason of REDIS_FAILURES) redisFailures.inc({ reason }, 0);
  for (const upstream of upstreams) {
    for (const one of [walks, pages, coalesced, flushedEntries, leaseWaits]) one.inc({ upstream }, 0);
    for (const outcome of ['hit', 'miss']) requests.inc({ upstream, method: 'tools/list', outcome }, 0);
    for (const reason of BYPASS_REASONS) bypasses.inc({ upstream, reason }, 0);
    for (const reason of NOT_STORED_REASONS) notStored.inc({ upstream, reason }, 0);
    for (const reason of STALE_REASONS) staleAnswers.inc({ upstream, reason }, 0);
    for (const reason of FLUSH_REASONS) flushes.inc({ upstream, reason }, 0);
  }

  return {
    table,
    contentType: registry.contentType,
    request(request) {
      const { upstream, method, outcome, reason, durationMs } = request;
      answered.add(upstream, method, outcome);
      seconds.observe(upstream, outcome, durationMs / 1000);
      tallies.count(request);
      if (outcome === 'hit') return;
      if (isOneOf(BYPASS_REASONS, reason)) bypasses.inc({ upstream, reason });
      else if (isOneOf(NOT_STORED_REASONS, reason)) notStored.inc({ upstream, reason });
      else if (isOneOf(STALE_REASONS, reason)) staleAnswers.inc({ upstream, reason });
      if (request.collapsed === true) coalesced.inc({ upstream });
    },
    upstreamFetch: (upstream, durationMs, end) => fetches.observe({ upstream, end }, durationMs / 1000),
    walked(upstream, count) {
      walks.inc({ upstream });
      pages.inc({ upstream }, count);
    },
    walkEnded: (upstream, reason) => walksEnded.inc({ upstream, reason }),
    flushed(upstream, reason, count) {
      flushes.inc({ upstream, reason });
      flushedEntries.inc({ upstream }, count);
    },
    evicted: () => evictions.inc(),
    redisFailed: (reason) => redisFailures.inc({ reason }),
    leaseWaited: (upstream) => leaseWaits.inc({ upstream }),
    tally: tallies.of,
    async text(readings) {
      for (const upstream of upstreams) {
        const held = readings.entries(upstream);
        entries.set({ upstream }, held.entries);
        bytes.set({ upstream }, held.bytes);
        watches.set({ upstream }, readings.isWatchConnected(upstream) ? 1 : 0);
      }
      // Without a shared tier there is no number: 0 would be a failure.
      if (readings.isRedisUp === undefined) redisUp.remove();
      else redisUp.set(readings.isRedisUp() ? 1 : 0);
      return registry.metrics();
    },
  };
}

interface Counted {
  readonly labels: { readonly upstream: string; readonly method: string; readonly outcome: string };
  count: number;
}

/** What was counted since it was last taken: every hit is, and prom-client's own way takes as long as the hit. */
function createPending() {
  const all = new Map<string, Counted>();
  return {
    add(upstream: string, method: string, outcome: string): void {
      const key = `${upstream} ${method} ${outcome}`;
      const counted = all.get(key);
      if (counted === undefined) all.set(key, { labels: { upstream, method, outcome }, count: 1 });
      else counted.count += 1;
    },
    take(): readonly Counted[] {
      const taken = [...all.values()];
      all.clear();
      return taken;
    },
  };
}
