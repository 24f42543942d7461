/** What a change flushes, and when: design, laws 18, 19, 22; cases C24, C25, C40. */
import { describe, expect, test } from 'vitest';
import { post, rpcRequest } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { flushes, watching } from '../support/flushes.js';
import { until } from '../support/gate.js';
import { type Coding, type HeldStreams, heldStream } from '../support/held-stream.js';
import { heldLegacyWatch } from '../support/legacy-watch.js';
import { CACHEABLE, catalogue, namesOf } from '../support/lists.js';
import { type Scenario, useScenario } from '../support/scenario.js';
import { type ClientStream, getStream, listen, openStream } from '../support/stream.js';
import { heldWatch, type Respond, sendResult } from '../support/upstream.js';

const start = useScenario();
const closing = useClosers();

const LIST_CHANGED = ['resources', 'tools', 'prompts'].map((kind) => `notifications/${kind}/list_changed`);
const TOOLS_CHANGED = 'notifications/tools/list_changed';

/** Asks each upstream for everything cacheable; resolves with how many requests each got for it. */
async function askAll({ ask, gateway }: Scenario, ...names: string[]): Promise<number[]> {
  const asked: number[] = [];
  for (const name of names) {
    let sum = 0;
    for (const [method, params] of CACHEABLE) {
      sum += (await ask(method, { params, endpoint: gateway.endpoint(name) })).asked;
    }
    asked.push(sum);
  }
  return asked;
}

const ALL = CACHEABLE.length;

describe('a notification on the watch (law 18, C25)', () => {
  test.each(LIST_CHANGED)('%s flushes everything of its upstream, and nothing of another', async (method) => {
    const watch = heldWatch();
    const scenario = await start(catalogue(), { watch: watch.respond, second: catalogue() });
    expect(await askAll(scenario, 'u', 'u2')).toEqual([ALL, ALL]);
    expect(await askAll(scenario, 'u', 'u2')).toEqual([0, 0]);
    watch.notify(method);
    await until(() => flushes(scenario.gateway, 'watch') === 1);
    expect(await askAll(scenario, 'u', 'u2')).toEqual([ALL, 0]);
    expect(await askAll(scenario, 'u', 'u2')).toEqual([0, 0]);
  });

  test('flushes every context, session and query, and frees them (law 22)', async () => {
    const watch = heldWatch();
    const { list, gateway } = await start(
      (request, res) => sendResult(res, request, { tools: [], ttlMs: 60_000, cacheScope: 'private' }),
      { watch: watch.respond },
    );
    const callers = [
      {},
      { headers: { authorization: 'Bearer a' } },
      { endpoint: `${gateway.endpoint('u')}?q=1` },
      { era: 'legacy' as const, headers: { 'mcp-session-id': 's1' } },
    ];
    for (const asked of [1, 0]) {
      for (const caller of callers) expect((await list(caller)).asked).toBe(asked);
    }
    watch.notify(TOOLS_CHANGED);
    watch.notify(TOOLS_CHANGED);
    await until(() => flushes(gateway, 'watch') === 2);
    const told = gateway.logs.filter((line) => line.msg === 'flushed' && line.reason === 'watch');
    expect(told.map((line) => line.entries)).toEqual([callers.length, 0]);
    for (const caller of callers) expect((await list(caller)).asked).toBe(1);
  });

  test('flushes all upstreams with LIST_CHANGED_FLUSH=all', async () => {
    const watch = heldWatch();
    const env = { LIST_CHANGED_FLUSH: 'all' };
    const scenario = await start(catalogue(), { watch: watch.respond, second: catalogue(), env });
    await askAll(scenario, 'u', 'u2');
    watch.notify(TOOLS_CHANGED);
    await until(() => flushes(scenario.gateway, 'watch') === 2);
    expect(await askAll(scenario, 'u', 'u2')).toEqual([ALL, ALL]);
  });

  test.each([
    ['of an unknown list', 'notifications/foo/list_changed'],
    ['of roots', 'notifications/roots/list_changed'],
    ['of progress', 'notifications/progress'],
    ['that merely speaks of a change', 'notifications/message'],
  ])('%s changes nothing', async (_title, method) => {
    const watch = heldWatch();
    const scenario = await start(catalogue(), { watch: watch.respond });
    await askAll(scenario, 'u');
    watch.notify(method, { data: TOOLS_CHANGED, method: TOOLS_CHANGED });
    // What comes behind it proves that it was read: notifications of one stream are taken in their order.
    watch.notify('notifications/resources/updated', { uri: 'file:///a' });
    const read = { params: { uri: 'file:///a' } };
    await until(async () => (await scenario.ask('resources/read', read)).asked === 1);
    expect(await askAll(scenario, 'u')).toEqual([0]);
  });

  test('on a legacy stream flushes as well', async () => {
    const watch = heldLegacyWatch();
    const scenario = await start(catalogue(), { watch: watch.respond });
    await watching(scenario.gateway);
    await askAll(scenario, 'u');
    expect(await askAll(scenario, 'u')).toEqual([0]);
    watch.notify(TOOLS_CHANGED);
    await until(() => flushes(scenario.gateway, 'watch') === 1);
    expect(await askAll(scenario, 'u')).toEqual([ALL]);
  });

  test('in a storm of two hundred causes no request at all, and the last one counts (C24)', async () => {
    const watch = heldWatch();
    let version = 'before';
    const { list, gateway, upstream } = await start(
      catalogue(() => version),
      { watch: watch.respond },
    );
    await list();
    for (let i = 0; i < 200; i += 1) watch.notify(TOOLS_CHANGED);
    version = 'after';
    watch.notify(TOOLS_CHANGED);
    await until(() => flushes(gateway, 'watch') === 201);
    expect(upstream.count()).toBe(1);
    expect(namesOf(await list())).toEqual(['after']);
    expect((await list()).asked).toBe(0);
  });
});

