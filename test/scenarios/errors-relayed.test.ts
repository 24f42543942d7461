/** What is no result is relayed and never kept: design, laws 2, 4, 24; cases C31, C32, C57. */
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { post, rpcRequest } from '../support/client.js';
import { createGate } from '../support/gate.js';
import { catalogue, namesOf, page, tools } from '../support/lists.js';
import { useScenario } from '../support/scenario.js';
import { beginEvents, type Respond, type SeenRequest, sendJson, sendResult } from '../support/upstream.js';

const start = useScenario();

const GOOD = page(['a']);
const result = (fields: string) => `{"jsonrpc":"2.0","id":1,"result":${fields}}`;
const GOOD_BODY = result(JSON.stringify(GOOD));

interface Case {
  readonly title: string;
  readonly status?: number;
  readonly type?: string;
  readonly body: string;
  readonly detail: string;
}

const CASES: readonly Case[] = [
  { title: 'status 500 around a good page', status: 500, body: GOOD_BODY, detail: 'status' },
  { title: 'status 203 around a good page', status: 203, body: GOOD_BODY, detail: 'status' },
  { title: 'status 404 for a session that is gone (C32)', status: 404, body: '{"no":1}', detail: 'status' },
  { title: 'status 429', status: 429, type: 'text/plain', body: 'slow down', detail: 'status' },
  { title: 'status 204', status: 204, body: '', detail: 'status' },
  { title: 'a redirect', status: 307, body: '', detail: 'status' },
  {
    title: 'a JSON-RPC error with hints in its data',
    body: '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"x","data":{"ttlMs":60000}}}',
    detail: 'error-reply',
  },
  {
    title: 'both a result and an error',
    body: `${GOOD_BODY.slice(0, -1)},"error":{"code":1,"message":"x"}}`,
    detail: 'unexpected',
  },
  { title: 'a result under another id', body: GOOD_BODY.replace('"id":1', '"id":2'), detail: 'unexpected' },
  {
    title: 'a result under the id as a string',
    body: GOOD_BODY.replace('"id":1', '"id":"1"'),
    detail: 'unexpected',
  },
  { title: 'a result of another shape', body: result('{"ttlMs":60000}'), detail: 'unexpected' },
  { title: 'an empty result', body: result('{}'), detail: 'unexpected' },
  { title: 'tools that are no array', body: result('{"tools":{},"ttlMs":60000}'), detail: 'unexpected' },
  {
    title: 'a request for input',
    body: result('{"resultType":"input_required","tools":[],"ttlMs":60000}'),
    detail: 'input-required',
  },
  {
    title: 'an unknown resultType',
    body: result('{"resultType":"task","tools":[],"ttlMs":60000}'),
    detail: 'unexpected',
  },
  {
    title: 'hints said twice (C38)',
    body: result('{"tools":[],"ttlMs":9,"ttlMs":60000}'),
    detail: 'unexpected',
  },
  { title: 'HTML', type: 'text/html', body: '<h1>maintenance</h1>', detail: 'unexpected' },
  { title: 'JSON that breaks off', body: GOOD_BODY.slice(0, -3), detail: 'unexpected' },
  { title: 'no JSON under its media type', body: 'Internal error', detail: 'unexpected' },
  { title: 'a batch of one answer', body: `[${GOOD_BODY}]`, detail: 'unexpected' },
  { title: 'an empty body', body: '', detail: 'unexpected' },
  {
    title: 'an event stream without the answer',
    type: 'text/event-stream',
    body: ': ping\n\n',
    detail: 'unexpected',
  },
  {
    title: 'an event stream that ends within the answer (C31)',
    type: 'text/event-stream',
    body: `data: ${GOOD_BODY.slice(0, 40)}`,
    detail: 'unexpected',
  },
];

describe('an answer that is no result (law 4, C57)', () => {
  test.each(CASES)('$title arrives as it came, and is not stored', async (one) => {
    const { status = 200, type = 'application/json', body } = one;
    const { list, upstream } = await start((_request, res) => {
      res.writeHead(status, 'As Sent', {
        'content-type': type,
        'x-own': 'yes',
        location: 'http://x.invalid/',
      });
      res.end(body);
    });
    for (const answer of [await list(), await list()]) {
      expect(answer).toMatchObject({ asked: 1, status, text: body });
      expect(answer.headers.get('content-type')).toBe(type);
      expect(answer.headers.get('x-own')).toBe('yes');
      expect(answer.cacheStatus).toBe(`mcp-cache-gateway; fwd=miss; detail=${one.detail}`);
    }
    upstream.respond = (request, res) => sendResult(res, request, GOOD);
    expect(namesOf(await list()), 'the next answer is judged for itself').toEqual(['a']);
    expect((await list()).asked).toBe(0);
  });

  test('an empty list is a list like any other', async () => {
    const { list } = await start((request, res) => sendResult(res, request, page([])));
    await list();
    expect(await list()).toMatchObject({ asked: 0, json: { result: { tools: [] } } });
  });

  test.each(['tools/call', 'prompts/get', 'completion/complete', 'tasks/list', 'example/list'])(
    'a result of %s is never stored, whatever hints it bears',
    async (method) => {
      const { ask } = await start((request, res) => sendResult(res, request, GOOD));
      for (const answer of [await ask(method), await ask(method)]) {
        expect(answer).toMatchObject({ asked: 1, json: { result: GOOD } });
        expect(answer.headers.has('cache-status')).toBe(false);
      }
    },
  );
});

