/** A whole process while Redis comes and goes, and what is owed to it (laws 20 and 25; C60, C62). */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { rpc } from '../support/client.js';
import { closeAfterEach } from '../support/closing.js';
import { buildDist, isRedisUsed, redisStates, startProcess, startReplica } from '../support/fleet.js';
import { createGate, until } from '../support/gate.js';
import { type RedisServer, startRedis } from '../support/redis.js';
import { type RedisProxy, startRedisProxy } from '../support/redis-proxy.js';
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
let proxy: RedisProxy;
let edition: number;

beforeEach(async () => {
  await redis.client.flushall();
  edition = 1;
  proxy = closing(await startRedisProxy(redis.port));
  upstream = closing(
    await startUpstream((req, res) => sendResult(res, req, goodResult({ tools: [{ name: 'a', edition }] }))),
  );
  watch = heldWatch();
  upstream.respondToWatch = watch.respond;
});

const replica = async (redisUrl: string) =>
  closing(await startReplica({ redisUrl, upstreamUrl: upstream.url }));
const list = async (endpoint: string) => (await rpc(endpoint, 'tools/list')).json.result.tools[0].edition;

test('a process lives on without Redis, serves, comes back to it, and ends when it is told', async () => {
  proxy.mode = { kind: 'gone' };
  const alone = closing(await startProcess({ redisUrl: proxy.url, upstreamUrl: upstream.url }));
  expect(await list(alone.endpoint)).toBe(1);
  expect(await list(alone.endpoint)).toBe(1);
  expect(upstream.count()).toBe(1);
  proxy.mode = { kind: 'pass' };
  await until(() => isRedisUsed(alone), 10_000);
  proxy.mode = { kind: 'silent' };
  await until(() => !isRedisUsed(alone), 10_000);
  expect(await list(alone.endpoint)).toBe(1);
  expect(redisStates(alone)).toHaveLength(3);
  expect(await alone.terminate()).toBe(0);
});

describe('a change while Redis is away', () => {
  test('that one replica heard of alone is one for the fleet before Redis is trusted again', async () => {
    const other = await replica(redis.url);
    const cut = await replica(proxy.url);
    await until(() => isRedisUsed(cut) && isRedisUsed(other) && watch.streams.size === 1);
    await list(other.endpoint('u'));
    await list(cut.endpoint('u'));
    expect(upstream.count()).toBe(1);
    proxy.mode = { kind: 'gone' };
    await until(() => !isRedisUsed(cut) && watch.streams.size === 2);
    // Only the stream of the one without Redis is told.
    edition = 2;
    const [, own] = watch.streams;
    const params = { _meta: {} };
    const text = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/tools/list_changed', params });
    own?.write(`event: message\ndata: ${text}\n\n`);
    await until(async () => (await list(cut.endpoint('u'))) === 2);
    expect(await list(other.endpoint('u'))).toBe(1);
    proxy.mode = { kind: 'pass' };
    await until(async () => {
      expect(await list(cut.endpoint('u'))).toBe(2);
      return isRedisUsed(cut);
    }, 10_000);
    await until(async () => (await list(other.endpoint('u'))) === 2);
  });

  test('discards what a replica fetches meanwhile under what it knew before (law 20)', async () => {
    const other = await replica(redis.url);
    const cut = await replica(proxy.url);
    await until(() => isRedisUsed(cut) && isRedisUsed(other) && watch.streams.size === 1);
    const gate = createGate();
    const answer = upstream.respond;
    upstream.respond = async (req, res) => {
      const asked = edition;
      await gate.pass();
      if (asked !== edition) sendResult(res, req, goodResult({ tools: [{ name: 'a', edition: asked }] }));
      else await answer(req, res);
    };
    const walking = list(cut.endpoint('u'));
    await gate.arrivals(1);
    proxy.mode = { kind: 'gone' };
    await until(() => !isRedisUsed(cut) && watch.streams.size === 2);
    edition = 2;
    watch.notify('notifications/tools/list_changed');
    await until(() => cut.logs.some(({ msg, reason }) => msg === 'flushed' && reason === 'watch'));
    gate.open();
    expect(await walking).toBe(2);
    proxy.mode = { kind: 'pass' };
    await until(() => isRedisUsed(cut), 10_000);
    expect(await list(other.endpoint('u'))).toBe(2);
    expect(await list(cut.endpoint('u'))).toBe(2);
  });
});

test('a notification goes on to its client though Redis takes no part in the flush (law 19)', async () => {
  const gateway = await replica(proxy.url);
  await until(() => isRedisUsed(gateway));
  await list(gateway.endpoint('u'));
  proxy.mode = { kind: 'silent' };
  edition = 2;
  upstream.respond = (req, res) => {
    if (req.json.method !== 'tools/call') {
      sendResult(res, req, goodResult({ tools: [{ name: 'a', edition }] }));
      return;
    }
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    const told = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };
    res.write(`data: ${JSON.stringify(told)}\n\n`);
    res.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id: req.json.id, result: { content: [] } })}\n\n`);
  };
  const startedAt = performance.now();
  const called = await rpc(gateway.endpoint('u'), 'tools/call', { params: { name: 'x' } });
  process.stdout.write(
    `a silent Redis held a notification up for ${Math.round(performance.now() - startedAt)} ms\n`,
  );
  expect(called.text).toContain('list_changed');
  expect(await list(gateway.endpoint('u'))).toBe(2);
  proxy.mode = { kind: 'pass' };
  await until(() => isRedisUsed(gateway), 15_000);
  expect(await list(gateway.endpoint('u'))).toBe(2);
});
