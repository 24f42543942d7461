/** What ends a walk before its end, and what becomes of its first page: design, law 10; cases C02, C06, C10. */

import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { rpcRequest } from '../support/client.js';
import { createGate } from '../support/gate.js';
import type { RunningGateway } from '../support/gateway.js';
import { cursorOf, cursors, namesOf, page, paged, sixNames, threePages } from '../support/lists.js';
import { type Asked, useScenario } from '../support/scenario.js';
import { openStream } from '../support/stream.js';
import { beginEvents, type Respond, sendError, sendJson, sendResult } from '../support/upstream.js';

const start = useScenario();

/** How the first page stands on the wire; only its very bytes look like this. */
const FIRST = `{ "result" : {"tools":[{"name":"a"}, {"name":"b"}],"nextCursor":"c1","ttlMs":60000.0,
  "cacheScope":"public","tools2":1e2}, "id":1, "jsonrpc":"2.0" }`;

/** The first page as above, and what `later` says to every cursor. */
function thenAlways(later: Respond): Respond {
  return (request, res) => {
    if (cursorOf(request) === '-') sendJson(res, FIRST, 200, { 'x-first': 'yes' });
    else return later(request, res);
  };
}

function expectFirstPage(answer: Asked, detail: string): void {
  expect(answer.text).toBe(FIRST);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('x-first')).toBe('yes');
  expect(answer.cacheStatus).toBe(`mcp-cache-gateway; fwd=miss; detail=${detail}`);
}

function warnings(gateway: RunningGateway): { method: string; reason: string }[] {
  return gateway.logs.filter((line) => line.level === 40 && line.msg === 'not stored');
}

const always = (names: string[], next: string, fields = {}): Respond =>
  thenAlways((request, res) => sendResult(res, request, page(names, next, fields)));

/** Gives a cursor that never came before, for ever. */
const endless: Respond = (request, res) => sendResult(res, request, page([], `${cursorOf(request)}+`));

interface Case {
  readonly title: string;
  readonly respond: Respond;
  readonly env?: Record<string, string>;
  readonly asked: number;
  readonly detail: string;
}

const CASES: readonly Case[] = [
  { title: 'a cursor that never moves on', respond: always(['a'], 'c1'), asked: 2, detail: 'cursor-loop' },
  {
    title: 'the empty cursor for ever',
    respond: always(['a'], ''),
    asked: 3,
    detail: 'cursor-loop',
  },
  {
    title: 'a circle of cursors',
    respond: thenAlways((request, res) =>
      sendResult(res, request, page(['a'], cursorOf(request) === 'c1' ? 'c2' : 'c1')),
    ),
    asked: 3,
    detail: 'cursor-loop',
  },
  {
    title: 'one cursor in another spelling',
    respond: thenAlways((request, res) =>
      sendJson(
        res,
        `{"jsonrpc":"2.0","id":"${request.json.id}","result":{"tools":[],"nextCursor":"\\u00631","ttlMs":9999}}`,
      ),
    ),
    asked: 2,
    detail: 'cursor-loop',
  },
  {
    title: 'new cursors without end',
    respond: thenAlways(endless),
    env: { SNAPSHOT_MAX_PAGES: '5' },
    asked: 5,
    detail: 'max-pages',
  },
  {
    title: 'too many items',
    respond: thenAlways((request, res) =>
      sendResult(res, request, page(['c', 'd'], `${cursorOf(request)}+`)),
    ),
    env: { SNAPSHOT_MAX_ITEMS: '5' },
    asked: 3,
    detail: 'max-items',
  },
  {
    title: 'too many bytes',
    respond: thenAlways((request, res) =>
      sendResult(res, request, page(['x'.repeat(1_000)], `${cursorOf(request)}+`)),
    ),
    env: { CACHE_MAX_ENTRY_BYTES: '3000' },
    asked: 4,
    detail: 'too-large',
  },
  {
    title: 'one page that is too large by itself',
    respond: always(['x'.repeat(4_000)], 'c2'),
    env: { CACHE_MAX_ENTRY_BYTES: '3000' },
    asked: 2,
    detail: 'too-large',
  },
  {
    title: 'a page that is stale at once',
    respond: always(['a'], 'c2', { ttlMs: 0 }),
    asked: 2,
    detail: 'page-stale',
  },
  {
    title: 'a page without ttlMs',
    respond: always(['a'], 'c2', { ttlMs: undefined }),
    asked: 2,
    detail: 'page-stale',
  },
  {
    title: 'an error status',
    respond: thenAlways((request, res) => sendError(res, request, -32603, 500)),
    asked: 2,
    detail: 'page-failed',
  },
  {
    title: 'a JSON-RPC error',
    respond: thenAlways((request, res) => sendError(res, request, -32603)),
    asked: 2,
    detail: 'page-failed',
  },
  {
    title: 'a page of another shape',
    respond: thenAlways((request, res) => sendResult(res, request, { tools: {} })),
    asked: 2,
    detail: 'page-failed',
  },
  {
    title: 'a request for input',
    respond: thenAlways((request, res) =>
      sendResult(res, request, { ...page(['a'], 'c2'), resultType: 'input_required' }),
    ),
    asked: 2,
    detail: 'page-failed',
  },
  {
    title: 'a broken connection',
    respond: thenAlways((_request, res) => void res.destroy()),
    asked: 2,
    detail: 'page-failed',
  },
  {
    title: 'invalid params, twice',
    respond: thenAlways((request, res) => sendError(res, request, -32602)),
    asked: 4,
    detail: 'page-failed',
  },
];

