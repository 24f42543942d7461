/** Replicas that miss on the same key at once make one fetch between them (law 27). */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { FETCH_LEASE_MS } from '../../src/cache/fetch-lease.js';
import { type RpcAnswer, rpc } from '../support/client.js';
import { closeAfterEach } from '../support/closing.js';
import { buildDist, startProcess, startReplica } from '../support/fleet.js';
import { createGate, type Gate, until } from '../support/gate.js';
import type { RunningGateway } from '../support/gateway.js';
import { type RedisServer, startRedis } from '../support/redis.js';
import {
  goodResult,
  type ScriptedUpstream,
  type SeenRequest,
  sendError,
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
let gate: Gate;
let fields: (request: SeenRequest) => Record<string, unknown>;

beforeEach(async () => {
  await redis.client.flushall();
  gate = createGate();
  fields = () => ({});
  upstream = closing(
    await startUpstream(async (req, res) => {
      await gate.pass();
      const cursor = Number(req.json.params.cursor ?? 0);
      const page = { tools: [{ name: `t${cursor}` }], ...(cursor < 2 && { nextCursor: String(cursor + 1) }) };
      sendResult(res, req, { ...goodResult(page), ...fields(req) });
    }),
  );
});

async function replicas(count: number): Promise<RunningGateway[]> {
  const started: RunningGateway[] = [];
  for (let i = 0; i < count; i += 1) {
    started.push(closing(await startReplica({ redisUrl: redis.url, upstreamUrl: upstream.url })));
  }
  return started;
}

function ask(fleet: readonly RunningGateway[], count: number, headers: Record<string, string> = {}) {
  return Array.from({ length: count }, (_, i) => {
    const replica = fleet[i % fleet.length];
    if (replica === undefined) throw new Error('no replica');
    return rpc(replica.endpoint('u'), 'tools/list', { id: i, headers });
  });
}

/** How often a lease was asked for in Redis. */
async function leases(): Promise<number> {
  return (await redis.client.keys('*:fetch:*')).length;
}

const ok = (answers: readonly RpcAnswer[]) => answers.every(({ status }) => status === 200);

test('twenty requests on three replicas cost one walk', async () => {
  const asking = ask(await replicas(3), 20);
  await gate.arrivals(1);
  gate.open();
  const answers = await Promise.all(asking);
  expect(answers.map(({ json }) => json.result.tools.length)).toEqual(Array(20).fill(3));
  expect(answers.map(({ json }) => json.id)).toEqual(Array.from({ length: 20 }, (_, i) => i));
  expect(upstream.count()).toBe(3);
  await until(async () => (await leases()) === 0);
});

test('each context makes one fetch of what is private, and no context gets that of another', async () => {
  fields = (req) => ({
    cacheScope: 'private',
    tools: [{ name: req.headers.authorization }],
    nextCursor: undefined,
  });
  const fleet = await replicas(3);
  const asking = ['one', 'two'].map((name) => Promise.all(ask(fleet, 6, { authorization: name })));
  await gate.arrivals(2);
  gate.open();
  const [one = [], two = []] = await Promise.all(asking);
  expect(one.map(({ json }) => json.result.tools)).toEqual(Array(6).fill([{ name: 'one' }]));
  expect(two.map(({ json }) => json.result.tools)).toEqual(Array(6).fill([{ name: 'two' }]));
  expect(upstream.count()).toBe(2);
});

test('what is immediately stale is fetched by each, in parallel, once that is known', async () => {
  fields = () => ({ ttlMs: 0, nextCursor: undefined });
  const fleet = await replicas(3);
  gate.open();
  await Promise.all(ask(fleet, 3));
  gate = createGate();
  const before = upstream.count();
  const asking = ask(fleet, 9);
  await gate.arrivals(9);
  expect(await leases()).toBe(0);
  gate.open();
  expect(ok(await Promise.all(asking))).toBe(true);
  expect(upstream.count()).toBe(before + 9);
});

test('a cold list that proves immediately stale holds nobody up but for that one fetch', async () => {
  fields = () => ({ ttlMs: 0, nextCursor: undefined });
  const fleet = await replicas(3);
  const asking = ask(fleet, 9);
  await gate.arrivals(1);
  const first = gate;
  gate = createGate();
  first.open();
  await gate.arrivals(8);
  gate.open();
  expect(ok(await Promise.all(asking))).toBe(true);
  expect(upstream.count()).toBe(9);
});

test('an error of the upstream is told to each as it came', async () => {
  const respond = upstream.respond;
  upstream.respond = async (req, res) => {
    await gate.pass();
    sendError(res, req, -32603);
  };
  const fleet = await replicas(3);
  const asking = ask(fleet, 6);
  await gate.arrivals(1);
  gate.open();
  const answers = await Promise.all(asking);
  expect(answers.map(({ json }) => json.error.code)).toEqual(Array(6).fill(-32603));
  upstream.respond = respond;
  const after = await Promise.all(ask(fleet, 3));
  expect(after.every(({ json }) => json.result.tools.length > 0)).toBe(true);
});

test('a client that leaves in mid-fetch leaves the others waiting for one fetch, not for many', async () => {
  const fleet = await replicas(3);
  const [a, ...others] = fleet;
  if (a === undefined) throw new Error('three were started');
  const leaving = new AbortController();
  const left = rpc(a.endpoint('u'), 'tools/list', { signal: leaving.signal }).catch(() => 'left');
  await gate.arrivals(1);
  const asking = ask(others, 10);
  const evals = async () =>
    Number(/cmdstat_eval:calls=(\d+)/.exec(await redis.client.info('commandstats'))?.[1] ?? 0);
  const before = await evals();
  await until(async () => (await evals()) > before + 1);
  leaving.abort();
  expect(await left).toBe('left');
  await gate.arrivals(2);
  gate.open();
  const answers = await Promise.all(asking);
  expect(answers.map(({ json }) => json.result.tools.length)).toEqual(Array(10).fill(3));
  // The page that was given up, and one walk.
  expect(upstream.count()).toBe(4);
});

test('a replica killed in mid-fetch costs the others one bounded wait', async () => {
  const options = { redisUrl: redis.url, upstreamUrl: upstream.url };
  const doomed = closing(await startProcess(options));
  const fleet = await replicas(2);
  const lost = rpc(doomed.endpoint, 'tools/list').catch(() => 'lost');
  await gate.arrivals(1);
  const killedAt = performance.now();
  await doomed.kill();
  expect(await lost).toBe('lost');
  const asking = ask(fleet, 10);
  await gate.arrivals(2);
  const waitedMs = performance.now() - killedAt;
  gate.open();
  const answers = await Promise.all(asking);
  process.stdout.write(`the others waited ${Math.round(waitedMs)} ms for a dead replica\n`);
  expect(waitedMs).toBeLessThan(FETCH_LEASE_MS + 1_500);
  expect(answers.map(({ json }) => json.result.tools.length)).toEqual(Array(10).fill(3));
  expect(upstream.count()).toBe(4);
});
