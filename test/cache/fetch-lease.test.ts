/** One fetch for the fleet: the leases by which replicas wait for each other (law 27). */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Entered, FETCH_LEASE_MS } from '../../src/cache/fetch-lease.js';
import { closeAfterEach } from '../support/closing.js';
import { until } from '../support/gate.js';
import { type RedisServer, startRedis } from '../support/redis.js';
import { startRedisProxy } from '../support/redis-proxy.js';
import { type OpenTier, openTier, UPSTREAM } from '../support/redis-stores.js';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.close());
const closing = closeAfterEach();
let tiers: OpenTier[];
let prefix: string;

beforeEach(async () => {
  prefix = randomUUID();
  tiers = [];
  for (let i = 0; i < 3; i += 1) tiers.push(closing(await openTier({ url: redis.url, prefix })));
});

/** How many scripts Redis has run. */
async function evals(): Promise<number> {
  const stats = await redis.client.info('commandstats');
  return Number(/cmdstat_eval:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}

const PATIENCE_MS = 15_000;

function enter(index: number, key = 'k', options: { patienceMs?: number; signal?: AbortSignal } = {}) {
  const { patienceMs = PATIENCE_MS, signal = new AbortController().signal } = options;
  return tierAt(index).tier.fleet.enter(UPSTREAM.name, key, { patienceMs, signal });
}

function tierAt(index: number): OpenTier {
  const tier = tiers[index];
  if (tier === undefined) throw new Error('no such tier');
  return tier;
}

/** Every replica enters; resolves with the one that holds, and tells who has come out so far. */
async function enterAll() {
  const out: { readonly index: number; readonly entered: Entered }[] = [];
  const all = Promise.all(
    tiers.map(async (_tier, index) => {
      const entered = await enter(index);
      out.push({ index, entered });
      return entered;
    }),
  );
  await until(() => out.length > 0);
  const holder = out[0];
  if (holder === undefined) throw new Error('nobody holds');
  return { all, out, holder };
}

test('one holds, and the others wait until it says that it has fetched', async () => {
  const { all, out, holder } = await enterAll();
  expect(holder.entered).toMatchObject({ role: 'holder', waited: false });
  await redis.client.ping();
  expect(out).toHaveLength(1);
  await holder.entered.leave('fetched');
  const roles = (await all).map(({ role, waited }) => `${role} ${waited}`).sort();
  expect(roles).toEqual(['holder false', 'waiter true', 'waiter true']);
  expect(await enter(0)).toMatchObject({ role: 'holder', waited: false });
});

test('one that gave up hands on to another, and the rest wait for that one', async () => {
  const { all, out, holder } = await enterAll();
  await holder.entered.leave('abandoned');
  await until(() => out.length > 1);
  const next = out[1];
  expect(next?.entered).toMatchObject({ role: 'holder', waited: true });
  await redis.client.ping();
  expect(out).toHaveLength(2);
  await next?.entered.leave('fetched');
  expect((await all).filter(({ role }) => role === 'waiter')).toHaveLength(1);
});

test('one that died is waited for once, and no longer than its lease and a turn', async () => {
  const { out, holder } = await enterAll();
  const diedAt = performance.now();
  await tierAt(holder.index).close();
  await until(() => out.length > 1, FETCH_LEASE_MS + 2_000);
  expect(out[1]?.entered).toMatchObject({ role: 'holder', waited: true });
  expect(performance.now() - diedAt).toBeLessThan(FETCH_LEASE_MS + 1_500);
  await out[1]?.entered.leave('fetched');
  await until(() => out.length > 2);
  expect(out[2]?.entered.role).toBe('waiter');
});

test('a lease is renewed for as long as its holder fetches', async () => {
  const entered = await enter(0);
  const lease = tierAt(0).keys.fetchLease('k');
  const first = await redis.client.pttl(lease);
  let lowest = first;
  await until(async () => {
    const left = await redis.client.pttl(lease);
    const isRenewed = left > lowest;
    lowest = Math.min(lowest, left);
    return isRenewed;
  });
  await entered.leave('fetched');
  await until(async () => (await redis.client.exists(lease)) === 0);
  expect(first).toBeGreaterThan(0);
});

test('patience ends a wait: then one fetches alone', async () => {
  await enter(0);
  expect(await enter(1, 'k', { patienceMs: 0 })).toMatchObject({ role: 'alone', waited: false });
});

test('other keys are not waited for', async () => {
  await enter(0);
  expect(await enter(1, 'other')).toMatchObject({ role: 'holder', waited: false });
});

test('whoever leaves stops to wait', async () => {
  await enter(0);
  const leaving = new AbortController();
  const waiting = enter(1, 'k', { signal: leaving.signal });
  leaving.abort(new Error('left'));
  await expect(waiting).rejects.toThrow('left');
});

test('a fencing value guards a lease: one that ran out is not given up by who held it before', async () => {
  const entered = await enter(0);
  const lease = tierAt(0).keys.fetchLease('k');
  await redis.client.set(lease, 'another', 'PX', 10_000);
  await entered.leave('fetched');
  expect(await redis.client.get(lease)).toBe('another');
});

test('a lease of another type is no lease: everybody fetches, and Redis is tried again soon', async () => {
  await redis.client.rpush(tierAt(0).keys.fetchLease('k'), 'x');
  expect(await enter(0)).toMatchObject({ role: 'alone', waited: false });
  expect(await enter(1)).toMatchObject({ role: 'alone', waited: false });
});

test('a line that breaks ends every wait for word through it', async () => {
  const proxy = closing(await startRedisProxy(redis.port));
  const behind = closing(await openTier({ url: proxy.url, prefix }));
  await until(() => behind.states.at(-1)?.isUp === true);
  await enter(0);
  const before = await evals();
  const signal = new AbortController().signal;
  const waiting = behind.tier.fleet.enter(UPSTREAM.name, 'k', { patienceMs: PATIENCE_MS, signal });
  await until(async () => (await evals()) > before);
  proxy.cut();
  expect((await waiting).role).toBe('alone');
});

test('a lease that could not be given up while the line was cut is given up before Redis is used again', async () => {
  const proxy = closing(await startRedisProxy(redis.port));
  const behind = closing(await openTier({ url: proxy.url, prefix }));
  await until(() => behind.states.at(-1)?.isUp === true);
  const signal = new AbortController().signal;
  const entered = await behind.tier.fleet.enter(UPSTREAM.name, 'k', { patienceMs: PATIENCE_MS, signal });
  expect(entered.role).toBe('holder');
  const lease = behind.keys.fetchLease('k');
  await redis.client.pexpire(lease, 60_000);
  proxy.mode = { kind: 'gone' };
  await entered.leave('fetched');
  proxy.mode = { kind: 'pass' };
  await until(() => behind.states.length === 3);
  expect(behind.states.map(({ isUp }) => isUp)).toEqual([true, false, true]);
  expect(await redis.client.exists(lease)).toBe(0);
});

test('without Redis everybody fetches, at once', async () => {
  await tierAt(0).close();
  expect(await enter(0)).toMatchObject({ role: 'alone', waited: false });
});