/** Streams of a client's own through the gateway. */
const STREAMS: readonly (readonly [string, (url: string) => Promise<ClientStream>])[] = [
  ['a listen stream', listen],
  ['a legacy GET stream', getStream],
  [
    'the answer to a tool call',
    (url) => openStream(url, { method: 'POST', ...rpcRequest('tools/call', { params: { name: 'x' } }) }),
  ],
];
const CODINGS: readonly Coding[] = ['identity', 'gzip', 'br'];
const TAPPED = STREAMS.flatMap(([title, open]) => CODINGS.map((coding) => ({ title, open, coding })));

describe('a notification that flows through to a client (laws 18 and 19)', () => {
  const env = { UPSTREAM_U_WATCH: 'off' };

  /** A catalogue that answers all else with a stream. */
  function withStream(stream: HeldStreams, version: () => string): Respond {
    const respond = catalogue(version);
    return (request, res) => {
      const isCacheable = CACHEABLE.some(([method]) => method === request.json?.method);
      return (isCacheable ? respond : stream.respond)(request, res);
    };
  }

  test.each(TAPPED)('$title ($coding): whoever lists upon it sees the change', async ({ open, coding }) => {
    const stream = heldStream(coding);
    let version = 'v1';
    const second = catalogue();
    const scenario = await start(
      withStream(stream, () => version),
      { env, second },
    );
    await askAll(scenario, 'u', 'u2');
    const client = closing(await open(scenario.gateway.endpoint('u')));
    for (const method of LIST_CHANGED) {
      version = method;
      await stream.send({ jsonrpc: '2.0', method });
      expect((await client.next()).method).toBe(method);
      expect(namesOf(await scenario.list())).toEqual([version]);
      expect(await askAll(scenario, 'u', 'u2')).toEqual([ALL - 1, 0]);
    }
    expect(flushes(scenario.gateway, 'tap')).toBe(LIST_CHANGED.length);
  });

  test('is recognised in any spelling, and its bytes arrive as they were sent', async () => {
    const stream = heldStream();
    const scenario = await start(
      withStream(stream, () => 'v1'),
      { env },
    );
    await askAll(scenario, 'u');
    const client = closing(await listen(scenario.gateway.endpoint('u')));
    const text = [
      ': comment\r\nid: 7\r\nretry: 3000\r\ndata:\r\n\r\n',
      'data:{"jsonrpc":"2.0",\r\ndata:  "method":"notifications\\/tools\\/list\\u005fchanged"}\r\n\r\n',
      'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n',
    ].join('');
    await stream.write(text);
    stream.end();
    expect(await client.rest()).toBe(text);
    expect(await askAll(scenario, 'u')).toEqual([ALL]);
  });

  test('flushes all upstreams with LIST_CHANGED_FLUSH=all', async () => {
    const stream = heldStream();
    const scenario = await start(
      withStream(stream, () => 'v1'),
      {
        env: { ...env, LIST_CHANGED_FLUSH: 'all' },
        second: catalogue(),
      },
    );
    await askAll(scenario, 'u', 'u2');
    const client = closing(await listen(scenario.gateway.endpoint('u')));
    await stream.send({ jsonrpc: '2.0', method: TOOLS_CHANGED });
    await client.next();
    expect(await askAll(scenario, 'u', 'u2')).toEqual([ALL, ALL]);
  });

  test.each(['modern', 'legacy'] as const)('sent by a %s client it flushes nothing (C40)', async (era) => {
    const scenario = await start(catalogue(), { env });
    await askAll(scenario, 'u');
    scenario.upstream.respond = (_request, res) => void res.writeHead(202).end();
    const { headers, body: request } = rpcRequest(TOOLS_CHANGED, { era });
    const body = request.replace('"id":1,', '');
    expect(JSON.parse(body)).not.toHaveProperty('id');
    const answer = await post(scenario.gateway.endpoint('u'), body, headers);
    expect([answer.status, answer.text, answer.headers.get('content-type')]).toEqual([202, '', null]);
    expect(scenario.upstream.requests.at(-1)?.body.toString()).toBe(body);
    expect(await askAll(scenario, 'u')).toEqual([0]);
    expect(flushes(scenario.gateway, 'tap')).toBe(0);
  });
});
