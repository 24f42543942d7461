/** One watch for the fleet (laws 21 and 28). */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { WATCH_LEASE_MS, WATCH_TURN_MS } from '../../src/app/watch-keeper.js';
import { keysOf } from '../../src/cache/redis-keys.js';
import { rpc } from '../support/client.js';
import { closeAfterEach } from '../support/closing.js';
import { buildDist, isRedisUsed, startProcess, startReplica } from '../support/fleet.js';
import { until } from '../support/gate.js';
import type { RunningGateway } from '../support/gateway.js';
import { type RedisServer, startRedis } from '../support/redis.js';
import { startRedisProxy } from '../support/redis-proxy.js';
import {
  goodResult,
  type HeldWatch,
  heldWatch,
  type ScriptedUpstream,
  sendResult,
  startUpstream,
} from '../support/upstream.js';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
  await buildDist();
}, 90_000);
afterAll(() => redis.close());

const closing = closeAfterEach();
let upstream: ScriptedUpstream;
let watch: HeldWatch;
let edition: number;
/** The fewest streams that stood at any moment since the first one did. */
let fewest: number;

beforeEach(async () => {
  await redis.client.flushall();
  edition = 1;
  fewest = Number.POSITIVE_INFINITY;
  upstream = closing(
    await startUpstream((req, res) => sendResult(res, req, goodResult({ tools: [{ name: 'a', edition }] }))),
  );
  const held = heldWatch();
  watch = held;
  upstream.respondToWatch = async (req, res) => {
    await held.respond(req, res);
    res.on('close', () => {
      if (watch === held) fewest = Math.min(fewest, held.streams.size);
    });
  };
});

const start = async (redisUrl = redis.url) =>
  closing(await startReplica({ redisUrl, upstreamUrl: upstream.url }));

async function startMany(count: number, redisUrl = redis.url): Promise<RunningGateway[]> {
  const fleet: RunningGateway[] = [];
  for (let i = 0; i < count; i += 1) fleet.push(await start(redisUrl));
  await until(() => fleet.every(isRedisUsed) && watch.streams.size === 1, 10_000);
  return fleet;
}

const list = (replica: RunningGateway) => rpc(replica.endpoint('u'), 'tools/list');
const holdsWatch = ({ logs }: RunningGateway) =>
  logs.filter(({ msg }) => msg === 'watch').at(-1)?.state === 'connected';
const editions = async (fleet: readonly RunningGateway[]) =>
  (await Promise.all(fleet.map(list))).map(({ json }) => json.result.tools[0].edition);
const generation = () => redis.client.get(keysOf('mcg', { name: 'u', url: upstream.url }).generation);

test('ten replicas are one stream, and a change costs them a few walks', { timeout: 40_000 }, async () => {
  const fleet = await startMany(10);
  expect(await editions(fleet)).toEqual(Array(10).fill(1));
  expect(upstream.count()).toBe(1);
  edition = 2;
  watch.notify('notifications/tools/list_changed');
  await until(async () => (await editions(fleet)).every((seen) => seen === 2));
  process.stdout.write(`a change cost ten replicas ${upstream.count() - 1} walks\n`);
  expect(upstream.count() - 1).toBeLessThanOrEqual(3);
  expect(watch.streams.size).toBe(1);
});

test('a rolling restart of ten replicas costs no walk, and is no gap', { timeout: 60_000 }, async () => {
  const fleet = await startMany(10);
  await list(fleet[0] ?? (await start()));
  const before = await generation();
  expect(upstream.count()).toBe(1);
  const olds = new Set(fleet);
  const news: RunningGateway[] = [];
  let handovers = 0;
  while (olds.size > 0) {
    const holder = [...olds].find(holdsWatch);
    const [old = holder] = holder === undefined ? olds : [holder];
    if (old === undefined) break;
    if (old === holder) handovers += 1;
    olds.delete(old);
    news.push(await start());
    await old.close();
    expect((await Promise.all(news.map(list))).every(({ cacheStatus }) => cacheStatus.includes('hit'))).toBe(
      true,
    );
  }
  expect(handovers).toBeGreaterThanOrEqual(1);
  expect(await editions(news)).toEqual(Array(10).fill(1));
  process.stdout.write(`${handovers} handovers cost ten replicas ${upstream.count() - 1} walks\n`);
  expect(upstream.count()).toBe(1);
  expect(await generation()).toBe(before);
  expect(fewest).toBeGreaterThanOrEqual(1);
  await until(() => watch.streams.size === 1);
  edition = 2;
  watch.notify('notifications/tools/list_changed');
  await until(async () => (await editions(news)).every((seen) => seen === 2));
});

test('a holder that is killed is replaced within 15 s, which flushes once', { timeout: 40_000 }, async () => {
  const holder = closing(await startProcess({ redisUrl: redis.url, upstreamUrl: upstream.url }));
  await until(() => watch.streams.size === 1);
  const fleet = [await start(), await start()];
  await until(() => fleet.every(isRedisUsed));
  expect(await editions(fleet)).toEqual([1, 1]);
  expect(watch.streams.size).toBe(1);
  const before = Number(await generation());
  const killedAt = performance.now();
  await holder.kill();
  await until(() => watch.streams.size === 0);
  edition = 2;
  await until(() => watch.streams.size === 1, 15_000);
  const afterMs = Math.round(performance.now() - killedAt);
  process.stdout.write(`a killed holder was replaced after ${afterMs} ms\n`);
  expect(afterMs).toBeLessThan(15_000);
  await until(async () => (await editions(fleet)).every((seen) => seen === 2));
  expect(Number(await generation())).toBe(before + 1);
  expect(WATCH_LEASE_MS + WATCH_TURN_MS * 1.25).toBeLessThan(15_000);
});

test('while Redis is away each watches for itself, and afterwards one for all', {
  timeout: 40_000,
}, async () => {
  const proxy = closing(await startRedisProxy(redis.port));
  const fleet = await startMany(3, proxy.url);
  expect(await editions(fleet)).toEqual([1, 1, 1]);
  proxy.mode = { kind: 'gone' };
  await until(() => watch.streams.size === 3, 10_000);
  edition = 2;
  watch.notify('notifications/tools/list_changed');
  await until(async () => (await editions(fleet)).every((seen) => seen === 2));
  proxy.mode = { kind: 'pass' };
  await until(() => fleet.every(isRedisUsed) && watch.streams.size === 1, 15_000);
  edition = 3;
  watch.notify('notifications/tools/list_changed');
  await until(async () => (await editions(fleet)).every((seen) => seen === 3));
});