describe('a challenge (law 24)', () => {
  test.each([401, 403])(
    '%i arrives with all its fields, and does not touch what others may have',
    async (status) => {
      const challenges = ['Bearer resource_metadata="https://u.invalid/x", scope="a"', 'Basic realm="u"'];
      const { list, upstream } = await start((request, res) => {
        if (request.headers.authorization === 'Bearer good')
          sendResult(res, request, { ...GOOD, cacheScope: 'private' });
        else sendJson(res, '{"error":"no"}', status, { 'www-authenticate': challenges });
      });
      const good = { headers: { authorization: 'Bearer good' } };
      await list(good);
      for (const headers of [{}, { authorization: 'Bearer bad' }, {}]) {
        const refused = await list({ headers });
        expect(refused).toMatchObject({ asked: 1, status, text: '{"error":"no"}' });
        expect(refused.headers.get('www-authenticate')).toBe(challenges.join(', '));
      }
      expect((await list(good)).asked).toBe(0);
      expect(upstream.count()).toBe(4);
    },
  );
});

describe('an upstream that fails', () => {
  const FAILURES: [string, Respond, number][] = [
    ['breaks off before the head', (_request, res) => void res.destroy(), 502],
    [
      'breaks off within a JSON body',
      (_request, res) => {
        res.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' });
        res.write(GOOD_BODY, () => res.destroy());
      },
      502,
    ],
    [
      'breaks off within an event stream before the answer',
      (_request, res) => {
        beginEvents(res);
        res.write('data: {"jsonrpc"', () => res.destroy());
      },
      502,
    ],
  ];
  test.each(FAILURES)(
    '%s: the client is told under its own id, and the next one asks anew',
    async (_title, fail, status) => {
      const { list, upstream } = await start(fail);
      expect(await list({ id: 'mine' })).toMatchObject({
        asked: 1,
        status,
        json: { jsonrpc: '2.0', id: 'mine', error: { code: status } },
        cacheStatus: 'mcp-cache-gateway; fwd=miss; detail=upstream-unreachable',
      });
      upstream.respond = catalogue();
      expect(await list()).toMatchObject({ asked: 1, json: { result: { tools: tools('v1') } } });
    },
  );

  test('is not waited for beyond its deadline', async () => {
    const gate = createGate();
    const held: ServerResponse[] = [];
    const { list, clock, upstream } = await start(
      async (_request, res) => {
        held.push(res);
        await gate.pass();
      },
      { env: { UPSTREAM_TIMEOUT_MS: '7000' } },
    );
    const closed = gate.arrivals(1).then(() => new Promise((resolve) => held[0]?.once('close', resolve)));
    const answer = list({ id: 5 });
    await gate.arrivals(1);
    clock.advance(7_000);
    expect(await answer).toMatchObject({ status: 504, json: { id: 5, error: { code: 504 } } });
    await closed;
    upstream.respond = catalogue();
    expect((await list()).asked).toBe(1);
  });
});

describe('a modern request whose headers deny its body (law 2)', () => {
  const uri = 'file:///ä';
  const base64 = (text: string) => `=?base64?${Buffer.from(text).toString('base64')}?=`;

  test.each([
    ['mcp-protocol-version', '2025-11-25'],
    ['mcp-method', 'tools/list'],
    ['mcp-name', base64('file:///a')],
    ['mcp-name', 'file:///a'],
    ['mcp-name', '=?base64?%%%?='],
  ])('is refused for %s: %s, also where a hit was at hand', async (name, value) => {
    const { ask } = await start(catalogue());
    const params = { uri };
    await ask('resources/read', { params });
    const refused = await ask('resources/read', { id: 'r', params, headers: { [name]: value } });
    expect(refused).toMatchObject({ asked: 0, status: 400, json: { id: 'r', error: { code: -32020 } } });
    expect(await ask('resources/read', { params })).toMatchObject({ asked: 0, status: 200 });
  });

  test.each([
    ['Mcp-Method', (h: Record<string, string>) => delete h['mcp-method']],
    ['Mcp-Name', (h: Record<string, string>) => delete h['mcp-name']],
    ['MCP-Protocol-Version', (h: Record<string, string>) => delete h['mcp-protocol-version']],
    ['half of Accept', (h: Record<string, string>) => Object.assign(h, { accept: 'application/json' })],
    ['its media type', (h: Record<string, string>) => Object.assign(h, { 'content-type': 'text/plain' })],
  ])('without %s gets the upstream’s verdict, and never a hit', async (_title, change) => {
    const { ask, gateway, upstream } = await start(catalogue());
    const params = { uri };
    await ask('resources/read', { params });
    upstream.respond = (_request: SeenRequest, res) => sendJson(res, '{"verdict":1}', 400);
    const { headers, body } = rpcRequest('resources/read', { params });
    change(headers);
    const answer = await post(gateway.endpoint('u'), body, headers);
    expect([answer.status, answer.text]).toEqual([400, '{"verdict":1}']);
    expect(upstream.count()).toBe(2);
    expect((await ask('resources/read', { params })).asked).toBe(0);
  });
});
