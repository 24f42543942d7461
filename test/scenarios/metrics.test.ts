/** What a running gateway tells Prometheus, after traffic of every kind; and what a client cannot make it tell. */
import { expect, test } from 'vitest';
import { post, rpc } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { startReplica } from '../support/fleet.js';
import { createGate, until } from '../support/gate.js';
import type { RunningGateway } from '../support/gateway.js';
import { catalogue, paged, threePages } from '../support/lists.js';
import { moreSleepers, startPair, toolsResult } from '../support/pair.js';
import { promtool } from '../support/promtool.js';
import { type RedisServer, startRedis } from '../support/redis.js';
import { type Scrape, scrape } from '../support/scrape.js';
import { goodResult, type Respond, sendJson, sendResult, startUpstream } from '../support/upstream.js';

const closing = useClosers();

/** Waits for these numbers: a request is counted at its end, which its client may see a moment earlier. */
async function counts(gateway: RunningGateway, expected: Readonly<Record<string, number>>): Promise<Scrape> {
  const names = Object.keys(expected);
  const read = ({ value }: Scrape) => Object.fromEntries(names.map((name) => [name, value(name)]));
  let seen = await scrape(gateway);
  await until(async () => {
    seen = await scrape(gateway);
    return names.every((name) => seen.value(name) === expected[name]);
  }).catch(() => {});
  expect(read(seen)).toEqual(expected);
  return seen;
}

/** Three pages of tools, prompts without a lifetime, resources without an end, and one resource that fails. */
const everyKind: Respond = (request, res) => {
  const { method, params } = request.json ?? {};
  if (method === undefined) return sendJson(res, {}, 405);
  if (method === 'tools/list') return paged(threePages('t'))(request, res);
  if (method === 'prompts/list') {
    return sendResult(res, request, { ...goodResult({ prompts: [] }), ttlMs: 0 });
  }
  if (method === 'resources/list') {
    return sendResult(res, request, goodResult({ resources: [], nextCursor: 'round' }));
  }
  if (params.uri === 'file:///down') return void res.destroy();
  return sendResult(res, request, goodResult({ contents: [] }));
};

test('a scrape counts traffic of every kind, and Prometheus reads it without complaint', async () => {
  const { gateway, url, list, flush } = closing(await startPair(everyKind));
  for (let i = 0; i < 3; i += 1) await list();
  for (const method of ['prompts/list', 'resources/list']) await rpc(url, method);
  await rpc(url, 'resources/read', { params: { uri: 'file:///down' } });
  await rpc(url, 'tools/call', { params: { name: 'x' } });
  await list({ headers: { 'mcp-method': 'prompts/list' } });
  await fetch(url, { method: 'DELETE' });
  await flush();
  await list();
  await fetch(`${gateway.adminUrl}/cache/flush`, { method: 'POST' });
  await list();

  const { text, series, value } = await counts(gateway, {
    'requests_total{upstream="u",method="tools/list",outcome="hit"}': 2,
    'requests_total{upstream="u",method="tools/list",outcome="miss"}': 3,
    'requests_total{upstream="u",method="tools/list",outcome="refused"}': 1,
    'requests_total{upstream="u",method="prompts/list",outcome="miss"}': 1,
    'requests_total{upstream="u",method="resources/list",outcome="miss"}': 1,
    'requests_total{upstream="u",method="resources/read",outcome="error"}': 1,
    'requests_total{upstream="u",method="tools/call",outcome="bypass"}': 1,
    'requests_total{upstream="u",method="DELETE",outcome="bypass"}': 1,
    'bypass_total{upstream="u",reason="not-cacheable-method"}': 1,
    'not_stored_total{upstream="u",reason="zero-lifetime"}': 1,
    'not_stored_total{upstream="u",reason="cursor-loop"}': 1,
    'request_duration_seconds_count{upstream="u",outcome="hit"}': 2,
    'request_duration_seconds_count{upstream="u",outcome="miss"}': 5,
    'upstream_fetch_duration_seconds_count{upstream="u",end="answered"}': 12,
    'upstream_fetch_duration_seconds_count{upstream="u",end="failed"}': 1,
    'walks_total{upstream="u"}': 3,
    'walked_pages_total{upstream="u"}': 9,
    'walks_ended_total{upstream="u",reason="cursor-loop"}': 1,
    'flushes_total{upstream="u",reason="watch-connected"}': 1,
    'flushes_total{upstream="u",reason="watch"}': 1,
    'flushes_total{upstream="u",reason="operator"}': 1,
    'flushed_entries_total{upstream="u"}': 2,
    'entries{upstream="u"}': 1,
    'watch_connected{upstream="u"}': 1,
    evictions_total: 0,
  });
  expect(value('entries_bytes{upstream="u"}')).toBeGreaterThan(0);
  expect(series.get('nodejs_eventloop_lag_seconds')).toBeDefined();
  expect(series.get('process_resident_memory_bytes')).toBeGreaterThan(0);
  const { lines } = await promtool(['check', 'metrics'], text);
  // prom-client gives three of Node's own numbers names that Prometheus would not.
  expect(lines.filter((line) => !/^nodejs_active_\w+_total non-counter/.test(line))).toEqual([]);
});

