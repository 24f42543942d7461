import { describe, expect, test } from 'vitest';
import { createMemoryStore, REMEMBERED_DROPS } from '../../src/cache/memory-store.js';
import type { Store, WriteResult } from '../../src/cache/store.js';
import type { Entry } from '../../src/core/snapshot.js';
import { entryOf } from '../support/core.js';

const KB = 1_024;
const newStore = (maxBytes = 1_000 * KB, maxEntryBytes = maxBytes) =>
  createMemoryStore({ maxBytes, maxEntryBytes });

/** Stores an entry under a stamp of this moment. */
async function put(
  store: Store,
  upstream: string,
  key: string,
  entry: Entry = entryOf(10),
): Promise<WriteResult> {
  return store.write(upstream, key, entry, await store.stamp(upstream));
}

async function read(store: Store, upstream: string, keys: readonly string[]) {
  return (await store.look(upstream, keys, () => false)).entries;
}

function drop(store: Store, upstream: string, uri: string): Promise<number> {
  return store.drop(upstream, { kind: 'resource', uri });
}

/** Which of the keys have an entry. */
async function held(store: Store, upstream: string, keys: readonly string[]): Promise<string[]> {
  const found = await read(store, upstream, keys);
  return keys.filter((_key, i) => found[i] !== undefined);
}

const readOf = (...uris: string[]) => entryOf(10, { method: 'resources/read', uris });

describe('reading and writing', () => {
  test('entries come back as they were stored, in the order of the keys', async () => {
    const store = newStore();
    const [a, b] = [entryOf(1), entryOf(2)];
    expect(await put(store, 'u', 'a', a)).toBe('stored');
    expect(await put(store, 'u', 'b', b)).toBe('stored');
    const found = await read(store, 'u', ['b', 'nothing', 'a']);
    expect(found).toHaveLength(3);
    expect(found[0]).toBe(b);
    expect(found[1]).toBeUndefined();
    expect(found[2]).toBe(a);
  });

  test('a store judges no freshness: what is stale is read too', async () => {
    const store = newStore();
    await put(store, 'u', 'a', entryOf(1, { expiresAt: -1 }));
    expect(await held(store, 'u', ['a'])).toEqual(['a']);
  });

  test('a later entry takes the place of an earlier one', async () => {
    const store = newStore();
    const later = readOf('y');
    await put(store, 'u', 'a', readOf('x'));
    await put(store, 'u', 'a', later);
    expect((await read(store, 'u', ['a']))[0]).toBe(later);
    expect(await drop(store, 'u', 'x')).toBe(0);
    expect(await held(store, 'u', ['a'])).toEqual(['a']);
    expect(await drop(store, 'u', 'y')).toBe(1);
  });

  test.each(['__proto__', 'constructor', ''])('the name %j is one like any other (C39)', async (name) => {
    const store = newStore();
    await put(store, name, name, readOf(name));
    expect(await held(store, name, [name])).toEqual([name]);
    expect(await drop(store, name, name)).toBe(1);
    expect(await held(store, name, [name])).toEqual([]);
  });
});

