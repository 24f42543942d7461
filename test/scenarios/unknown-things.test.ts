import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { rpc, rpcRequest } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { createGate } from '../support/gate.js';
import { bearer, type Pair, startPair } from '../support/pair.js';
import { beginEvents, goodResult, type SeenRequest, sendEvent, sendResult } from '../support/upstream.js';

const closing = useClosers();

const LISTS = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'];
const RESULTS: Record<string, Record<string, unknown>> = {
  'tools/list': { tools: [{ name: 'gone', inputSchema: {} }, { name: 'né/à' }] },
  'prompts/list': { prompts: [{ name: 'gone' }] },
  'resources/list': { resources: [{ uri: 'file:///gone', name: 'gone' }] },
  'resources/templates/list': { resourceTemplates: [{ uriTemplate: 'file:///{name}', name: 'gone' }] },
};

type Answer = (req: SeenRequest, res: ServerResponse) => unknown;

const errorText = (req: SeenRequest, code: number) =>
  `{ "jsonrpc":"2.0",\n "id":${JSON.stringify(req.json.id)}, "error":{"code":${code}, "message":"unknown ✗"} }`;
const asJson =
  (code: number, status = 200): Answer =>
  (req, res) =>
    res.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(errorText(req, code));
const asEvents =
  (code: number): Answer =>
  (req, res) => {
    beginEvents(res);
    sendEvent(res, { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1 } });
    sendEvent(res, JSON.parse(errorText(req, code)));
    res.end();
  };

/** Every list is cached; what is asked for by name is answered by `answer`. */
async function startFilled(answer: Answer, fields: Record<string, unknown> = {}): Promise<Pair> {
  const pair = closing(
    await startPair((req, res) => {
      const result = RESULTS[req.json?.method];
      if (result === undefined) answer(req, res);
      else sendResult(res, req, { ...goodResult(result), ...fields });
    }),
  );
  await fill(pair);
  return pair;
}

/** Asks for every list, and tells which of them the upstream was asked for. */
async function fill(pair: Pair, options = {}): Promise<string[]> {
  const fetched: string[] = [];
  for (const method of LISTS) {
    const { cacheStatus } = await rpc(pair.url, method, options);
    if (!cacheStatus.includes('; hit;')) fetched.push(method);
  }
  return fetched;
}

const THINGS: [string, Record<string, string>, string][] = [
  ['tools/call', { name: 'gone' }, 'tools/list'],
  ['prompts/get', { name: 'gone' }, 'prompts/list'],
  ['resources/read', { uri: 'file:///gone' }, 'resources/list'],
];
const ANSWERS: [string, Answer][] = [
  ['-32602 as JSON', asJson(-32602)],
  ['-32602 as JSON under 400', asJson(-32602, 400)],
  ['-32601 as JSON under 404', asJson(-32601, 404)],
  ['-32020 as JSON under 400', asJson(-32020, 400)],
  ['-32602 as an event', asEvents(-32602)],
  ['-32601 as an event', asEvents(-32601)],
  ['-32020 as an event', asEvents(-32020)],
];

describe('what the upstream does not know any more drops the list that still shows it, and only that', () => {
  for (const [method, params, list] of THINGS) {
    test.each(ANSWERS)(`${method} answered %s`, async (_what, answer) => {
      const pair = await startFilled(answer);
      await rpc(pair.url, method, { params });
      expect(await fill(pair)).toEqual([list]);
    });

    test(`${method}: the error passes as it came`, async () => {
      for (const [status, answer] of [
        [200, asJson(-32602)],
        [404, asJson(-32601, 404)],
      ] as const) {
        const pair = await startFilled(answer);
        const came = await rpc(pair.url, method, { params, id: 'q' });
        const code = status === 404 ? -32601 : -32602;
        const sent = `{ "jsonrpc":"2.0",\n "id":"q", "error":{"code":${code}, "message":"unknown ✗"} }`;
        expect([came.status, came.text]).toEqual([status, sent]);
        expect(came.headers.get('content-type')).toBe('application/json; charset=utf-8');
      }
    });
  }

  test('the list is gone before the error reaches the client', async () => {
    const pair = await startFilled((req, res) => {
      beginEvents(res);
      // The stream stays open behind the error.
      sendEvent(res, JSON.parse(errorText(req, -32602)));
    });
    const { headers, body } = rpcRequest('tools/call', { params: { name: 'gone' } });
    const response = await fetch(pair.url, { method: 'POST', headers, body });
    const reader = response.body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toContain('-32602');
    expect(await fill(pair)).toEqual(['tools/list']);
    await reader?.cancel();
  });

  test('a packed error is understood, and passes packed', async () => {
    const pair = await startFilled((req, res) => {
      const packed = gzipSync(errorText(req, -32602));
      res.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
      res.end(packed);
    });
    const came = await rpc(pair.url, 'tools/call', { params: { name: 'gone' } });
    expect(came.headers.get('content-encoding')).toBe('gzip');
    expect(came.json.error.code).toBe(-32602);
    expect(await fill(pair)).toEqual(['tools/list']);
  });

  test('a name that JSON may spell in several ways is found', async () => {
    const pair = await startFilled(asJson(-32602));
    await rpc(pair.url, 'tools/call', { params: { name: 'né/à' } });
    expect(await fill(pair)).toEqual(['tools/list']);
  });
});