test('a refetch that others waited for is told from a stale answer', async () => {
  let isDown = false;
  const gate = createGate();
  const { gateway, clock, list } = closing(
    await startPair(async (request, res) => {
      if (isDown) return sendJson(res, {}, 503);
      if (clock.now() >= 60_000) await gate.pass();
      sendResult(res, request, toolsResult(['a']));
    }),
  );
  await list();
  clock.advance(60_000);
  const more = moreSleepers(clock);
  const asked = [list(), list(), list()];
  await more(4);
  gate.open();
  await Promise.all(asked);
  await counts(gateway, {
    'requests_total{upstream="u",method="tools/list",outcome="stale"}': 3,
    'coalesced_total{upstream="u"}': 2,
    'stale_answers_total{upstream="u",reason="upstream-failed"}': 0,
  });
  isDown = true;
  clock.advance(60_000);
  for (let i = 0; i < 2; i += 1) await list();
  await counts(gateway, {
    'stale_answers_total{upstream="u",reason="upstream-failed"}': 1,
    'stale_answers_total{upstream="u",reason="backoff"}': 1,
  });
  const { upstreams } = JSON.parse(await (await fetch(`${gateway.adminUrl}/cache`)).text());
  expect(upstreams[0]).toMatchObject({ hits: 0, misses: 4, stale: 2, coalesced: 2 });
});

test('evictions are counted, and without Redis there is no number for it', async () => {
  const { gateway, url } = closing(
    await startPair(
      (request, res) =>
        sendResult(
          res,
          request,
          goodResult({ contents: [{ uri: request.json.params.uri, text: 'x'.repeat(3_000) }] }),
        ),
      { CACHE_MAX_BYTES: '12000' },
    ),
  );
  for (const uri of ['a:1', 'a:2', 'a:3']) await rpc(url, 'resources/read', { params: { uri } });
  const { value } = await counts(gateway, { evictions_total: 1, 'entries{upstream="u"}': 2 });
  expect(value('redis_up')).toBeUndefined();
});

/** The tokens of those who have asked Redis for the lease on a fetch, as they come. */
async function leaseAskers(redis: RedisServer): Promise<ReadonlySet<string>> {
  const monitor = await redis.client.monitor();
  closing({ close: async () => monitor.disconnect() });
  const tokens = new Set<string>();
  monitor.on('monitor', (_time, [, , , key, token]: string[]) => {
    if (key?.includes(':fetch:') === true && token !== undefined) tokens.add(token);
  });
  return tokens;
}

test('the state and the failures of Redis are told, and who waited for another replica', async () => {
  const redis = closing(await startRedis());
  const gate = createGate();
  const upstream = closing(
    await startUpstream(async (request, res) => {
      await gate.pass();
      sendResult(res, request, toolsResult(['a']));
    }),
  );
  const start = () => startReplica({ redisUrl: redis.url, upstreamUrl: upstream.url });
  const [one, two] = [closing(await start()), closing(await start())];
  for (const replica of [one, two]) {
    await counts(replica, { redis_up: 1, 'redis_failures_total{reason="away"}': 0 });
  }
  const askers = await leaseAskers(redis);
  const first = rpc(one.endpoint('u'), 'tools/list');
  await gate.arrivals(1);
  const second = rpc(two.endpoint('u'), 'tools/list');
  await until(() => askers.size === 2);
  gate.open();
  await Promise.all([first, second]);
  await counts(two, { 'lease_waits_total{upstream="u"}': 1 });
  await redis.kill();
  await counts(one, { redis_up: 0, 'redis_failures_total{reason="away"}': 1 });
});

test('a hostile client makes no new series', async () => {
  const answer = catalogue();
  const { gateway, url } = closing(
    await startPair((request, res) =>
      request.json === undefined ? sendJson(res, {}, 400) : answer(request, res),
    ),
  );
  const methods = ['evil/1', '__proto__', 'constructor', 'hit"} 9\nx{a="', 'tools/list\u0000', '%s'];
  const attack = async (round: string) => {
    for (const method of methods) {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: method + round, params: { _meta: {} } });
      await post(url, body, { 'content-type': 'application/json', 'mcp-protocol-version': round });
    }
    await post(url, `{"method":"${round}"`, {});
    await fetch(`${url}?x=${round}`, { method: 'DELETE' });
    await rpc(url, 'tools/list', { params: { cursor: round }, headers: { authorization: round } });
    await rpc(url, 'tools/list', { version: `2026-07-${round}` });
    await rpc(`${gateway.url}/mcp/${round}`, 'tools/list');
    await rpc(url, 'resources/read', { params: { uri: `file:///${round}` } });
  };
  const requests = ({ series }: Scrape) =>
    [...series.keys()].filter((name) => name.startsWith('mcp_cache_gateway_requests_total'));
  const sum = (seen: Scrape) =>
    requests(seen).reduce((total, name) => total + (seen.series.get(name) ?? 0), 0);
  const ATTACKS = methods.length + 5;
  const own = ({ series }: Scrape) => [...series.keys()].filter((name) => name.startsWith('mcp_')).sort();
  await attack('28');
  await until(async () => sum(await scrape(gateway)) === ATTACKS);
  const before = await scrape(gateway);
  for (const round of ['29', '30', '31']) await attack(round);
  await until(async () => sum(await scrape(gateway)) === 4 * ATTACKS);
  const after = await scrape(gateway);
  expect(own(after)).toEqual(own(before));
  expect(new Set(requests(after).map((name) => /method="([^"]*)"/.exec(name)?.[1]))).toEqual(
    new Set(['tools/list', 'resources/read', 'DELETE', 'other']),
  );
});
