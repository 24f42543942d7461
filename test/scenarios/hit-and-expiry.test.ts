/** How long an answer is kept, and what a hit says: design, laws 4–6, 12, 14, 15; cases C07, C12, C35. */
import { afterEach, describe, expect, test, vi } from 'vitest';
import { post, rpc, rpcRequest } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { until } from '../support/gate.js';
import { startGateway } from '../support/gateway.js';
import { CACHEABLE, catalogue, namesOf, page, paged, resultOf, tools } from '../support/lists.js';
import { useScenario } from '../support/scenario.js';
import { beginEvents, sendEvent, sendJson, sendResult, startUpstream } from '../support/upstream.js';

const start = useScenario();
const closing = useClosers();
afterEach(() => vi.restoreAllMocks());

const MINUTE = { '-': page(['a']) };

describe('a hit (laws 12 and 14)', () => {
  test.each(CACHEABLE)('answers %s without the upstream', async (method, params) => {
    const { ask } = await start(catalogue());
    const first = await ask(method, { params });
    const second = await ask(method, { params });
    expect([first.asked, second.asked]).toEqual([1, 0]);
    expect(first.cacheStatus).toBe('mcp-cache-gateway; fwd=miss; stored; ttl=60');
    const { ttlMs, cacheScope, ...rest } = first.json.result;
    expect(rest).toEqual(withoutHints(resultOf({ ...REQUEST, json: { method, params } }, 'v1')));
    expect(second.json.result).toEqual({ ...rest, ttlMs, cacheScope });
  });

  test('tells the whole milliseconds that remain, its age, and the same in Cache-Status', async () => {
    const { list, clock } = await start(paged(MINUTE));
    await list();
    clock.advance(12_345.6);
    const hit = await list();
    expect(hit).toMatchObject({ asked: 0, cacheStatus: 'mcp-cache-gateway; hit; ttl=47' });
    expect(hit.json.result).toMatchObject({ ttlMs: 47_654, cacheScope: 'public' });
    expect(hit.headers.get('age')).toBe('12');
  });

  test('lives to the last whole millisecond, and is fetched again from then on', async () => {
    const { list, clock } = await start(paged(MINUTE));
    await list();
    clock.advance(59_999);
    const last = await list();
    expect(last.asked).toBe(0);
    expect(last.json.result.ttlMs).toBe(1);
    clock.advance(0.5);
    const stale = await list();
    expect(stale.asked, 'a hit never says 0').toBe(1);
    expect(stale.cacheStatus).toBe('mcp-cache-gateway; fwd=stale; stored; ttl=60');
    expect(stale.headers.get('age')).toBeNull();
    expect((await list()).json.result.ttlMs).toBe(60_000);
  });

  test('replays nothing of the answer that filled it but its result (law 15)', async () => {
    const { list, upstream } = await start((request, res) =>
      sendResult(res, request, page(['a']), {
        'set-cookie': 'sid=first-caller',
        'mcp-session-id': 's-first',
        'x-request-id': 'r-first',
        etag: '"e"',
        'www-authenticate': 'Bearer',
        'cache-control': 'no-store',
      }),
    );
    const first = await list({ id: 'first' });
    expect(first.headers.get('set-cookie'), 'the first caller gets what is its own').toBe('sid=first-caller');
    expect(first.headers.get('mcp-session-id')).toBe('s-first');
    const hit = await list({ id: 'second' });
    expect(hit.asked).toBe(0);
    const allowed = [
      'age',
      'cache-status',
      'connection',
      'content-length',
      'content-type',
      'date',
      'keep-alive',
    ];
    expect(allowed).toEqual(expect.arrayContaining([...hit.headers.keys()]));
    expect(hit.text).not.toContain('first');
    expect(upstream.count()).toBe(1);
  });

  test('is plain JSON also where an event stream filled it, and messages before the answer went on', async () => {
    const { list } = await start((request, res) => {
      beginEvents(res);
      sendEvent(res, { jsonrpc: '2.0', method: 'notifications/progress', params: { progress: 1 } });
      sendEvent(res, { jsonrpc: '2.0', id: request.json.id, result: page(['a']) });
      res.end();
    });
    const first = await list();
    expect(first.headers.get('content-type')).toBe('text/event-stream');
    expect(first.text).toMatch(/notifications\/progress.*"id":1/s);
    const hit = await list({ id: 2 });
    expect(hit.asked).toBe(0);
    expect(hit.headers.get('content-type')).toBe('application/json');
    expect(hit.json).toMatchObject({ id: 2, result: { tools: tools('a') } });
    expect(hit.text).not.toContain('progress');
  });
});

