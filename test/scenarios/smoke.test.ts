import { afterEach, expect, test } from 'vitest';
import { rpc } from '../support/client.js';
import { until } from '../support/gate.js';
import { startGateway } from '../support/gateway.js';
import { goodResult, heldWatch, sendResult, startUpstream } from '../support/upstream.js';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

test('a list is walked once, answered from memory, and fetched again after a change', async () => {
  const upstream = await startUpstream((req, res) => {
    const cursor = Number(req.json.params.cursor ?? 0);
    sendResult(
      res,
      req,
      goodResult({
        tools: [{ name: `t${cursor}`, n: 1 }],
        ...(cursor < 2 && { nextCursor: String(cursor + 1) }),
      }),
    );
  });
  closers.push(upstream.close);
  const watch = heldWatch();
  upstream.respondToWatch = watch.respond;
  const gateway = await startGateway({ upstreams: { u: upstream.url } });
  closers.push(gateway.close);
  const first = await rpc(gateway.endpoint('u'), 'tools/list');
  expect(first.json.result.tools).toHaveLength(3);
  expect(first.cacheStatus).toContain('fwd=miss; stored');
  expect(upstream.count()).toBe(3);
  const second = await rpc(gateway.endpoint('u'), 'tools/list', { id: 'x' });
  expect(second.json.id).toBe('x');
  expect(second.cacheStatus).toContain('hit; ttl=59');
  expect(second.json.result.tools).toEqual(first.json.result.tools);
  expect(upstream.count()).toBe(3);
  watch.notify('notifications/tools/list_changed');
  await until(() => gateway.logs.filter((l) => l.msg === 'flushed').length > 1);
  const third = await rpc(gateway.endpoint('u'), 'tools/list');
  expect(third.cacheStatus).toContain('fwd=miss; stored');
  expect(upstream.count()).toBe(6);
});
