/** Walks to the end of a list: design, laws 6, 9, 12; cases C03, C05, C06, C10. */
import { describe, expect, test } from 'vitest';
import {
  cursorOf,
  cursors,
  namesOf,
  page,
  paged,
  sendResultAsEvents,
  sixNames,
  threePages,
  tools,
} from '../support/lists.js';
import { useScenario } from '../support/scenario.js';
import { sendJson, sendResult } from '../support/upstream.js';

const start = useScenario();

describe('a walk (law 9)', () => {
  test('follows the cursors to the end, and the whole list is one answer', async () => {
    const { list, upstream } = await start(paged(threePages('t')));
    const first = await list();
    expect(cursors(upstream)).toEqual(['-', 'c1', 'c2']);
    expect(namesOf(first)).toEqual(sixNames('t'));
    expect(first.json.result).not.toHaveProperty('nextCursor');
    expect(first.cacheStatus).toBe('mcp-cache-gateway; fwd=miss; stored; ttl=60');
    const hit = await list();
    expect(hit.asked).toBe(0);
    expect(hit.json).toEqual(first.json);
  });

  test('asks for every page with the headers and the params of the caller', async () => {
    const { list, upstream } = await start(paged(threePages('t')));
    const meta = { 'example.com/trace': { b: 1, a: [2] }, progressToken: 'p' };
    const headers = { authorization: 'Bearer a', 'x-custom': 'c', 'accept-language': 'de' };
    await list({ id: 7, headers, meta, params: { filter: 'x' } });
    const [first, ...later] = upstream.requests;
    expect(first?.json.params).toMatchObject({ filter: 'x', _meta: meta });
    expect(later).toHaveLength(2);
    for (const request of later) {
      expect(request.headers).toMatchObject(headers);
      const { cursor: _, ...params } = request.json.params;
      expect(params).toEqual(first?.json.params);
      expect(request.url).toBe(first?.url);
    }
    const ids = upstream.requests.map((request) => request.json.id);
    expect(new Set(ids).size, 'no id comes twice').toBe(3);
  });

  test('walks for a legacy session under that session', async () => {
    const { list, upstream } = await start(paged(threePages('t')));
    await list({ era: 'legacy', headers: { 'mcp-session-id': 's1' } });
    expect(upstream.requests.map((r) => r.headers['mcp-session-id'])).toEqual(['s1', 's1', 's1']);
    expect(upstream.requests.map((r) => r.headers['mcp-protocol-version'])).toEqual(
      Array.from({ length: 3 }, () => '2025-11-25'),
    );
  });

  test('ends at a null, and asks for nothing behind it (C03)', async () => {
    const { list, upstream } = await start(paged({ '-': page(['a'], null) }));
    expect(namesOf(await list())).toEqual(['a']);
    const hit = await list();
    expect(hit.json.result).not.toHaveProperty('nextCursor');
    expect(upstream.count()).toBe(1);
  });

  test('takes the empty string for a cursor', async () => {
    const { list, upstream } = await start((request, res) =>
      sendResult(res, request, request.json.params.cursor === '' ? page(['b']) : page(['a'], '')),
    );
    expect(namesOf(await list())).toEqual(['a', 'b']);
    expect((await list()).asked).toBe(0);
    expect(upstream.count()).toBe(2);
  });

  test('sends a cursor on byte for byte, whatever it is made of', async () => {
    const cursor = '"a+b/c==\\u00e9 \\ud83d\\ude00\\/%2F\\""';
    const { list, upstream } = await start((request, res) => {
      const next = cursorOf(request) === '-' ? `,"nextCursor":${cursor}` : '';
      const result = `{"tools":[],"ttlMs":60000,"cacheScope":"public"${next}}`;
      sendJson(res, `{"jsonrpc":"2.0","id":${JSON.stringify(request.json.id)},"result":${result}}`);
    });
    await list();
    expect(upstream.count()).toBe(2);
    expect(upstream.requests[1]?.body.toString()).toContain(`"cursor":${cursor}`);
  });

  test('reads pages that come as event streams', async () => {
    const { list, upstream } = await start(paged(threePages('t'), sendResultAsEvents));
    await list();
    const hit = await list();
    expect(hit.asked).toBe(0);
    expect(namesOf(hit)).toEqual(sixNames('t'));
    expect(upstream.count()).toBe(3);
  });

  test.each([
    ['prompts/list', 'prompts'],
    ['resources/list', 'resources'],
    ['resources/templates/list', 'resourceTemplates'],
  ])('walks %s as well', async (method, field) => {
    const { ask, upstream } = await start((request, res) => {
      const cursor = Number(request.json.params.cursor ?? 0);
      const fields = {
        [field]: [{ name: `i${cursor}` }],
        ...(cursor < 2 && { nextCursor: `${cursor + 1}` }),
      };
      sendResult(res, request, { ...fields, ttlMs: 60_000, cacheScope: 'public' });
    });
    await ask(method);
    const hit = await ask(method);
    expect(hit.json.result[field]).toEqual([{ name: 'i0' }, { name: 'i1' }, { name: 'i2' }]);
    expect(upstream.count()).toBe(3);
  });
});

