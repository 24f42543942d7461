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
  /** The same of the shared tier, as it was known; absent where there is none, or it could not be asked. */
  readonly shared?: SharedStamp;
}

export interface SharedStamp {
  /** Never the same twice, even after the shared tier was emptied. */
  readonly generation: string;
  readonly drops: number;
}

/** `unavailable`: the tier could not be asked; nothing is kept there, and nothing is wrong with the entry. */
export type WriteResult = 'stored' | 'superseded' | 'too-large' | 'unavailable';

export type FlushReach = 'everywhere' | 'here';

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
    }
  /** Entries under these keys. */
  | { readonly kind: 'keys'; readonly keys: readonly string[] };

/** Whether an entry is enough. */
export type Suffices = (entry: Entry) => boolean;

/** What a store has, and the stamp under which it has it. */
export interface Look {
  /** The entries under the keys, in their order, whether fresh or stale. */
  readonly entries: readonly (Entry | undefined)[];
  /** Taken before the entries were read; also the one to fetch under. */
  readonly stamp: Stamp;
}

export interface Store {
  /** What this process has at hand under a key, whether fresh or stale, without asking anybody. */
  peek(upstream: string, key: string): Entry | undefined;
  /** What is kept under the keys; `suffices` tells an entry beside which no further tier need be asked. */
  look(upstream: string, keys: readonly string[], suffices: Suffices): Promise<Look>;
  /** To be taken before a fetch begins. */
  stamp(upstream: string): Promise<Stamp>;
  /** Whether no flush came since; a drop does not count. */
  isCurrent(upstream: string, stamp: Stamp): boolean;
  /** Stores the entry unless a flush, or a drop of a resource that it shows, came since the stamp. */
  write(upstream: string, key: string, entry: Entry, stamp: Stamp): Promise<WriteResult>;
  /**
   * Makes everything of the upstream unusable, whatever is on its way; resolves with how many entries that were,
   * as far as the tier can tell. `here` means what this process alone holds.
   * Rejects with StoreUnavailableError where it could not be done.
   */
  flush(upstream: string, reach: FlushReach): Promise<number>;
  /** The same for a part of it. Rejects likewise. */
  drop(upstream: string, what: Drop): Promise<number>;
}

/** A tier could not be asked, or did not answer in time. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError';
}