describe('a flush (laws 18 and 20)', () => {
  test('it takes everything of its upstream and nothing of another', async () => {
    const store = newStore();
    for (const key of ['a', 'b', 'c']) await put(store, 'u', key, readOf(key));
    await put(store, 'v', 'd');
    expect(await store.flush('u', 'everywhere')).toBe(3);
    expect(await held(store, 'u', ['a', 'b', 'c'])).toEqual([]);
    expect(await held(store, 'v', ['d'])).toEqual(['d']);
    expect(await store.flush('u', 'everywhere')).toBe(0);
  });

  test('nothing fetched before it is stored after it', async () => {
    const store = newStore();
    const [before, other] = [await store.stamp('u'), await store.stamp('v')];
    expect(store.isCurrent('u', before)).toBe(true);
    await store.flush('u', 'everywhere');
    expect(store.isCurrent('u', before)).toBe(false);
    expect(await store.write('u', 'a', entryOf(1), before)).toBe('superseded');
    expect(await held(store, 'u', ['a'])).toEqual([]);
    expect(store.isCurrent('v', other)).toBe(true);
    expect(await store.write('v', 'b', entryOf(1), other)).toBe('stored');
  });

  test('a stamp from after it is good, and one from before stays void', async () => {
    const store = newStore();
    const before = await store.stamp('u');
    await store.flush('u', 'everywhere');
    await store.flush('u', 'everywhere');
    expect(await put(store, 'u', 'a')).toBe('stored');
    expect(await store.write('u', 'b', entryOf(1), before)).toBe('superseded');
    expect(await held(store, 'u', ['a', 'b'])).toEqual(['a']);
  });

  test('the generation has moved before the flush is awaited (law 19)', async () => {
    const store = newStore();
    await put(store, 'u', 'a');
    const before = await store.stamp('u');
    const flushed = store.flush('u', 'everywhere');
    expect(store.isCurrent('u', before)).toBe(false);
    await flushed;
  });

  test('it frees the room of what it took (law 22)', async () => {
    const store = newStore(100 * KB);
    await put(store, 'v', 'kept', entryOf(20 * KB));
    for (let round = 0; round < 5; round += 1) {
      for (const key of ['a', 'b', 'c']) expect(await put(store, 'u', key, entryOf(20 * KB))).toBe('stored');
      expect(await held(store, 'u', ['a', 'b', 'c'])).toHaveLength(3);
      expect(await store.flush('u', 'everywhere')).toBe(3);
    }
    expect(await held(store, 'v', ['kept'])).toEqual(['kept']);
  });
});

describe('a drop of one resource (law 18, C23)', () => {
  test('it takes the entries that show it and nothing else', async () => {
    const store = newStore();
    await put(store, 'u', 'read a', readOf('file:///a'));
    await put(store, 'u', 'read a, privately', readOf('file:///a'));
    await put(store, 'u', 'names a', readOf('file:///dir', 'file:///a'));
    await put(store, 'u', 'read b', readOf('file:///b'));
    await put(store, 'u', 'list', entryOf(10));
    await put(store, 'v', 'other', readOf('file:///a'));
    expect(await drop(store, 'u', 'file:///a')).toBe(3);
    const keys = ['read a', 'read a, privately', 'names a', 'read b', 'list'];
    expect(await held(store, 'u', keys)).toEqual(['read b', 'list']);
    expect(await held(store, 'v', ['other'])).toEqual(['other']);
    expect(await drop(store, 'u', 'file:///dir')).toBe(0);
  });

  test('what was read before it is not stored after it; the rest is', async () => {
    const store = newStore();
    const before = await store.stamp('u');
    await drop(store, 'u', 'a');
    expect(store.isCurrent('u', before)).toBe(true);
    expect(await store.write('u', '1', readOf('a'), before)).toBe('superseded');
    expect(await store.write('u', '2', readOf('x', 'a'), before)).toBe('superseded');
    expect(await store.write('u', '3', readOf('b'), before)).toBe('stored');
    expect(await store.write('u', '4', entryOf(1), before)).toBe('stored');
    expect(await put(store, 'u', '5', readOf('a'))).toBe('stored');
  });

  test('a stamp between two drops knows the later one only', async () => {
    const store = newStore();
    await drop(store, 'u', 'a');
    const between = await store.stamp('u');
    await drop(store, 'u', 'b');
    expect(await store.write('u', '1', readOf('a'), between)).toBe('stored');
    expect(await store.write('u', '2', readOf('b'), between)).toBe('superseded');
  });

  test('drops of one upstream are nothing to another', async () => {
    const store = newStore();
    const before = await store.stamp('v');
    await drop(store, 'u', 'a');
    expect(await store.write('v', '1', readOf('a'), before)).toBe('stored');
  });

  test('so many are remembered; what may have met a forgotten one is not stored', async () => {
    const store = newStore();
    const before = await store.stamp('u');
    await drop(store, 'u', 'a');
    for (let n = 1; n < REMEMBERED_DROPS; n += 1) await drop(store, 'u', `other ${n}`);
    expect(await store.write('u', '1', readOf('a'), before)).toBe('superseded');
    expect(await store.write('u', '2', readOf('b'), before)).toBe('stored');
    await drop(store, 'u', 'one more');
    expect(await store.write('u', '1', readOf('a'), before)).toBe('superseded');
    expect(await store.write('u', '3', readOf('b'), before)).toBe('superseded');
    expect(await store.write('u', '4', entryOf(1), before)).toBe('stored');
    expect(await put(store, 'u', '5', readOf('b'))).toBe('stored');
  });
});