/** Lists that are unsound; those that are merely too long are kept page by page (paged-lists.test.ts). */
const LIMITS: readonly string[] = ['max-pages', 'max-items', 'too-large'];

describe('a walk that does not reach the end (law 10)', () => {
  test.each(CASES.filter(({ detail }) => LIMITS.includes(detail)))(
    '$title: the first page goes out as it came, and the key is not walked again',
    async (one) => {
      const { list, gateway, clock } = await start(one.respond, one.env && { env: one.env });
      const first = await list();
      expectFirstPage(first, one.detail);
      expect(first.asked).toBe(one.asked);
      expect(warnings(gateway)).toMatchObject([{ upstream: 'u', method: 'tools/list', reason: one.detail }]);
      expect((await list()).json.result.nextCursor).toBe(first.json.result.nextCursor);
      expect((await list()).asked, 'the key is not walked again').toBeLessThanOrEqual(1);
      clock.advance(3_600_000);
      expect((await list()).asked, 'after a while it is').toBe(one.asked);
    },
  );

  test.each(CASES.filter(({ detail }) => !LIMITS.includes(detail)))(
    '$title: the first page goes out as it came, and nothing is stored',
    async (one) => {
      const { list, gateway, clock } = await start(one.respond, one.env && { env: one.env });
      const first = await list();
      expectFirstPage(first, one.detail);
      expect(first.asked).toBe(one.asked);
      expect(warnings(gateway)).toMatchObject([{ upstream: 'u', method: 'tools/list', reason: one.detail }]);

      const second = await list();
      expectFirstPage(second, 'uncacheable');
      expect(second.asked, 'the key is not walked again').toBe(1);

      clock.advance(3_600_000);
      expect((await list()).asked, 'after a while it is').toBe(one.asked);
    },
  );

  test('one key does not stand for another', async () => {
    const { list, ask } = await start((request, res) =>
      request.json.method === 'tools/list'
        ? sendResult(res, request, page(['a'], 'c1'))
        : sendResult(res, request, { prompts: [], ttlMs: 60_000, cacheScope: 'public' }),
    );
    await list();
    await ask('prompts/list');
    expect((await ask('prompts/list')).asked).toBe(0);
    expect((await list({ params: { x: 1 } })).asked, 'another list is walked').toBe(2);
  });

  test('endless upstreams do not hold up a healthy one (C02)', async () => {
    const gate = createGate();
    const { list, gateway, second } = await start(
      async (request, res) => {
        if (cursorOf(request).length > 10) await gate.pass();
        await endless(request, res);
      },
      { second: paged(threePages('t')) },
    );
    const hanging = list();
    await gate.arrivals(1);
    const healthy = await list({ endpoint: gateway.endpoint('u2') });
    expect(namesOf(healthy)).toEqual(sixNames('t'));
    expect(second.count()).toBe(3);
    gate.open();
    expect((await hanging).json.result.nextCursor).toBe('-+');
  });
});

