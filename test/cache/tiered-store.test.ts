/** Memory over Redis (design, laws 18-21, 25 and 26; C11, C62, C63). */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { digestOf } from '../../src/cache/redis-keys.js';
import { closeAfterEach } from '../support/closing.js';
import { until } from '../support/gate.js';
import { type RedisServer, startRedis } from '../support/redis.js';
import { type RedisProxy, startRedisProxy } from '../support/redis-proxy.js';
import { entryOf, type OpenTier, openTier, UPSTREAM } from '../support/redis-stores.js';
import { storeContract } from './store-contract.js';

const U = UPSTREAM.name;
const uri = 'file:///a';
const never = () => false;
const always = () => true;
let redis: RedisServer;
let proxy: RedisProxy;
beforeAll(async () => {
  redis = await startRedis();
  proxy = await startRedisProxy(redis.port);
});
afterAll(async () => {
  await proxy.close();
  await redis.close();
});

async function openBehind(mode: RedisProxy['mode']) {
  proxy.mode = { kind: 'pass' };
  const tier = await openTier({ url: proxy.url });
  proxy.mode = mode;
  return tier;
}
storeContract('the tiered store', () => openTier({ url: redis.url }));
storeContract('the tiered store behind a slow line', () => openBehind({ kind: 'slow', ms: 8 }));
storeContract('the tiered store behind a line that is too slow', () => openBehind({ kind: 'slow', ms: 90 }));
storeContract('the tiered store behind a silent line', () => openBehind({ kind: 'silent' }));
storeContract('the tiered store without Redis', () => openBehind({ kind: 'gone' }));
storeContract('the tiered store on a Redis that loads', () =>
  openBehind({ kind: 'error', message: 'LOADING Redis is loading the dataset in memory' }),
);

const closing = closeAfterEach();
let a: OpenTier;
let b: OpenTier;
beforeEach(async () => {
  proxy.mode = { kind: 'pass' };
  const prefix = `t${randomUUID()}`;
  a = closing(await openTier({ url: redis.url, prefix }));
  b = closing(await openTier({ url: proxy.url, prefix }));
  await until(() => isUp(b));
});

const isUp = (tier: OpenTier) => tier.states.at(-1)?.isUp === true;
const lookOne = async ({ store }: OpenTier, key: string) => (await store.look(U, [key], never)).entries[0];
const inMemory = async ({ memory }: OpenTier, key: string) => (await memory.look(U, [key], never)).entries[0];

async function put({ store, clock }: OpenTier, key: string, fields: Parameters<typeof entryOf>[1] = {}) {
  const entry = entryOf(clock, fields);
  expect(await store.write(U, key, entry, await store.stamp(U))).toBe('stored');
  return entry;
}

