/**
 * What happened in one sequence, as an observer sees it who stands on both sides of the gateway: what was asked, what
 * the origin sent, when changes took effect, what the clients got. It knows nothing of the gateway's inside.
 */
import type { UpstreamName } from './program.js';

/** A moment: nothing in a sequence happens twice at one `seq`; what follows from one another shares a `step`. */
export interface Moment {
  readonly seq: number;
  readonly step: number;
  readonly now: number;
}

/** What makes a request the one that it is (law 3), and whose it is (law 8). */
export interface Asked {
  readonly upstream: UpstreamName;
  readonly key: string;
  readonly context: string;
  /** The credentials alone. */
  readonly credentials: string;
  readonly legacy: boolean;
  readonly id: string | number;
  readonly method: string;
  readonly uri: string | undefined;
  readonly cursor: string | undefined;
}

/** One page or result as the origin sent it. */
export interface Page {
  readonly serial: number;
  readonly asked: Asked;
  /** The state of the origin of which it tells. */
  readonly of: Moment;
  /** When its last byte was sent, which is when it was received. */
  readonly received: Moment;
  /** The members before the items. */
  readonly lead: string;
  readonly itemsField: string;
  readonly items: readonly string[];
  readonly next: string | undefined;
  /** The hints, as they were sent. */
  readonly ttlMs: string | undefined;
  readonly scope: string | undefined;
}

/** One request as the origin had it, and what became of it. */
export interface Exchange {
  readonly asked: Asked;
  readonly arrived: Moment;
  headed: Moment | undefined;
  ended: Moment | undefined;
  /** What was sent: the message, or the whole body where that is none. */
  sent: string | undefined;
  page: Page | undefined;
  /** Whether it failed as law 17 has it. */
  failed: boolean;
  /** Whether the other side ended it. */
  gone: boolean;
}

/** Something made entries untrue. */
export interface Flush extends Moment {
  readonly upstreams: readonly UpstreamName[];
  /** Absent: everything of the upstreams. */
  readonly uri: string | undefined;
  /** Private entries of one context alone (a 401). */
  readonly context: string | undefined;
  /** Whether the gateway must have seen it. */
  readonly certain: boolean;
}

/** One request of a client. */
export interface Ask {
  readonly asked: Asked;
  readonly began: Moment;
  left: boolean;
  ended: boolean;
}

/** What a client got for it. */
export interface Answer {
  readonly ask: Ask;
  readonly at: Moment;
  readonly status: number;
  readonly cacheStatus: string;
  /** Whether it came to its end. */
  readonly complete: boolean;
  /** The JSON-RPC message under the request's id; the whole body where there is none. */
  readonly message: string;
}

/** The gateway's own word that it keeps something until an instant. */
export interface Claim {
  readonly asked: Asked;
  readonly isPublic: boolean;
  readonly since: Moment;
  readonly until: number;
}

export interface Journal {
  readonly pages: Page[];
  readonly exchanges: Exchange[];
  readonly flushes: Flush[];
  readonly asks: Ask[];
  readonly failures: { readonly key: string; readonly at: number; readonly until: number }[];
  /** Credentials by upstream, and when they were last accepted; gone when they are refused. */
  readonly accepted: Map<string, number>;
  /** The gateway's own cursors: the items behind them, and who was given them. */
  readonly cursors: Map<
    string,
    { readonly asked: Asked; readonly flat: readonly string[]; readonly offset: number }
  >;
  readonly claims: Claim[];
  /** Those of them that must lead on, and until when. */
  readonly walkable: Map<string, { readonly upstream: UpstreamName; readonly until: number }>;
  /** Keys whose fetches did not all end well, so that they may be marked. */
  readonly troubled: Set<string>;
  moment(): Moment;
  /** Time has passed, or all that follows from something has happened. */
  settled(): void;
  /** Nothing kept of this upstream, or of one key, can be expected of the gateway any more. */
  void(upstream: UpstreamName, key?: string): void;
}

export function createJournal(now: () => number): Journal {
  let seq = 0;
  let step = 0;
  const claims: Claim[] = [];
  const walkable: Journal['walkable'] = new Map();
  return {
    pages: [],
    exchanges: [],
    flushes: [],
    asks: [],
    failures: [],
    accepted: new Map(),
    cursors: new Map(),
    claims,
    walkable,
    troubled: new Set(),
    moment() {
      seq += 1;
      return { seq, step, now: now() };
    },
    settled() {
      step += 1;
    },
    void(upstream, key) {
      const kept = claims.filter(
        ({ asked }) => asked.upstream !== upstream || (key ?? asked.key) !== asked.key,
      );
      claims.splice(0, claims.length, ...kept);
      for (const [cursor, its] of walkable)
        if (its.upstream === upstream && key === undefined) walkable.delete(cursor);
    },
  };
}
