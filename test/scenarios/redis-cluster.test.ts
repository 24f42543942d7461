/** All of it on a real cluster of three nodes (C63): scripts, key layout, messages, leases, and the loss of a node. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { storeContract } from '../cache/store-contract.js';
import { rpc } from '../support/client.js';
import { closeAfterEach } from '../support/closing.js';
import { isRedisUsed } from '../support/fleet.js';
import { createGate, until } from '../support/gate.js';
import { startGateway } from '../support/gateway.js';
import { type RedisCluster, startCluster } from '../support/redis-cluster.js';
import { entryOf, openRedisStore, openTier, UPSTREAM } from '../support/redis-stores.js';
import { goodResult, heldWatch, sendResult, startUpstream } from '../support/upstream.js';

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startCluster();
}, 60_000);
afterAll(() => cluster.close());

const closing = closeAfterEach();

storeContract('the Redis store on a cluster', () => openRedisStore({ url: cluster.url }));
storeContract('the tiered store on a cluster', () => openTier({ url: cluster.url }));

describe('on a cluster', () => {
  test('all of one upstream lies on one node, and upstreams are spread over the nodes', async () => {
    const slots = new Set<number>();
    for (let i = 0; i < 12; i += 1) {
      const upstream = { name: `u${i}`, url: `http://u${i}.test/mcp` };
      const { store, keys, clock } = closing(
        await openRedisStore({ url: cluster.url, prefix: `p${i}`, upstream }),
      );
      const stamp = await store.stamp(upstream.name);
      await store.drop(upstream.name, { kind: 'resource', uri: 'x:other' });
      const entry = entryOf(clock, { uris: ['x:a'], scope: 'private' });
      expect(await store.write(upstream.name, 'k', entry, stamp)).toBe('stored');
      const names = await cluster.keys(`p${i}:*`);
      expect(names).toHaveLength(6);
      const node = cluster.nodes[0];
      const places = await Promise.all(names.map((name) => node?.client.call('CLUSTER', 'KEYSLOT', name)));
      expect(new Set(places).size).toBe(1);
      expect(names.every((name) => name.includes(`{${keys.tag}}`))).toBe(true);
      slots.add(Math.floor((Number(places[0]) * 3) / 16_384));
    }
    expect(slots.size).toBeGreaterThan(1);
  });

  test('a flush and a drop reach every replica, whichever node it listens to', async () => {
    const prefix = 'reach';
    const [a, ...others] = await Promise.all(
      Array.from({ length: 4 }, async () => closing(await openTier({ url: cluster.url, prefix }))),
    );
    if (a === undefined) throw new Error('four were opened');
    const U = UPSTREAM.name;
    const inMemory = async () =>
      (await Promise.all(others.map(({ memory }) => memory.look(U, ['k'], () => false)))).filter(
        ({ entries }) => entries[0] !== undefined,
      ).length;
    const fill = async () => {
      const entry = entryOf(a.clock, { uris: ['x:a'] });
      expect(await a.store.write(U, 'k', entry, await a.store.stamp(U))).toBe('stored');
      await Promise.all(others.map(({ store }) => store.look(U, ['k'], () => false)));
      expect(await inMemory()).toBe(3);
    };
    await fill();
    await a.store.flush(U, 'everywhere');
    await until(async () => (await inMemory()) === 0);
    await fill();
    await a.store.drop(U, { kind: 'resource', uri: 'x:a' });
    await until(async () => (await inMemory()) === 0);
  });

  test('gateways share a walk, a fetch, a change and the watch, and hand the watch over', async () => {
    let edition = 1;
    const gate = createGate();
    const upstream = closing(
      await startUpstream(async (req, res) => {
        await gate.pass();
        sendResult(res, req, goodResult({ tools: [{ name: 'a', edition }] }));
      }),
    );
    const watch = heldWatch();
    let fewest = Number.POSITIVE_INFINITY;
    upstream.respondToWatch = async (req, res) => {
      await watch.respond(req, res);
      res.on('close', () => {
        fewest = Math.min(fewest, watch.streams.size);
      });
    };
    const start = async () =>
      closing(await startGateway({ upstreams: { u: upstream.url }, env: { REDIS_URL: cluster.url } }));
    const fleet = [await start(), await start(), await start()];
    await until(() => fleet.every(isRedisUsed) && watch.streams.size === 1, 10_000);
    const list = (gateway: (typeof fleet)[number]) => rpc(gateway.endpoint('u'), 'tools/list');
    const asking = [...fleet, ...fleet, ...fleet].map(list);
    await gate.arrivals(1);
    gate.open();
    const answers = await Promise.all(asking);
    expect(answers.map(({ json }) => json.result.tools[0].edition)).toEqual(Array(9).fill(1));
    expect(upstream.count()).toBe(1);
    edition = 2;
    watch.notify('notifications/tools/list_changed');
    await until(async () =>
      (await Promise.all(fleet.map(list))).every(({ json }) => json.result.tools[0].edition === 2),
    );
    const walks = upstream.count();
    expect(walks).toBeLessThanOrEqual(4);
    const holder = fleet.find(
      ({ logs }) => logs.filter(({ msg }) => msg === 'watch').at(-1)?.state === 'connected',
    );
    fewest = Number.POSITIVE_INFINITY;
    await holder?.close();
    await until(() => watch.streams.size === 1 && fewest === 1);
    const rest = fleet.filter((gateway) => gateway !== holder);
    expect((await Promise.all(rest.map(list))).every(({ cacheStatus }) => cacheStatus.includes('hit'))).toBe(
      true,
    );
    expect(upstream.count()).toBe(walks);
  });

  test('a node that falls silent fails no request, and what was flushed meanwhile stays flushed', {
    timeout: 60_000,
  }, async () => {
    let edition = 1;
    const upstream = closing(
      await startUpstream((req, res) =>
        sendResult(res, req, goodResult({ tools: [{ name: 'a', edition }] })),
      ),
    );
    const watch = heldWatch();
    upstream.respondToWatch = watch.respond;
    const env = { REDIS_URL: cluster.url };
    const gateway = closing(await startGateway({ upstreams: { u: upstream.url }, env }));
    await until(() => isRedisUsed(gateway) && watch.streams.size === 1, 10_000);
    const list = () => rpc(gateway.endpoint('u'), 'tools/list');
    await list();
    try {
      for (const node of cluster.nodes) node.pause();
      edition = 2;
      watch.notify('notifications/tools/list_changed');
      await until(async () => (await list()).json.result.tools[0].edition === 2);
      await until(() => !isRedisUsed(gateway), 10_000);
    } finally {
      for (const node of cluster.nodes) node.resume();
    }
    await until(() => isRedisUsed(gateway), 30_000);
    expect((await list()).json.result.tools[0].edition).toBe(2);
    const second = closing(await startGateway({ upstreams: { u: upstream.url }, env }));
    expect((await rpc(second.endpoint('u'), 'tools/list')).json.result.tools[0].edition).toBe(2);
  });
});
