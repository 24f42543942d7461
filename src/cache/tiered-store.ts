/**
 * Owns: memory over the shared tier, and what is owed to it (design, laws 18–21, 25 and 26). What a tier cannot
 * do costs a miss, never an answer; a flush or drop that did not reach the shared tier is remembered and carried
 * out before anything there is trusted again.
 */
import type { Entry } from '../core/snapshot.js';
import type { MemoryStore } from './memory-store.js';
import type { RedisStore } from './redis-store.js';
import { type Drop, type Look, type Stamp, type Store, StoreUnavailableError } from './store.js';

export interface TieredStoreDeps {
  readonly memory: MemoryStore;
  readonly shared: RedisStore;
  readonly upstreams: readonly string[];
  /** The shared tier is not to be trusted until it has caught up. */
  readonly distrust: () => void;
}

export interface TieredStore extends Store {
  /** Carries out what is owed, and learns what was missed. Rejects where the shared tier does not answer. */
  reconcile(): Promise<void>;
  /** Another replica flushed. */
  flushedElsewhere(upstream: string, generation: string): void;
  /** Another replica dropped. */
  droppedElsewhere(upstream: string, what: Drop): void;
}

export function createTieredStore(deps: TieredStoreDeps): TieredStore {
  const { memory, shared } = deps;
  /**
   * Upstreams whose part of the shared tier has not heard of a flush or a drop. A drop is made up for by a flush:
   * it is rare, it needs no second way to be right, and what is owed stays as bounded as the configuration.
   */
  const owed = new Set<string>();

  function owe(upstream: string, error: unknown): void {
    if (!(error instanceof StoreUnavailableError)) throw error;
    owed.add(upstream);
    deps.distrust();
  }

  return {
    peek: (upstream, key) => memory.peek(upstream, key),

    async look(upstream, keys, suffices) {
      const local = await memory.look(upstream, keys, suffices);
      const known = shared.known(upstream);
      const stamp = known === undefined ? local.stamp : { ...local.stamp, shared: known };
      if (local.entries.some((entry) => entry !== undefined && suffices(entry)))
        return { entries: local.entries, stamp };
      const found = await shared.look(upstream, keys, suffices);
      if (found.stamp.shared === undefined) return local;
      return merge(upstream, keys, { local, found });
    },

    async stamp(upstream) {
      const { shared: sharedStamp } = await shared.stamp(upstream);
      const local = await memory.stamp(upstream);
      return sharedStamp === undefined ? local : { ...local, shared: sharedStamp };
    },

    isCurrent: (upstream, stamp) => memory.isCurrent(upstream, stamp),

    async write(upstream, key, entry, stamp) {
      const there = await shared.write(upstream, key, entry, stamp);
      if (there === 'superseded' || there === 'too-large') return there;
      const here = await memory.write(upstream, key, entry, stamp);
      return here === 'too-large' && there === 'stored' ? 'stored' : here;
    },

    async flush(upstream, reach) {
      // Sent before memory is emptied, in one go: no look slips in between and brings back what is flushed.
      const told =
        reach === 'everywhere'
          ? shared.flush(upstream, reach).catch((error) => owe(upstream, error))
          : undefined;
      const entries = await memory.flush(upstream, reach);
      await told;
      return entries;
    },

    async drop(upstream, what) {
      const told: Drop =
        what.kind === 'showing' ? { kind: 'keys', keys: memory.keysHit(upstream, what) } : what;
      // What no list of ours shows is no reason to trouble the others.
      if (told.kind === 'keys' && told.keys.length === 0) return 0;
      const there = shared.drop(upstream, told).catch((error) => owe(upstream, error));
      const entries = await memory.drop(upstream, told);
      return Math.max(entries, (await there) ?? 0);
    },

    async reconcile() {
      for (const upstream of [...owed]) {
        // A flush that comes while this one is on its way is owed anew.
        owed.delete(upstream);
        await shared.catchUpFlush(upstream).catch((error: unknown) => {
          owed.add(upstream);
          throw error;
        });
      }
      for (const upstream of deps.upstreams) await shared.refresh(upstream);
    },

    flushedElsewhere(upstream, generation) {
      // Where a look has told already, memory has been emptied, and holds what came after.
      if (shared.known(upstream)?.generation === generation) return;
      void memory.flush(upstream, 'here');
      shared.learn(upstream, generation);
    },

    droppedElsewhere(upstream, what) {
      void memory.drop(upstream, what);
    },
  };

  /** The better of both for each key; what only the shared tier had is kept in memory, for the time that remains. */
  async function merge(
    upstream: string,
    keys: readonly string[],
    { local, found }: { readonly local: Look; readonly found: Look },
  ): Promise<Look> {
    const sharedStamp = found.stamp.shared;
    const withShared = (stamp: Stamp): Stamp =>
      sharedStamp === undefined ? stamp : { ...stamp, shared: sharedStamp };
    if (!memory.isCurrent(upstream, local.stamp)) {
      // A flush came while Redis was asked: what it brought may be from before.
      return { entries: keys.map(() => undefined), stamp: withShared(await memory.stamp(upstream)) };
    }
    const entries: (Entry | undefined)[] = [];
    for (const [i, key] of keys.entries()) {
      const here = local.entries[i];
      const there = found.entries[i];
      const isBetter = there !== undefined && (here === undefined || there.expiresAt > here.expiresAt);
      const isKept = isBetter && (await memory.write(upstream, key, there, local.stamp)) !== 'superseded';
      entries.push(isKept ? there : here);
    }
    return { entries, stamp: withShared(local.stamp) };
  }
}
