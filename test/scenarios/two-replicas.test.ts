/** Replicas that share one Redis (design, laws 14, 18-20, 26; C11, C60, C63). */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { rpc } from '../support/client.js';
import { closeAfterEach } from '../support/closing.js';
import { buildDist, redisStates, startProcess, startReplica } from '../support/fleet.js';
import { createGate, until } from '../support/gate.js';
import { type RedisServer, startRedis } from '../support/redis.js';
import {
  goodResult,
  type HeldWatch,
  heldWatch,
  type ScriptedUpstream,
  sendEvent,
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
let edition = 1;

beforeEach(async () => {
  await redis.client.flushall();
  edition = 1;
  upstream = closing(
    await startUpstream((req, res) => {
      const cursor = Number(req.json.params.cursor ?? 0);
      const tools = [{ name: `t${cursor}`, edition }];
      sendResult(res, req, goodResult({ tools, ...(cursor < 2 && { nextCursor: String(cursor + 1) }) }));
    }),
  );
  watch = heldWatch();
  upstream.respondToWatch = watch.respond;
});

async function replica(env: Readonly<Record<string, string>> = {}) {
  const gateway = closing(await startReplica({ redisUrl: redis.url, upstreamUrl: upstream.url, env }));
  return { ...gateway, endpoint: gateway.endpoint('u') };
}

const list = (at: { readonly endpoint: string }, headers: Record<string, string> = {}) =>
  rpc(at.endpoint, 'tools/list', { headers });

describe('two replicas', () => {
  test('share a snapshot, and a change that one is told of is a change for both', async () => {
    const a = await replica();
    const b = await replica();
    expect(watch.streams.size).toBe(1);
    const first = await list(a);
    expect(first.cacheStatus).toContain('fwd=miss; stored');
    const second = await list(b);
    expect(second.cacheStatus).toContain('hit');
    expect(second.json.result.tools).toEqual(first.json.result.tools);
    expect(upstream.count()).toBe(3);
    edition = 2;
    watch.notify('notifications/tools/list_changed');
    await until(() => a.logs.some((line) => line.msg === 'flushed' && line.reason === 'watch'));
    const third = await list(b);
    expect(third.json.result.tools[0].edition).toBe(2);
    expect(third.cacheStatus).toContain('stored');
    expect(upstream.count()).toBe(6);
    expect((await list(a)).cacheStatus).toContain('hit');
  });

  test('never stretch a lifetime from one to the other, and both end together (C11)', async () => {
    upstream.respond = (req, res) => sendResult(res, req, { ...goodResult({ tools: [] }), ttlMs: 1_500 });
    const a = await replica();
    const b = await replica();
    const startedAt = performance.now();
    await list(a);
    const ends = performance.now() + 1_500;
    let sawOld = false;
    await until(async () => {
      const askedAt = performance.now();
      const answer = await list(b);
      if (answer.cacheStatus.includes('hit')) {
        expect(answer.json.result.ttlMs).toBeLessThanOrEqual(ends - askedAt + 1);
        expect(answer.json.result.ttlMs).toBeGreaterThan(startedAt + 1_500 - performance.now() - 250);
        sawOld ||= answer.json.result.ttlMs < 700;
        return false;
      }
      expect(answer.cacheStatus).toMatch(/fwd=(miss|stale)/);
      return performance.now() >= startedAt + 1_250;
    });
    expect(sawOld).toBe(true);
    expect(upstream.count()).toBe(2);
  });

  test('keep what is private within its context, wherever it was fetched', async () => {
    upstream.respond = (req, res) =>
      sendResult(res, req, {
        ...goodResult({ tools: [{ name: req.headers.authorization?.replace('Bearer', 'for') }] }),
        cacheScope: 'private',
      });
    const a = await replica();
    const b = await replica();
    const mine = { authorization: 'Bearer one' };
    const theirs = { authorization: 'Bearer two' };
    expect((await list(a, mine)).json.result.tools[0].name).toBe('for one');
    expect((await list(b, theirs)).json.result.tools[0].name).toBe('for two');
    expect((await list(b)).json.result.tools[0].name).toBeUndefined();
    expect(upstream.count()).toBe(3);
    const shared = await list(b, mine);
    expect(shared.cacheStatus).toContain('hit');
    expect(shared.json.result).toMatchObject({ tools: [{ name: 'for one' }], cacheScope: 'private' });
    expect(upstream.count()).toBe(3);
    const names = await redis.client.keys('*');
    const entries = names.filter((name) => name.includes(':entry:'));
    const values = await Promise.all(entries.map((name) => redis.client.get(name)));
    expect(values.filter((value) => value?.includes('for '))).toHaveLength(2);
    expect([...names, ...values].join()).not.toContain('Bearer');
  });

  test('refuse what was fetched before a change, on whichever of them (law 20)', async () => {
    const gate = createGate();
    const a = await replica();
    const b = await replica();
    const answer = upstream.respond;
    upstream.respond = async (req, res) => {
      const asked = edition;
      await gate.pass();
      if (req.json.params.cursor !== undefined || asked !== 1) return answer(req, res);
      sendResult(res, req, goodResult({ tools: [{ name: 'old', edition: asked }] }));
    };
    const walking = list(b);
    await gate.arrivals(1);
    edition = 2;
    watch.notify('notifications/tools/list_changed');
    await until(() => a.logs.some((line) => line.msg === 'flushed' && line.reason === 'watch'));
    gate.open();
    expect((await walking).json.result.tools[0].edition).toBe(2);
    expect((await list(a)).json.result.tools[0].edition).toBe(2);
    expect((await list(b)).json.result.tools[0].edition).toBe(2);
  });

  test('pass on that a resource was updated (law 18)', async () => {
    const uri = 'file:///a';
    upstream.respond = (req, res) => {
      if (req.json.method === 'resources/read') {
        const contents = [{ uri: req.json.params.uri, text: String(edition) }];
        sendResult(res, req, goodResult({ contents }));
        return;
      }
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      sendEvent(res, { jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } });
      sendEvent(res, { jsonrpc: '2.0', id: req.json.id, result: { content: [] } });
      res.end();
    };
    const a = await replica();
    const b = await replica();
    const read = (at: typeof a, of = uri) => rpc(at.endpoint, 'resources/read', { params: { uri: of } });
    await read(a);
    await read(a, 'file:///other');
    expect((await read(b)).cacheStatus).toContain('hit');
    expect((await read(b, 'file:///other')).cacheStatus).toContain('hit');
    edition = 2;
    await rpc(a.endpoint, 'tools/call', { params: { name: 'touch' } });
    await until(async () => (await read(b)).json.result.contents[0].text === '2');
    expect((await read(a)).json.result.contents[0].text).toBe('2');
    expect((await read(b, 'file:///other')).cacheStatus).toContain('hit');
    expect(upstream.count('resources/read')).toBe(3);
  });

  test('share nothing under another prefix, or with another server of the same name (C64)', async () => {
    const a = await replica();
    const b = await replica({ REDIS_KEY_PREFIX: 'other' });
    await list(a);
    expect((await list(b)).cacheStatus).toContain('fwd=miss; stored');
    const second = closing(
      await startUpstream((req, res) => sendResult(res, req, goodResult({ tools: [{ name: 'second' }] }))),
    );
    const c = closing(await startReplica({ redisUrl: redis.url, upstreamUrl: second.url }));
    expect((await rpc(c.endpoint('u'), 'tools/list')).json.result.tools).toEqual([{ name: 'second' }]);
    expect((await list(a)).json.result.tools).toHaveLength(3);
  });
});