describe('the id of the question (law 14, C35)', () => {
  const IDS = ['1', '"1"', '0', '""', '-5', '"ÿ"', '9007199254740991', '"\\u0000"'];

  test('is on a miss and on a hit alike, in its own type and digits', async () => {
    const { gateway, upstream } = await start(paged(MINUTE));
    for (const [i, idRaw] of IDS.entries()) {
      const answers = [await listWithId(gateway.endpoint('u'), idRaw, { extra: i })];
      answers.push(await listWithId(gateway.endpoint('u'), idRaw, { extra: i }));
      for (const { json } of answers) expect(json.id).toStrictEqual(JSON.parse(idRaw));
      expect(answers[1]?.cacheStatus).toContain('; hit; ');
    }
    expect(upstream.count()).toBe(IDS.length);
  });

  test.each(['9007199254740993', '1.5', 'null', 'true', '{}', undefined])(
    'where it is %s the cache has no part in the answer',
    async (idRaw) => {
      const { gateway, upstream, list } = await start((_request, res) =>
        sendJson(res, `{"jsonrpc":"2.0","id":${idRaw ?? 'null'},"result":${JSON.stringify(page(['u']))}}`),
      );
      const url = gateway.endpoint('u');
      const first = await listWithId(url, idRaw);
      const second = await listWithId(url, idRaw);
      expect(upstream.count()).toBe(2);
      expect(second.text, 'the digits as the upstream sent them').toBe(first.text);
      expect(second.cacheStatus).toContain('fwd=bypass');
      await list();
      expect(upstream.count(), 'nothing was stored').toBe(3);
    },
  );

  test('comes with its own content to fifty clients that all use 1', async () => {
    const { list, upstream } = await start((request, res) => {
      const token = String(request.headers.authorization);
      sendResult(res, request, page([token], undefined, { cacheScope: 'private' }));
    });
    const callers = Array.from({ length: 50 }, (_, i) => `Bearer ${i}`);
    for (const round of ['miss', 'hit']) {
      const answers = await Promise.all(callers.map((authorization) => list({ headers: { authorization } })));
      expect(answers.map(namesOf), round).toEqual(callers.map((token) => [token]));
      expect(answers.every(({ json }) => json.id === 1)).toBe(true);
      expect(upstream.count()).toBe(50);
    }
  });

  test('a thousand hits leave the stored list as it was', async () => {
    const { list, upstream } = await start(paged(MINUTE));
    await list();
    const before = (await list()).text;
    for (let round = 0; round < 20; round += 1) {
      await Promise.all(Array.from({ length: 50 }, (_, i) => list({ id: `${round}-${i}` })));
    }
    expect((await list()).text).toBe(before);
    expect(upstream.count()).toBe(1);
  });
});

describe('a lifetime of zero (law 5, C07)', () => {
  test.each(['0', '-0', '-1', '-9e15', '0.9', 'null', '"60000"', 'true', '1e999', '[60000]'])(
    'ttlMs %s is relayed byte for byte, not stored, and no further page is asked for',
    async (ttlMs) => {
      const result = `{"tools" : [{"name":"a"}],"nextCursor":"c1","cacheScope":"public","ttlMs":${ttlMs}}`;
      const { list, upstream } = await start((_request, res) =>
        sendJson(res, `{"id":1, "jsonrpc":"2.0","result":${result}}`),
      );
      for (const answer of [await list(), await list()]) {
        expect(answer.asked).toBe(1);
        expect(answer.text).toBe(`{"id":1, "jsonrpc":"2.0","result":${result}}`);
        expect(answer.cacheStatus).toBe('mcp-cache-gateway; fwd=miss; detail=zero-lifetime');
      }
      expect(upstream.requests.map((r) => r.json.params.cursor)).toEqual([undefined, undefined]);
    },
  );

  test.each(['modern', 'legacy'] as const)('absent hints stay absent to a %s client', async (era) => {
    const body = '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}';
    const { list } = await start((_request, res) => sendJson(res, body));
    expect(await list({ era })).toMatchObject({ asked: 1, text: body });
    expect(await list({ era })).toMatchObject({ asked: 1, text: body });
  });
});

