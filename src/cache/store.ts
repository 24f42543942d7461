/**
 * Owns: the port that every tier fulfils. A store is dumb: it keeps entries, moves generations and counts
 * bytes. It does not judge freshness and knows nothing of requests.
 */
import type { CacheableMethod } from '../core/protocol.js';
import type { Entry } from '../core/snapshot.js';

/**
 * What was true of an upstream's cache before a fetch began. A write hands it back, so that nothing fetched
 * before a flush or a drop can be stored after it (design, law 20).
 */
export interface Stamp {
  readonly generation: number;
  /** How many drops of single resources there had been. */
  readonly drops: number;
}

export type WriteResult = 'stored' | 'superseded' | 'too-large';

/** What is made unusable short of a flush. */
export type Drop =
  /** Entries that show this resource (law 18). Fetches under way are caught as well. */
  | { readonly kind: 'resource'; readonly uri: string }
  /** Private entries of an authorization context (law 17). */
  | { readonly kind: 'context'; readonly authContext: string }
  /** Entries of a list method, as far as this context could be served them, whose bytes hold one of the texts. */
  | {
      readonly kind: 'showing';
      readonly method: CacheableMethod;
      readonly texts: readonly string[];
      readonly authContext: string;
    };

export interface Store {
  /** The entries under the keys, in their order, whether fresh or stale. */
  read(upstream: string, keys: readonly string[]): Promise<readonly (Entry | undefined)[]>;
  /** To be taken before a fetch begins. */
  stamp(upstream: string): Promise<Stamp>;
  /** Whether no flush came since; a drop does not count. */
  isCurrent(upstream: string, stamp: Stamp): boolean;
  /** Stores the entry unless a flush, or a drop of a resource that it shows, came since the stamp. */
  write(upstream: string, key: string, entry: Entry, stamp: Stamp): Promise<WriteResult>;
  /** Makes everything of the upstream unusable, whatever is on its way; resolves with how many entries that were. */
  flush(upstream: string): Promise<number>;
  /** The same for a part of it. */
  drop(upstream: string, what: Drop): Promise<number>;
}