describe('a walk that just fits', () => {
  test.each([{ SNAPSHOT_MAX_PAGES: '3' }, { SNAPSHOT_MAX_ITEMS: '6' }])(
    'is stored at the limit %o',
    async (env) => {
      const { list, upstream } = await start(paged(threePages('t')), { env });
      await list();
      expect(namesOf(await list())).toEqual(sixNames('t'));
      expect(upstream.count()).toBe(3);
    },
  );
});

describe('invalid params on a later page (law 10)', () => {
  test.each([200, 400])('with status %i restart the walk once', async (status) => {
    let refusals = 1;
    const { list, upstream } = await start((request, res) => {
      if (cursorOf(request) === 'c2' && refusals-- > 0) sendError(res, request, -32602, status);
      else paged(threePages('t'))(request, res);
    });
    expect(namesOf(await list())).toEqual(sixNames('t'));
    expect(cursors(upstream)).toEqual(['-', 'c1', 'c2', '-', 'c1', 'c2']);
    expect((await list()).asked).toBe(0);
  });

  test('on the first page they are the client’s', async () => {
    const { list } = await start((request, res) => sendError(res, request, -32602));
    expect(await list({ id: 'q' })).toMatchObject({ asked: 1, json: { id: 'q', error: { code: -32602 } } });
    expect((await list()).asked).toBe(1);
  });
});

describe('the deadline of a walk (law 10)', () => {
  const event = `: hello\n\ndata: ${JSON.stringify(JSON.parse(FIRST))}\n\n`;

  /** Lists until the second page is asked for, and lets the time run out. */
  async function outOfTime(first: Respond) {
    const gate = createGate();
    const respond: Respond = async (request, res) => {
      if (cursorOf(request) !== '-') await gate.pass();
      await first(request, res);
    };
    const scenario = await start(respond, { env: { UPSTREAM_U_TIMEOUT_MS: '5000' } });
    const { headers, body } = rpcRequest('tools/list');
    const init = { method: 'POST', headers, body };
    const opened = openStream(scenario.gateway.endpoint('u'), init);
    await gate.arrivals(1);
    scenario.clock.advance(5_000);
    return { ...scenario, stream: await opened, open: gate.open };
  }

  test('sends the first page out as it came', async () => {
    const { stream, list, open } = await outOfTime((_request, res) => sendJson(res, FIRST));
    expect(await stream.rest()).toBe(FIRST);
    expect(stream.headers.get('cache-status')).toBe('mcp-cache-gateway; fwd=miss; detail=deadline');
    open();
    expect((await list()).json.result.nextCursor, 'its first page stands for itself').toBe('c1');
  });

  test('sends the first page out as it came in an event stream', async () => {
    const { stream } = await outOfTime((_request, res) => {
      beginEvents(res);
      res.end(event);
    });
    expect(await stream.rest()).toBe(event);
  });

  test('sends the first page out of a stream that is still open, and leaves that open', async () => {
    const streams: ServerResponse[] = [];
    const { stream } = await outOfTime((_request, res) => {
      streams.push(res);
      beginEvents(res);
      res.write(event);
    });
    expect((await stream.next()).result).toMatchObject({ nextCursor: 'c1' });
    streams[0]?.end(': bye\n\n');
    expect(await stream.rest()).toBe(`${event}: bye\n\n`);
  });
});