describe('the operator’s bounds on a lifetime (law 5)', () => {
  test('a default gives a lifetime where the server sends none, and a legacy client is told no hint', async () => {
    const { list, clock } = await start(paged({ '-': { tools: tools('a') } }), {
      env: { UPSTREAM_U_TTL_MS: '5000' },
    });
    const first = await list({ era: 'legacy' });
    clock.advance(4_999);
    const hit = await list({ era: 'legacy' });
    expect([first.asked, hit.asked]).toEqual([1, 0]);
    expect(hit.json).toEqual({ jsonrpc: '2.0', id: 1, result: { tools: tools('a') } });
    clock.advance(1);
    expect((await list({ era: 'legacy' })).asked).toBe(1);
  });

  test('a floor raises 0 and nonsense, and does not lower what is above it', async () => {
    let ttlMs: unknown = 0;
    const { list, clock } = await start(
      (request, res) => sendResult(res, request, page(['a'], undefined, { ttlMs })),
      { env: { UPSTREAM_U_MIN_TTL_MS: '5000' } },
    );
    for (const [sent, granted] of [
      [0, 5_000],
      ['x', 5_000],
      [1_000, 5_000],
      [9_000, 9_000],
    ]) {
      ttlMs = sent;
      expect((await list()).asked).toBe(1);
      expect(await list()).toMatchObject({ asked: 0, json: { result: { ttlMs: granted } } });
      clock.advance(Number(granted));
    }
  });

  test('a ceiling cuts, and the caller that filled the entry is promised no more either', async () => {
    const { list, clock } = await start(paged(MINUTE), { env: { CACHE_MAX_TTL_MS: '5000' } });
    expect((await list()).json.result.ttlMs).toBe(5_000);
    expect((await list()).json.result.ttlMs).toBe(5_000);
    clock.advance(5_000);
    expect((await list()).asked).toBe(1);
  });

  test('the whole part of a fraction counts', async () => {
    const { list, clock } = await start(paged({ '-': page(['a'], undefined, { ttlMs: 1500.9 }) }));
    await list();
    expect((await list()).json.result.ttlMs).toBe(1_500);
    clock.advance(1_500);
    expect((await list()).asked).toBe(1);
  });
});

describe('time (law 6)', () => {
  test.each([-1, 1])('a wall clock that jumps by %i hour moves no entry (C12)', async (hours) => {
    const upstream = closing(await startUpstream(paged({ '-': page([], undefined, { ttlMs: 800 }) })));
    const gateway = closing(await startGateway({ upstreams: { u: upstream.url } }));
    const url = gateway.endpoint('u');
    const filledAt = performance.now();
    await rpc(url, 'tools/list');
    const { now } = Date;
    vi.spyOn(Date, 'now').mockImplementation(() => now() + hours * 3_600_000);
    expect((await rpc(url, 'tools/list')).cacheStatus).toContain('; hit; ');
    await until(async () => (await rpc(url, 'tools/list')).cacheStatus.includes('fwd=stale'));
    expect(performance.now() - filledAt).toBeGreaterThanOrEqual(800);
    expect(upstream.count()).toBe(2);
  });

  test('the clock starts when the answer was received, not when it was asked for', async () => {
    const { list, clock, upstream } = await start(async (request, res) => {
      clock.advance(20_000);
      await paged(MINUTE)(request, res);
    });
    await list();
    expect((await list()).json.result.ttlMs).toBe(60_000);
    clock.advance(59_999);
    expect((await list()).asked).toBe(0);
    expect(upstream.count()).toBe(1);
  });
});

const REQUEST = { httpMethod: 'POST', url: '/mcp', headers: {}, rawHeaders: [], body: Buffer.alloc(0) };

function withoutHints({ ttlMs: _, cacheScope: __, ...rest }: Record<string, unknown>) {
  return rest;
}

/** Lists under an id that is sent as it is written; `extra` sets the key apart. */
function listWithId(url: string, idRaw: string | undefined, extra: Record<string, unknown> = {}) {
  const { headers, body } = rpcRequest('tools/list', { id: '@', params: extra });
  return post(url, body.replace('"id":"@",', idRaw === undefined ? '' : `"id":${idRaw},`), headers);
}