describe('a snapshot (law 12)', () => {
  test('holds every item in order, doubles too, and empty pages do no harm (C06)', async () => {
    const names = (from: number) => Array.from({ length: 30 }, (_, i) => `t${from + i}`);
    const pages = [names(0), [], names(30), ['t0', ...names(61).slice(1)]];
    const { list } = await start(
      paged(
        Object.fromEntries(
          pages.map((p, i) => [i === 0 ? '-' : `c${i}`, page(p, pages[i + 1] && `c${i + 1}`)]),
        ),
      ),
    );
    expect((await list()).asked).toBe(4);
    const hit = await list();
    expect(hit.asked).toBe(0);
    expect(namesOf(hit)).toEqual(pages.flat());
    expect(namesOf(hit)).toHaveLength(90);
  });

  test('keeps items and the first page’s other fields to the last byte', async () => {
    const first =
      '{"z":1,"name" : "a","n":12345678901234567890.10,"\\u0061b":"\\ud83d\\ude00\\/é","n":-0.0E+2}';
    const second = '{"__proto__":{"x":1},"constructor":{"prototype":{"y":[ 9007199254740993,1E400 ]}}}';
    const other = '"x-\\u0065xtra": {"b":1,"a":9007199254740993, "__proto__":[]}';
    const { list } = await start((request, res) => {
      const body =
        cursorOf(request) === '-'
          ? `"_meta":{"p":1},"tools": [ ${first}\n ],"nextCursor":"c1",${other}`
          : `"_meta":{"p":2},"tools":[${second} , ${first}],"second":true`;
      const id = JSON.stringify(request.json.id);
      sendJson(res, `{"jsonrpc":"2.0","id":${id},"result":{${body},"ttlMs":60000,"cacheScope":"public"}}`);
    });
    for (const { text, asked } of [await list(), await list()]) {
      expect(asked).toBeLessThanOrEqual(2);
      expect(text).toMatch(/^\{"jsonrpc":"2\.0","id":1,"result":\{/);
      expect(text.split(first), 'the item is there twice').toHaveLength(3);
      expect(text.split(second)).toHaveLength(2);
      expect(text.indexOf(first)).toBeLessThan(text.indexOf(second));
      expect(text).toContain(other);
      expect(text).toContain('"_meta":{"p":1}');
      expect(text).not.toContain('second');
    }
  });

  test('says the first page’s other fields and its own hints once', async () => {
    const { list } = await start(
      paged({
        '-': page(['a'], 'c1', { serverInfo: 1 }),
        c1: page(['b'], undefined, { serverInfo: 2, more: true }),
      }),
    );
    await list();
    const { text, json } = await list();
    expect(json.result).toEqual({
      resultType: 'complete',
      tools: tools('a', 'b'),
      serverInfo: 1,
      ttlMs: 60_000,
      cacheScope: 'public',
    });
    expect(text.match(/ttlMs/g)).toHaveLength(1);
    expect(text.match(/cacheScope/g)).toHaveLength(1);
  });
});

describe('pages with lifetimes of their own (law 6, C10)', () => {
  test('the shortest-lived page decides', async () => {
    const { list, clock } = await start(
      paged({ '-': page(['a'], 'c1'), c1: page(['b'], undefined, { ttlMs: 1_000 }) }),
    );
    expect((await list()).json.result.ttlMs).toBe(1_000);
    clock.advance(999);
    expect(await list()).toMatchObject({ asked: 0, json: { result: { ttlMs: 1 } } });
    clock.advance(1);
    expect((await list()).asked).toBe(2);
  });

  test('each page’s clock starts when that page was received', async () => {
    const { list, clock } = await start((request, res) => {
      const isFirst = cursorOf(request) === '-';
      if (!isFirst) clock.advance(1_500);
      sendResult(res, request, page(['a'], isFirst ? 'c1' : undefined, { ttlMs: 2_000 }));
    });
    expect((await list()).json.result.ttlMs, 'the first page has used up most of its life').toBe(500);
    clock.advance(499);
    const hit = await list();
    expect(hit.asked).toBe(0);
    expect(hit.headers.get('age'), 'as old as its oldest page').toBe('1');
    clock.advance(1);
    expect((await list()).asked).toBe(2);
  });

  test('a walk that outlasts its first page is not served as fresh', async () => {
    const { list, clock } = await start((request, res) => {
      const isFirst = cursorOf(request) === '-';
      if (!isFirst) clock.advance(3_000);
      sendResult(res, request, page(['a'], isFirst ? 'c1' : undefined, { ttlMs: 2_000 }));
    });
    const first = await list();
    expect(first.json.result.ttlMs).toBe(0);
    expect((await list()).asked).toBe(2);
  });
});

describe('a client’s own cursor (C05)', () => {
  test('reaches the upstream byte for byte, and its page is neither stored nor the snapshot', async () => {
    const { list, upstream } = await start(paged(threePages('t')));
    await list();
    for (const asked of [1, 1]) {
      const second = await list({ params: { cursor: 'c1' } });
      expect(second).toMatchObject({
        asked,
        cacheStatus: 'mcp-cache-gateway; fwd=bypass; detail=has-cursor',
      });
      expect(second.json.result).toEqual(threePages('t').c1);
    }
    for (const id of ['x', 'y']) {
      const bogus = await list({ id, params: { cursor: 'a+b/c==\u00e9' } });
      expect(bogus).toMatchObject({ asked: 1, json: { id, error: { code: -32602 } } });
      expect(upstream.requests.at(-1)?.json.params.cursor).toBe('a+b/c==\u00e9');
    }
    expect((await list()).asked, 'the snapshot stands').toBe(0);
  });
});
