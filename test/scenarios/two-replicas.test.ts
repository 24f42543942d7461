import { afterEach, expect, test } from 'vitest';
import { rpc } from '../support/client.js';
import { until } from '../support/gate.js';
import { startGateway } from '../support/gateway.js';
import { startRedis } from '../support/redis.js';
import { goodResult, heldWatch, sendResult, startUpstream } from '../support/upstream.js';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

test('two replicas share a snapshot, and a change that one is told of is a change for both', async () => {
  const redis = await startRedis();
  closers.push(redis.close);
  const upstream = await startUpstream((req, res) => {
    const cursor = Number(req.json.params.cursor ?? 0);
    const tools = [{ name: `t${cursor}`, n: 1 }];
    sendResult(res, req, goodResult({ tools, ...(cursor < 2 && { nextCursor: String(cursor + 1) }) }));
  });
  closers.push(upstream.close);
  const watch = heldWatch();
  upstream.respondToWatch = watch.respond;
  const env = { REDIS_URL: redis.url };
  const a = await startGateway({ upstreams: { u: upstream.url }, env });
  closers.push(a.close);
  const b = await startGateway({ upstreams: { u: upstream.url }, env });
  closers.push(b.close);
  expect(watch.streams.size).toBe(1);
  const first = await rpc(a.endpoint('u'), 'tools/list');
  expect(first.cacheStatus).toContain('fwd=miss; stored');
  const second = await rpc(b.endpoint('u'), 'tools/list');
  expect(second.cacheStatus).toContain('hit');
  expect(second.json.result.tools).toEqual(first.json.result.tools);
  expect(upstream.count()).toBe(3);
  watch.notify('notifications/tools/list_changed');
  await until(() => a.logs.some((l) => l.msg === 'flushed' && l.reason === 'watch'));
  const third = await rpc(b.endpoint('u'), 'tools/list');
  expect(third.cacheStatus).toContain('stored');
  expect(upstream.count()).toBe(6);
  expect((await rpc(a.endpoint('u'), 'tools/list')).cacheStatus).toContain('hit');
  await a.close();
  await until(() => watch.streams.size === 1);
  expect((await rpc(b.endpoint('u'), 'tools/list')).cacheStatus).toContain('hit');
});
