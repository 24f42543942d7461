/**
 * Owns: the memory tier. lru-cache bounds the bytes and evicts; the index by upstream and by resource makes a
 * flush and a drop free what they hit at once, without a look at anything else (design, law 22).
 */
import { LRUCache } from 'lru-cache';
import type { Entry } from '../core/snapshot.js';
import type { Drop, Stamp, Store } from './store.js';

export interface MemoryStoreOptions {
  /** The budget for values, keys and their bookkeeping, in bytes. */
  readonly maxBytes: number;
  /** An entry of a larger body is not stored, in bytes. */
  readonly maxEntryBytes: number;
  /** Told of each entry that went for room. */
  readonly onEvict?: () => void;
}

/** What an entry costs beside its bytes: objects, index and list nodes, measured roughly and rounded up. */
const ENTRY_OVERHEAD_BYTES = 1024;

/** Drops that a fetch still under way may meet; a fetch that began before the oldest of them is not stored. */
export const REMEMBERED_DROPS = 1024;

interface Slot {
  readonly upstream: string;
  readonly entry: Entry;
}

/** What the store knows of one upstream. Its number is bounded by the configuration. */
interface Shelf {
  generation: number;
  drops: number;
  bytes: number;
  /** The last dropped resources; the newest has the number `drops`. */
  readonly dropped: string[];
  readonly keys: Set<string>;
  readonly keysByUri: Map<string, Set<string>>;
  /** The keys of private entries. */
  readonly keysByContext: Map<string, Set<string>>;
}

/** The memory tier, which alone can look into its entries. */
export interface MemoryStore extends Store {
  /** The keys that a drop would hit. */
  keysHit(upstream: string, what: Drop): string[];
  inspect(upstream: string): {
    readonly generation: number;
    readonly entries: number;
    readonly bytes: number;
  };
  /** Entries in the order in which they were stored, from `offset` on, at most `limit` of them. */
  list(upstream: string, page: { readonly offset: number; readonly limit: number }): readonly Entry[];
  /** The bytes of all entries. */
  readonly bytes: number;
}

export function createMemoryStore(options: MemoryStoreOptions): MemoryStore {
  const shelves = new Map<string, Shelf>();
  const slots = new LRUCache<string, Slot>({
    // lru-cache takes 0 for "unbounded"; a budget of 1 holds nothing, as one of 0 should.
    maxSize: Math.max(1, options.maxBytes),
    sizeCalculation: (slot, key) => sizeOf(slot.entry) + key.length,
    dispose: (slot, key, reason) => {
      unindex(shelfOf(slot.upstream), key, slot.entry);
      if (reason === 'evict') options.onEvict?.();
    },
  });

  function shelfOf(upstream: string): Shelf {
    let shelf = shelves.get(upstream);
    if (shelf === undefined) {
      shelf = {
        generation: 0,
        drops: 0,
        bytes: 0,
        dropped: [],
        keys: new Set(),
        keysByUri: new Map(),
        keysByContext: new Map(),
      };
      shelves.set(upstream, shelf);
    }
    return shelf;
  }

  function stampOf(upstream: string): Stamp {
    const { generation, drops } = shelfOf(upstream);
    return { generation, drops };
  }

  return {
    peek: (_upstream, key) => slots.get(key)?.entry,

    async look(upstream, keys) {
      return { entries: keys.map((key) => slots.get(key)?.entry), stamp: stampOf(upstream) };
    },

    stamp: async (upstream) => stampOf(upstream),

    isCurrent: (upstream, stamp) => shelfOf(upstream).generation === stamp.generation,

    async write(upstream, key, entry, stamp) {
      const shelf = shelfOf(upstream);
      if (shelf.generation !== stamp.generation || wasDropped(shelf, entry, stamp)) return 'superseded';
      if (entry.body.length > options.maxEntryBytes) return 'too-large';
      slots.set(key, { upstream, entry });
      if (!slots.has(key)) return 'too-large';
      index(shelf, key, entry);
      return 'stored';
    },

    async flush(upstream) {
      const shelf = shelfOf(upstream);
      shelf.generation += 1;
      return forget(shelf.keys);
    },

    inspect(upstream) {
      const { generation, keys, bytes } = shelfOf(upstream);
      return { generation, entries: keys.size, bytes };
    },

    list(upstream, { offset, limit }) {
      const entries: Entry[] = [];
      let at = 0;
      for (const key of shelfOf(upstream).keys) {
        if (at >= offset + limit) break;
        const entry = at >= offset ? slots.peek(key)?.entry : undefined;
        if (entry !== undefined) entries.push(entry);
        at += 1;
      }
      return entries;
    },

    get bytes() {
      return slots.calculatedSize;
    },

    keysHit: (upstream, what) => [...keysToDrop(shelfOf(upstream), what)],

    async drop(upstream, what) {
      const shelf = shelfOf(upstream);
      if (what.kind === 'resource') rememberDrop(shelf, what.uri);
      return forget(keysToDrop(shelf, what));
    },
  };

  function keysToDrop(shelf: Shelf, what: Drop): Iterable<string> {
    switch (what.kind) {
      case 'resource':
        return shelf.keysByUri.get(what.uri) ?? [];
      case 'context':
        return shelf.keysByContext.get(what.authContext) ?? [];
      case 'showing':
        return [...shelf.keys].filter((key) => shows(slots.peek(key)?.entry, what));
      case 'keys':
        return what.keys.filter((key) => shelf.keys.has(key));
      default:
        return what satisfies never;
    }
  }

  function forget(keys: Iterable<string>): number {
    const doomed = [...keys];
    for (const key of doomed) slots.delete(key);
    return doomed.length;
  }
}

