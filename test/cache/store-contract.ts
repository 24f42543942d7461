/** What every tier must do (src/cache/store.ts; design, laws 18, 20 and 26), whichever it is and however it fares. */
import { describe, expect, test } from 'vitest';
import { type Drop, type Store, StoreUnavailableError } from '../../src/cache/store.js';
import type { Clock } from '../../src/clock.js';
import type { Entry } from '../../src/core/snapshot.js';
import { closeAfterEach } from '../support/closing.js';
import { entryOf, MAX_ENTRY_BYTES } from '../support/redis-stores.js';

export interface OpenStore {
  readonly store: Store;
  readonly clock: Clock;
  close(): unknown;
}

const U = 'u';
const never = () => false;
const uri = 'file:///a';

async function lookOne(store: Store, key: string): Promise<Entry | undefined> {
  return (await store.look(U, [key], never)).entries[0];
}

async function put(store: Store, key: string, entry: Entry): Promise<void> {
  expect(await store.write(U, key, entry, await store.stamp(U))).toBe('stored');
}

export function storeContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`${name} keeps the contract of a store`, () => {
    const closing = closeAfterEach();
    const opened = async () => closing(await open());

    test('what was never written is not there', async () => {
      const { store } = await opened();
      const { entries } = await store.look(U, ['a', 'b'], never);
      expect(entries).toEqual([undefined, undefined]);
    });

    test('entries come back whole, in the order of the keys, and a later write replaces an earlier', async () => {
      const { store, clock } = await opened();
      const one = entryOf(clock, {
        body: '"tools":[1.10,"é\\u0000"],"x":12345678901234567890}',
        uris: [uri],
      });
      const two = entryOf(clock, { scope: 'private', authContext: 'context-b', seed: 'other', items: 7 });
      await put(store, 'one', entryOf(clock));
      await put(store, 'one', one);
      await put(store, 'two', two);
      const { entries } = await store.look(U, ['two', 'none', 'one'], never);
      const timeless = (entry: Entry | undefined) => ({ ...entry, receivedAt: 0, expiresAt: 0 });
      expect(entries[1]).toBeUndefined();
      expect(timeless(entries[0])).toEqual(timeless(two));
      expect(timeless(entries[2])).toEqual(timeless(one));
    });

    test('a lifetime is never stretched: what comes back expires no later and is no younger', async () => {
      const { store, clock } = await opened();
      const entry = entryOf(clock, { lifetimeMs: 30_000 });
      await put(store, 'k', entry);
      const found = await lookOne(store, 'k');
      expect(found?.expiresAt).toBeLessThanOrEqual(entry.expiresAt + 1);
      expect(found?.expiresAt).toBeGreaterThan(entry.expiresAt - 2_000);
      expect(found?.receivedAt).toBeLessThanOrEqual(entry.receivedAt + 1);
    });

    test('what is stale already is kept as stale', async () => {
      const { store, clock } = await opened();
      await put(store, 'k', entryOf(clock, { lifetimeMs: -50 }));
      const found = await lookOne(store, 'k');
      expect(found?.expiresAt).toBeLessThanOrEqual(clock.now());
    });

    test('after a flush nothing is there, and what was fetched before it is refused (law 20)', async () => {
      const { store, clock } = await opened();
      const stamp = await store.stamp(U);
      await put(store, 'k', entryOf(clock));
      expect(store.isCurrent(U, stamp)).toBe(true);
      await store.flush(U, 'everywhere');
      expect(store.isCurrent(U, stamp)).toBe(false);
      expect(await lookOne(store, 'k')).toBeUndefined();
      expect(await store.write(U, 'k', entryOf(clock), stamp)).toBe('superseded');
      expect(await lookOne(store, 'k')).toBeUndefined();
      await put(store, 'k', entryOf(clock));
      expect(await lookOne(store, 'k')).toBeDefined();
    });

    test('the stamp of a look guards a write like any other', async () => {
      const { store, clock } = await opened();
      const { stamp } = await store.look(U, ['k'], never);
      await store.flush(U, 'everywhere');
      expect(await store.write(U, 'k', entryOf(clock), stamp)).toBe('superseded');
      const after = await store.look(U, ['k'], never);
      expect(await store.write(U, 'k', entryOf(clock), after.stamp)).toBe('stored');
    });

    test('a dropped resource takes with it the entries that show it, and no others (law 18)', async () => {
      const { store, clock } = await opened();
      await put(store, 'shows', entryOf(clock, { method: 'resources/read', uris: ['x:other', uri] }));
      await put(store, 'other', entryOf(clock, { method: 'resources/read', uris: ['x:other'] }));
      await put(store, 'list', entryOf(clock));
      expect(await store.drop(U, { kind: 'resource', uri })).toBe(1);
      const { entries } = await store.look(U, ['shows', 'other', 'list'], never);
      expect(entries.map((entry) => entry !== undefined)).toEqual([false, true, true]);
    });

    test('what was fetched before a drop and shows the resource is refused, all else is stored', async () => {
      const { store, clock } = await opened();
      const stamp = await store.stamp(U);
      await store.drop(U, { kind: 'resource', uri });
      await store.drop(U, { kind: 'resource', uri: 'x:third' });
      expect(store.isCurrent(U, stamp)).toBe(true);
      expect(await store.write(U, 'a', entryOf(clock, { uris: ['x:b', uri] }), stamp)).toBe('superseded');
      expect(await store.write(U, 'b', entryOf(clock, { uris: ['x:b'] }), stamp)).toBe('stored');
      expect(await store.write(U, 'c', entryOf(clock), stamp)).toBe('stored');
      expect(await lookOne(store, 'a')).toBeUndefined();
      await put(store, 'a', entryOf(clock, { uris: [uri] }));
    });

    test('more drops than are remembered refuse whatever shows a resource', async () => {
      const { store, clock } = await opened();
      const stamp = await store.stamp(U);
      for (let i = 0; i < 1_025; i += 41) {
        const uris = Array.from({ length: 41 }, (_, n) => `x:${i + n}`);
        await Promise.all(uris.map((dropped) => store.drop(U, { kind: 'resource', uri: dropped })));
      }
      expect(await store.write(U, 'a', entryOf(clock, { uris: [uri] }), stamp)).toBe('superseded');
      expect(await store.write(U, 'c', entryOf(clock), stamp)).toBe('stored');
    });

    test('a dropped context loses its private entries alone (law 17)', async () => {
      const { store, clock } = await opened();
      const inContext = { scope: 'private', authContext: 'context-a' } as const;
      await put(store, 'mine', entryOf(clock, inContext));
      await put(store, 'theirs', entryOf(clock, { scope: 'private', authContext: 'context-b' }));
      await put(store, 'public', entryOf(clock, { authContext: 'context-a' }));
      expect(await store.drop(U, { kind: 'context', authContext: 'context-a' })).toBe(1);
      const { entries } = await store.look(U, ['mine', 'theirs', 'public'], never);
      expect(entries.map((entry) => entry !== undefined)).toEqual([false, true, true]);
    });

    test('entries dropped by their keys are gone', async () => {
      const { store, clock } = await opened();
      await put(store, 'a', entryOf(clock));
      await put(store, 'b', entryOf(clock));
      expect(await store.drop(U, { kind: 'keys', keys: ['a', 'none'] })).toBe(1);
      const { entries } = await store.look(U, ['a', 'b'], never);
      expect(entries.map((entry) => entry !== undefined)).toEqual([false, true]);
    });

    test('what is too large is not kept', async () => {
      const { store, clock } = await opened();
      const body = `"tools":["${'x'.repeat(MAX_ENTRY_BYTES)}"]}`;
      expect(await store.write(U, 'k', entryOf(clock, { body }), await store.stamp(U))).toBe('too-large');
      expect(await lookOne(store, 'k')).toBeUndefined();
    });
  });
}

/** What a tier does that cannot be asked (law 25): nothing is there, nothing waits, and only a change is told. */
export function unavailableContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`${name} is unavailable without harm`, () => {
    const closing = closeAfterEach();
    const opened = async () => closing(await open());
    const drops: readonly Drop[] = [
      { kind: 'resource', uri },
      { kind: 'context', authContext: 'context-a' },
      { kind: 'keys', keys: ['k'] },
    ];

    test('a look finds nothing, a stamp knows nothing, a write is not kept', async () => {
      const { store, clock } = await opened();
      const look = await store.look(U, ['k'], never);
      expect(look.entries).toEqual([undefined]);
      expect(look.stamp.shared).toBeUndefined();
      const stamp = await store.stamp(U);
      expect(stamp.shared).toBeUndefined();
      expect(await store.write(U, 'k', entryOf(clock), stamp)).toBe('unavailable');
    });

    test('a flush and a drop say that they could not be done', async () => {
      const { store } = await opened();
      await expect(store.flush(U, 'everywhere')).rejects.toThrow(StoreUnavailableError);
      for (const what of drops) await expect(store.drop(U, what)).rejects.toThrow(StoreUnavailableError);
    });
  });
}