describe('what drops nothing', () => {
  const CASES: [string, Answer, Record<string, string>][] = [
    ['an error of another kind', asJson(-32603), { name: 'gone' }],
    ['a resource error of the older kind', asJson(-32002), { name: 'gone' }],
    ['something that no list shows', asJson(-32602), { name: 'never-there' }],
    ['part of a name', asJson(-32602), { name: 'gon' }],
    ['a result', (req, res) => sendResult(res, req, { content: [{ code: -32602 }] }), { name: 'gone' }],
    [
      'an error under another id',
      (_req, res) =>
        res
          .writeHead(200, { 'content-type': 'application/json' })
          .end('{"jsonrpc":"2.0","id":"other","error":{"code":-32602,"message":""}}'),
      { name: 'gone' },
    ],
  ];

  test.each(CASES)('%s', async (_what, answer, params) => {
    const pair = await startFilled(answer);
    await rpc(pair.url, 'tools/call', { params });
    expect(await fill(pair)).toEqual([]);
  });

  test('an unknown method that names nothing', async () => {
    const pair = await startFilled(asJson(-32601, 404));
    await rpc(pair.url, 'completion/complete', { params: { ref: { name: 'gone' } } });
    expect(await fill(pair)).toEqual([]);
  });
});

describe('no caller can defeat the cache so', () => {
  test('a list is dropped at most once a second', async () => {
    const pair = await startFilled(asJson(-32602));
    const call = () => rpc(pair.url, 'tools/call', { params: { name: 'gone' } });
    await call();
    expect(await fill(pair)).toEqual(['tools/list']);
    for (let ms = 0; ms < 999; ms += 333) {
      await call();
      expect(await fill(pair)).toEqual([]);
      pair.clock.advance(333);
    }
    pair.clock.advance(1);
    await call();
    expect(await fill(pair)).toEqual(['tools/list']);
  });

  test('one that asks for what was never there does not keep a true drop from taking place', async () => {
    const pair = await startFilled(asJson(-32602));
    await rpc(pair.url, 'tools/call', { params: { name: 'never-there' } });
    await rpc(pair.url, 'tools/call', { params: { name: 'gone' } });
    expect(await fill(pair)).toEqual(['tools/list']);
  });

  test('one context does not drop another’s private lists', async () => {
    const pair = await startFilled(asJson(-32602), { cacheScope: 'private' });
    await fill(pair, bearer('a'));
    await fill(pair, bearer('b'));
    await rpc(pair.url, 'tools/call', { params: { name: 'gone' }, ...bearer('a') });
    expect(await fill(pair, bearer('b'))).toEqual([]);
    expect(await fill(pair, bearer('a'))).toEqual(['tools/list']);
  });
});

describe('law 23: looking holds nothing back', () => {
  test.each(['tools/call', 'resources/read'])(
    'the first half of a JSON error to %s goes out before the second comes',
    async (method) => {
      const gate = createGate();
      const half = '{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"data":{}';
      const pair = await startFilled(async (_req, res) => {
        res.writeHead(400, { 'content-type': 'application/json' });
        res.write(half);
        await gate.pass();
        res.end(',"message":"no"}}');
      });
      const params = method === 'tools/call' ? { name: 'gone' } : { uri: 'file:///gone' };
      const { headers, body } = rpcRequest(method, { params });
      const response = await fetch(pair.url, { method: 'POST', headers, body });
      const reader = response.body?.getReader();
      expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe(half);
      gate.open();
      expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe(',"message":"no"}}');
      expect(await fill(pair)).toHaveLength(1);
    },
  );
});