function sizeOf(entry: Entry): number {
  return (
    entry.body.length + ENTRY_OVERHEAD_BYTES + entry.uris.reduce((sum, uri) => sum + 2 * uri.length + 64, 0)
  );
}

function wasDropped(shelf: Shelf, entry: Entry, stamp: Stamp): boolean {
  const since = shelf.drops - stamp.drops;
  if (since === 0 || entry.uris.length === 0) return false;
  if (since > shelf.dropped.length) return true;
  return shelf.dropped.slice(-since).some((uri) => entry.uris.includes(uri));
}

function rememberDrop(shelf: Shelf, uri: string): void {
  shelf.drops += 1;
  shelf.dropped.push(uri);
  if (shelf.dropped.length > REMEMBERED_DROPS) shelf.dropped.shift();
}

function shows(entry: Entry | undefined, what: Extract<Drop, { kind: 'showing' }>): boolean {
  if (entry === undefined || entry.method !== what.method) return false;
  const isServable = entry.scope === 'public' || entry.authContext === what.authContext;
  return isServable && what.texts.some((text) => entry.body.includes(text));
}

function index(shelf: Shelf, key: string, entry: Entry): void {
  shelf.keys.add(key);
  shelf.bytes += sizeOf(entry);
  for (const uri of entry.uris) addTo(shelf.keysByUri, uri, key);
  if (entry.scope === 'private') addTo(shelf.keysByContext, entry.authContext, key);
}

function unindex(shelf: Shelf, key: string, entry: Entry): void {
  if (!shelf.keys.delete(key)) return;
  shelf.bytes -= sizeOf(entry);
  for (const uri of entry.uris) removeFrom(shelf.keysByUri, uri, key);
  if (entry.scope === 'private') removeFrom(shelf.keysByContext, entry.authContext, key);
}

function addTo(index: Map<string, Set<string>>, name: string, key: string): void {
  const keys = index.get(name);
  if (keys === undefined) index.set(name, new Set([key]));
  else keys.add(key);
}

function removeFrom(index: Map<string, Set<string>>, name: string, key: string): void {
  const keys = index.get(name);
  keys?.delete(key);
  if (keys?.size === 0) index.delete(name);
}
