/** Owns: what was counted of each upstream since the start, in the few numbers that people are shown. */
import { isOneOf, type Outcome, STALE_REASONS } from '../core/reasons.js';

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

export interface Tally {
  hits: number;
  /** The upstream was asked, also because an entry's lifetime was over. */
  misses: number;
  /** A stale entry answered in the upstream's stead. */
  stale: number;
  bypassed: number;
  coalesced: number;
  /** Requests that the upstream was spared: pages of answers that came from memory. */
  upstreamCallsSaved: number;
  /** Why answers did not come fresh from the cache. */
  readonly reasons: Record<string, number>;
}

export interface Tallies {
  count(request: CountedRequest): void;
  of(upstream: string): Readonly<Tally>;
}

export function createTallies(upstreams: readonly string[]): Tallies {
  const tallies = new Map<string, Tally>(upstreams.map((name) => [name, newTally()]));
  return {
    count(request) {
      const tally = tallies.get(request.upstream);
      if (tally !== undefined) add(tally, request);
    },
    of: (upstream) => tallies.get(upstream) ?? newTally(),
  };
}

function newTally(): Tally {
  return { hits: 0, misses: 0, stale: 0, bypassed: 0, coalesced: 0, upstreamCallsSaved: 0, reasons: {} };
}

function add(tally: Tally, { outcome, reason, collapsed = false, pages = 0 }: CountedRequest): void {
  if (outcome !== 'hit' && reason !== undefined) tally.reasons[reason] = (tally.reasons[reason] ?? 0) + 1;
  if (outcome === 'hit') tally.hits += 1;
  else if (isOneOf(STALE_REASONS, reason)) tally.stale += 1;
  else if (outcome === 'miss' || outcome === 'stale') tally.misses += 1;
  else if (outcome === 'bypass') tally.bypassed += 1;
  if (collapsed) tally.coalesced += 1;
  if (outcome === 'hit' || collapsed) tally.upstreamCallsSaved += pages;
}
