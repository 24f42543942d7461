/**
 * Owns: the memory tier. lru-cache bounds the bytes and evicts; the index by upstream and by resource makes a
 * flush and a drop free what they hit at once, without a look at anything else (design, law 22).
 */
import { LRUCache } from 'lru-cache';
import type { Entry } from '../core/snapshot.js';
import type { Stamp, Store } from './store.js';

export interface MemoryStoreOptions {
  /** The budget for values, keys and their bookkeeping, in bytes. */
  readonly maxBytes: number;
  /** An entry of a larger body is not stored, in bytes. */
  readonly maxEntryBytes: number;
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
  /** The last dropped resources; the newest has the number `drops`. */
  readonly dropped: string[];
  readonly keys: Set<string>;
  readonly keysByUri: Map<string, Set<string>>;
}

export function createMemoryStore(options: MemoryStoreOptions): Store {
  const shelves = new Map<string, Shelf>();
  const slots = new LRUCache<string, Slot>({
    // lru-cache takes 0 for "unbounded"; a budget of 1 holds nothing, as one of 0 should.
    maxSize: Math.max(1, options.maxBytes),
    sizeCalculation: (slot, key) => sizeOf(slot.entry) + key.length,
    dispose: (slot, key) => unindex(shelfOf(slot.upstream), key, slot.entry),
  });

  function shelfOf(upstream: string): Shelf {
    let shelf = shelves.get(upstream);
    if (shelf === undefined) {
      shelf = { generation: 0, drops: 0, dropped: [], keys: new Set(), keysByUri: new Map() };
      shelves.set(upstream, shelf);
    }
    return shelf;
  }

  return {
    async read(_upstream, keys) {
      return keys.map((key) => slots.get(key)?.entry);
    },

    async stamp(upstream) {
      const { generation, drops } = shelfOf(upstream);
      return { generation, drops };
    },

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

    async drop(upstream, uri) {
      const shelf = shelfOf(upstream);
      shelf.drops += 1;
      shelf.dropped.push(uri);
      if (shelf.dropped.length > REMEMBERED_DROPS) shelf.dropped.shift();
      return forget(shelf.keysByUri.get(uri) ?? []);
    },
  };

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

function index(shelf: Shelf, key: string, entry: Entry): void {
  shelf.keys.add(key);
  for (const uri of entry.uris) {
    const keys = shelf.keysByUri.get(uri);
    if (keys === undefined) shelf.keysByUri.set(uri, new Set([key]));
    else keys.add(key);
  }
}

function unindex(shelf: Shelf, key: string, entry: Entry): void {
  shelf.keys.delete(key);
  for (const uri of entry.uris) {
    const keys = shelf.keysByUri.get(uri);
    keys?.delete(key);
    if (keys?.size === 0) shelf.keysByUri.delete(uri);
  }
}
