/** C64 and law 20: whatever stands where ours should stand is a miss, and replaced; a change never gets lost by it. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { digestOf } from '../../src/cache/redis-keys.js';
import { closeAfterEach } from '../support/closing.js';
import { type RedisServer, startRedis } from '../support/redis.js';
import { entryOf, type OpenRedisStore, openRedisStore, UPSTREAM } from '../support/redis-stores.js';

const U = UPSTREAM.name;
const uri = 'file:///a';
const never = () => false;
let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.close());

const closing = closeAfterEach();
let open: OpenRedisStore;
beforeEach(async () => {
  open = closing(await openRedisStore({ url: redis.url }));
});

async function lookOne(key: string) {
  return (await open.store.look(U, [key], never)).entries[0];
}

async function put(key: string, fields: Parameters<typeof entryOf>[1] = {}) {
  return open.store.write(U, key, entryOf(open.clock, fields), await open.store.stamp(U));
}

async function nameOf(key: string): Promise<string> {
  return `${open.keys.entryPrefix}${await redis.client.get(open.keys.generation)}:${digestOf(key)}`;
}

/** Writes something else in the place of a key's name. */
const SPOIL: Readonly<Record<string, (name: string) => Promise<unknown>>> = {
  text: (name) => redis.client.set(name, 'x'),
  emptiness: (name) => redis.client.set(name, ''),
  'a list': (name) => redis.client.del(name).then(() => redis.client.rpush(name, 'x')),
  'a hash': (name) => redis.client.del(name).then(() => redis.client.hset(name, 'x', 1)),
  'a set': (name) => redis.client.del(name).then(() => redis.client.sadd(name, 'x')),
};

describe.each(Object.entries(SPOIL))('%s in Redis', (_what, spoil) => {
  test('in the place of an entry is a miss, and replaced', async () => {
    await put('k');
    await spoil(await nameOf('k'));
    expect(await lookOne('k')).toBeUndefined();
    expect(await put('k')).toBe('stored');
    expect(await lookOne('k')).toBeDefined();
    expect(open.link.isUp).toBe(true);
  });

  test('in the place of the generation begins a new one, under which nothing old is found', async () => {
    await put('k');
    const stamp = await open.store.stamp(U);
    await spoil(open.keys.generation);
    expect(await lookOne('k')).toBeUndefined();
    expect(open.moved).toHaveLength(2);
    expect(await open.store.write(U, 'k', entryOf(open.clock), stamp)).toBe('superseded');
    await open.store.flush(U, 'everywhere');
    expect(await put('k')).toBe('stored');
    expect(open.link.isUp).toBe(true);
  });

  test('in the place of the drops lets no entry by that was dropped', async () => {
    for (const name of [open.keys.drops, open.keys.dropLog]) {
      const before = await open.store.stamp(U);
      await open.store.drop(U, { kind: 'resource', uri });
      await spoil(name);
      await open.store.drop(U, { kind: 'resource', uri: 'x:later' });
      expect(await open.store.write(U, 'k', entryOf(open.clock, { uris: [uri] }), before)).toBe('superseded');
      const between = await open.store.stamp(U);
      await open.store.drop(U, { kind: 'resource', uri });
      expect(await open.store.write(U, 'k', entryOf(open.clock, { uris: [uri] }), between)).toBe(
        'superseded',
      );
      expect(await put('k', { uris: [uri] })).toBe('stored');
      expect(open.link.isUp).toBe(true);
    }
  });

  test('in the place of an index is replaced by the next entry that stands in it', async () => {
    await put('k');
    const generation = await redis.client.get(open.keys.generation);
    await spoil(`${open.keys.indexPrefix}${generation}:resource-${digestOf(uri)}`);
    expect(await put('read', { uris: [uri] })).toBe('stored');
    expect(await open.store.drop(U, { kind: 'resource', uri })).toBe(1);
    expect(await lookOne('read')).toBeUndefined();
    expect(open.link.isUp).toBe(true);
  });
});

test('a strange value is told of, and a missing one is not', async () => {
  await lookOne('k');
  expect(open.strange).toEqual([]);
  await put('k');
  await redis.client.set(await nameOf('k'), 'x', 'PX', 1_000);
  await lookOne('k');
  expect(open.strange).toEqual([U]);
});

test('a value copied to the name of another key is none', async () => {
  await put('k');
  await put('other', { scope: 'private' });
  await redis.client.copy(await nameOf('other'), await nameOf('k'), 'REPLACE');
  expect(await lookOne('k')).toBeUndefined();
  expect(await lookOne('other')).toBeDefined();
});

test('a value whose time was taken away is none', async () => {
  await put('k');
  await redis.client.persist(await nameOf('k'));
  expect(await lookOne('k')).toBeUndefined();
});

test('everything but the bookkeeping of an upstream ends by itself', async () => {
  await put('k', { uris: [uri], scope: 'private' });
  await open.store.drop(U, { kind: 'resource', uri: 'x:other' });
  const names = await redis.client.keys(`${open.keys.generation.split(':{')[0]}:*`);
  const lasting = [];
  for (const name of names) if ((await redis.client.pttl(name)) === -1) lasting.push(name);
  expect(names).toHaveLength(6);
  expect(lasting.sort()).toEqual([open.keys.dropLog, open.keys.drops, open.keys.generation].sort());
});

test('another prefix, and another URL under the same name, share nothing', async () => {
  const prefix = open.keys.generation.split(':{')[0] ?? '';
  await put('k');
  const others = [
    { url: redis.url, prefix: `${prefix}x` },
    { url: redis.url, prefix, upstream: { ...UPSTREAM, url: 'http://other.test/mcp' } },
    { url: redis.url, prefix, upstream: { ...UPSTREAM, name: 'v' } },
  ];
  for (const options of others) {
    const other = closing(await openRedisStore(options));
    expect((await other.store.look(U, ['k'], never)).entries).toEqual([undefined]);
    await other.store.flush(U, 'everywhere');
  }
  const same = closing(await openRedisStore({ url: redis.url, prefix }));
  expect((await same.store.look(U, ['k'], never)).entries[0]).toBeDefined();
  expect(await lookOne('k')).toBeDefined();
});

test('an emptied Redis begins a generation that was never there before', async () => {
  await put('k');
  const stamp = await open.store.stamp(U);
  await redis.client.flushall();
  expect(await open.store.write(U, 'k', entryOf(open.clock), stamp)).toBe('superseded');
  expect(open.store.isCurrent(U, stamp)).toBe(false);
  const after = await open.store.stamp(U);
  expect(after.shared?.generation).not.toBe(stamp.shared?.generation);
  expect(await put('k')).toBe('stored');
});

test('no key and no value holds a resource or a credential in clear, other than what a caller may see', async () => {
  await put('secret-key', { uris: ['file:///secret'] });
  const names = await redis.client.keys('*');
  expect(names.length).toBeGreaterThan(0);
  expect(names.filter((name) => name.includes('secret'))).toEqual([]);
});