describe('the byte budget (CACHE_MAX_BYTES)', () => {
  test('it evicts what was read longest ago', async () => {
    const store = newStore(100 * KB);
    for (const key of ['a', 'b', 'c']) await put(store, 'u', key, entryOf(30 * KB));
    await read(store, 'u', ['a']);
    expect(await put(store, 'v', 'd', entryOf(30 * KB))).toBe('stored');
    expect(await held(store, 'u', ['a', 'b', 'c'])).toEqual(['a', 'c']);
    expect(await held(store, 'v', ['d'])).toEqual(['d']);
  });

  test('what was evicted is in no index: neither flush nor drop meets it', async () => {
    const store = newStore(100 * KB);
    await put(store, 'u', 'a', entryOf(60 * KB, { uris: ['x'] }));
    await put(store, 'v', 'b', entryOf(60 * KB, { uris: ['x'] }));
    expect(await held(store, 'u', ['a'])).toEqual([]);
    expect(await drop(store, 'u', 'x')).toBe(0);
    expect(await store.flush('u', 'everywhere')).toBe(0);
    expect(await drop(store, 'v', 'x')).toBe(1);
  });

  test('values, keys, uris and their bookkeeping count', async () => {
    const fits = async (key: (n: number) => string, entry: (n: number) => Entry) => {
      const store = newStore(100 * KB);
      const keys = Array.from({ length: 200 }, (_, n) => key(n));
      for (const [n, name] of keys.entries()) await put(store, 'u', name, entry(n));
      return (await held(store, 'u', keys)).length;
    };
    const short = await fits(String, () => entryOf(1));
    expect(short).toBeLessThanOrEqual(100);
    expect(
      await fits(
        (n) => `${n}${'k'.repeat(10 * KB)}`,
        () => entryOf(1),
      ),
    ).toBeLessThan(10);
    expect(await fits(String, (n) => entryOf(1, { uris: [`${n}${'u'.repeat(10 * KB)}`] }))).toBeLessThan(10);
    expect(await fits(String, () => entryOf(10 * KB))).toBeLessThan(10);
    expect(short).toBeGreaterThan(50);
  });

  test('an entry beyond it is too large, and evicts nothing', async () => {
    const store = newStore(100 * KB);
    await put(store, 'u', 'a', entryOf(50 * KB));
    expect(await put(store, 'u', 'b', entryOf(101 * KB))).toBe('too-large');
    expect(await held(store, 'u', ['a', 'b'])).toEqual(['a']);
    expect(await store.flush('u', 'everywhere')).toBe(1);
  });

  test('a budget of 0 keeps nothing', async () => {
    const store = newStore(0, 10 * KB);
    expect(await put(store, 'u', 'a', entryOf(1))).toBe('too-large');
    expect(await held(store, 'u', ['a'])).toEqual([]);
  });
});

describe('the bound on one entry (CACHE_MAX_ENTRY_BYTES)', () => {
  test('a result of just so many bytes is kept, and a larger one is not', async () => {
    const store = newStore(1_000 * KB, 10 * KB);
    expect(await put(store, 'u', 'k'.repeat(43), entryOf(10 * KB))).toBe('stored');
    expect(await put(store, 'u', 'r'.repeat(43), entryOf(10 * KB, { uris: ['file:///a'] }))).toBe('stored');
    expect(await put(store, 'u', 'b', entryOf(10 * KB + 1))).toBe('too-large');
    expect(await held(store, 'u', ['b'])).toEqual([]);
  });

  test('what is overtaken is told as such even where it is too large', async () => {
    const store = newStore(1_000 * KB, 10 * KB);
    const before = await store.stamp('u');
    await store.flush('u', 'everywhere');
    expect(await store.write('u', 'b', entryOf(11 * KB), before)).toBe('superseded');
  });
});