async function evals(): Promise<number> {
  const stats = await redis.client.info('commandstats');
  return Number(/cmdstat_eval:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}

async function loseLine(): Promise<void> {
  proxy.mode = { kind: 'gone' };
  await until(() => !isUp(b));
}

async function regainLine(): Promise<void> {
  proxy.mode = { kind: 'pass' };
  await until(() => isUp(b), 8_000);
}

describe('what one replica stores', () => {
  test('another finds in Redis, keeps in memory for the time that remains, and asks no more (C11)', async () => {
    const entry = await put(a, 'k', { lifetimeMs: 3_000 });
    const found = await lookOne(b, 'k');
    expect(found?.expiresAt).toBeLessThanOrEqual(entry.expiresAt + 1);
    expect(found?.expiresAt).toBeGreaterThan(entry.expiresAt - 500);
    expect(await inMemory(b, 'k')).toEqual(found);
    const before = await evals();
    expect((await b.store.look(U, ['k'], always)).entries[0]).toEqual(found);
    expect(await evals()).toBe(before);
  });

  test('is refused in both tiers if another flushed meanwhile, and that is known at once (law 20)', async () => {
    const stamp = await b.store.stamp(U);
    await a.store.flush(U, 'everywhere');
    expect(await b.store.write(U, 'k', entryOf(b.clock), stamp)).toBe('superseded');
    expect(b.store.isCurrent(U, stamp)).toBe(false);
    expect(await lookOne(a, 'k')).toBeUndefined();
    expect(await lookOne(b, 'k')).toBeUndefined();
  });

  test('is kept in memory alone while Redis is away', async () => {
    await loseLine();
    await put(b, 'k');
    expect(await lookOne(b, 'k')).toBeDefined();
    expect(await lookOne(a, 'k')).toBeUndefined();
  });
});

describe('a flush', () => {
  test('empties the memory of every replica (C63)', async () => {
    await put(a, 'k');
    await lookOne(b, 'k');
    expect(await inMemory(b, 'k')).toBeDefined();
    expect(await a.store.flush(U, 'everywhere')).toBe(1);
    await until(async () => (await inMemory(b, 'k')) === undefined);
    expect(await lookOne(b, 'k')).toBeUndefined();
  });

  test('of what this process holds leaves Redis and the others alone (law 21)', async () => {
    await put(a, 'k');
    await lookOne(b, 'k');
    await b.store.flush(U, 'here');
    expect(await inMemory(b, 'k')).toBeUndefined();
    expect(await lookOne(b, 'k')).toBeDefined();
    expect(await inMemory(a, 'k')).toBeDefined();
  });

  test('whose word was lost is noticed before memory is trusted with Redis again', async () => {
    await put(a, 'k');
    await lookOne(b, 'k');
    await loseLine();
    expect(await inMemory(b, 'k')).toBeDefined();
    await a.store.flush(U, 'everywhere');
    await regainLine();
    expect(await inMemory(b, 'k')).toBeUndefined();
    expect(await lookOne(b, 'k')).toBeUndefined();
  });

  test('that did not reach Redis is carried out there before it is trusted again', async () => {
    await put(a, 'k');
    await lookOne(b, 'k');
    await loseLine();
    expect(await b.store.flush(U, 'everywhere')).toBe(1);
    expect(await lookOne(a, 'k')).toBeDefined();
    proxy.mode = { kind: 'pass' };
    await until(async () => {
      expect(await lookOne(b, 'k')).toBeUndefined();
      return isUp(b);
    }, 8_000);
    await until(async () => (await lookOne(a, 'k')) === undefined);
  });

  test('that Redis refuses hides what is there from looks that were on their way already (C62)', async () => {
    await put(a, 'k');
    try {
      await redis.client.replicaof('127.0.0.1', '1');
      const flushed = b.store.flush(U, 'everywhere');
      const looks = await Promise.all([lookOne(b, 'k'), lookOne(b, 'k')]);
      await flushed;
      expect([...looks, await lookOne(b, 'k')]).toEqual([undefined, undefined, undefined]);
      expect(b.states.at(-1)).toEqual({ isUp: false, reason: 'READONLY' });
    } finally {
      await redis.client.replicaof('no', 'one');
    }
    await until(() => isUp(b), 8_000);
    expect(await lookOne(b, 'k')).toBeUndefined();
    await until(async () => (await lookOne(a, 'k')) === undefined);
  });

  test('lets no look bring back what it flushes, however closely they follow each other', async () => {
    for (let round = 0; round < 30; round += 1) {
      await put(a, 'k');
      const stamp = await b.store.stamp(U);
      const steps = Array.from({ length: 12 }, (_, i) =>
        i === 6 ? b.store.flush(U, 'everywhere') : hop(i).then(() => lookOne(b, 'k')),
      );
      await Promise.all(steps);
      expect(await inMemory(b, 'k')).toBeUndefined();
      expect(b.store.isCurrent(U, stamp)).toBe(false);
    }
  });
});

/** So many turns of the microtask queue. */
async function hop(turns: number): Promise<void> {
  for (let i = 0; i < turns; i += 1) await undefined;
}

describe('a drop', () => {
  test('of a resource travels to every replica (law 18)', async () => {
    await put(a, 'read', { method: 'resources/read', uris: [uri] });
    await put(a, 'list');
    await b.store.look(U, ['read', 'list'], never);
    await a.store.drop(U, { kind: 'resource', uri });
    await until(async () => (await inMemory(b, 'read')) === undefined);
    expect(await lookOne(b, 'read')).toBeUndefined();
    expect(await inMemory(b, 'list')).toBeDefined();
  });

  test('of a list that shows what is unknown travels as well', async () => {
    await put(a, 'list', { body: '"tools":[{"name":"gone"}]}' });
    await lookOne(b, 'list');
    const what = { kind: 'showing', method: 'tools/list', texts: ['"gone"'], authContext: 'x' } as const;
    expect(await a.store.drop(U, { ...what, texts: ['"other"'] })).toBe(0);
    expect(await a.store.drop(U, what)).toBe(1);
    await until(async () => (await inMemory(b, 'list')) === undefined);
    expect(await lookOne(b, 'list')).toBeUndefined();
  });

  test('whose word was lost is made up for', async () => {
    await put(a, 'read', { method: 'resources/read', uris: [uri] });
    await lookOne(b, 'read');
    await loseLine();
    await a.store.drop(U, { kind: 'resource', uri });
    await regainLine();
    expect(await inMemory(b, 'read')).toBeUndefined();
  });

  test('that did not reach Redis is made up for before it is trusted again', async () => {
    await put(a, 'read', { method: 'resources/read', uris: [uri] });
    await loseLine();
    await b.store.drop(U, { kind: 'resource', uri });
    await regainLine();
    expect(await lookOne(b, 'read')).toBeUndefined();
    await until(async () => (await lookOne(a, 'read')) === undefined);
  });
});

test('messages that are none, of nobody, or of a kind unknown harm nothing; a drop not understood is a flush', async () => {
  await put(a, 'k');
  const channel = `${a.keys.generation.split(':{')[0]}:changes`;
  const { tag } = a.keys;
  const harmless = ['', '{', 'null', '[]', '{"kind":"flush"}', `{"kind":"x","tag":"${tag}","by":"z"}`];
  for (const text of harmless) await redis.client.publish(channel, text);
  await redis.client.publish(
    channel,
    JSON.stringify({ kind: 'flush', tag: 'other', by: 'z', generation: '1' }),
  );
  await put(a, 'last', { uris: [uri] });
  expect(await inMemory(a, 'k')).toBeDefined();
  await redis.client.publish(channel, JSON.stringify({ kind: 'drop', tag, by: 'z', what: { kind: 'new' } }));
  await until(async () => (await inMemory(a, 'k')) === undefined);
  expect(await redis.client.exists(`${a.keys.entryPrefix}x:${digestOf('k')}`)).toBe(0);
});