/** Every time that one of the replicas gave up on Redis. */
const puttingAway = (replicas: readonly Parameters<typeof redisStates>[0][]) =>
  replicas.flatMap(redisStates).filter((state) => state !== 'up');

test('three processes share one walk, and a change reaches them all (C63)', async () => {
  const start = async () => closing(await startProcess({ redisUrl: redis.url, upstreamUrl: upstream.url }));
  const replicas = [await start(), await start(), await start()];
  const [a, b, c] = replicas;
  if (a === undefined || b === undefined || c === undefined) throw new Error('three were started');
  await list(a);
  expect((await list(b)).cacheStatus).toContain('hit');
  expect((await list(c)).cacheStatus).toContain('hit');
  expect(upstream.count()).toBe(3);
  edition = 2;
  const before = [...puttingAway(replicas)];
  watch.notify('notifications/tools/list_changed');
  await Promise.all(
    replicas.map((at) => until(async () => (await list(at)).json.result.tools[0].edition === 2)),
  );
  // A replica that gave Redis up meanwhile, on a machine that was too slow for it, walked for itself (law 25).
  const walksAllowed = 1 + puttingAway(replicas).length - before.length;
  expect(upstream.count()).toBeLessThanOrEqual(3 + 3 * walksAllowed);
  const walked = upstream.count();
  expect(await Promise.all(replicas.map((at) => at.terminate()))).toEqual([0, 0, 0]);
  const d = await start();
  expect((await list(d)).json.result.tools[0].edition).toBe(2);
  expect(upstream.count()).toBe(walked);
});
