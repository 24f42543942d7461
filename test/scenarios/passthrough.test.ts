/** What the upstream says is what the client hears: laws 1, 4, 23; cases C32, C33, C37, C40, C50, C54, C56. */
import { describe, expect, test } from 'vitest';
import { valuesOf } from '../../src/core/headers.js';
import { post, type RpcOptions, rpcRequest } from '../support/client.js';
import { heldLegacyWatch } from '../support/legacy-watch.js';
import { catalogue, namesOf, page, paged, resultOf } from '../support/lists.js';
import { rawFields, send } from '../support/raw.js';
import { type Scenario, useScenario } from '../support/scenario.js';
import { goodResult, type SeenRequest, sendError, sendJson, sendResult } from '../support/upstream.js';

const start = useScenario();

const NOT_FOUND = '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}';
const inSession = (session: string, more: Record<string, string> = {}): RpcOptions => ({
  era: 'legacy',
  headers: { 'mcp-session-id': session, ...more },
});

function notify({ gateway }: Scenario, method: string, headers: Record<string, string> = {}) {
  const { headers: common } = rpcRequest(method, { era: 'legacy' });
  const body = JSON.stringify({ jsonrpc: '2.0', method });
  return send(gateway.endpoint('u'), { headers: rawFields({ ...common, ...headers }), body });
}

describe('a session that the upstream forgot (C32)', () => {
  test('is a 404 as the upstream sent it, to whatever is asked in it, and a new one can be had', async () => {
    const scenario = await start((request, res) => {
      if (request.json?.method === 'initialize') {
        sendResult(res, request, { protocolVersion: '2025-11-25' }, { 'mcp-session-id': 's2' });
      } else {
        sendJson(res, NOT_FOUND, 404, { 'x-own': 'yes' });
      }
    });
    const { ask, gateway, upstream } = scenario;
    for (let round = 0; round < 2; round += 1) {
      for (const method of ['tools/list', 'tools/call', 'resources/read', 'server/discover']) {
        const answer = await ask(method, inSession('s1'));
        expect(answer).toMatchObject({ status: 404, text: NOT_FOUND, asked: 1 });
        expect(answer.headers.get('x-own')).toBe('yes');
        expect(answer.headers.has('www-authenticate')).toBe(false);
      }
    }
    expect(await notify(scenario, 'notifications/cancelled', { 'mcp-session-id': 's1' })).toMatchObject({
      status: 404,
    });
    for (const method of ['GET', 'DELETE']) {
      const headers = ['Mcp-Session-Id', 's1', 'Accept', 'text/event-stream'];
      expect(await send(gateway.endpoint('u'), { method, headers })).toMatchObject({
        status: 404,
        text: NOT_FOUND,
      });
    }
    expect(upstream.requests.every(({ headers }) => headers['mcp-session-id'] === 's1')).toBe(true);
    const fresh = await ask('initialize', { era: 'legacy' });
    expect([fresh.status, fresh.headers.get('mcp-session-id')]).toEqual([200, 's2']);
  });
});

describe('sessions of several clients (C33)', () => {
  test('never meet: each client’s requests bear its own session, cookie and credentials', async () => {
    const given = ['sA', 'sB'];
    const ended = new Set<string>();
    const scenario = await start(
      (request, res) => {
        const { method } = request.json ?? {};
        const session = String(request.headers['mcp-session-id']);
        if (method === 'initialize') {
          const id = given.shift() ?? '';
          const fields = { 'mcp-session-id': id, 'set-cookie': [`c=${id}`, 'd=1'] };
          sendResult(res, request, { protocolVersion: '2025-11-25' }, fields);
        } else if (request.httpMethod === 'DELETE') {
          ended.add(session);
          res.writeHead(204).end();
        } else if (ended.has(session)) sendJson(res, NOT_FOUND, 404);
        else if (method === 'tools/list')
          sendResult(res, request, page([session], undefined, { cacheScope: 'private' }));
        else sendResult(res, request, goodResult({ content: session }));
      },
      { watch: heldLegacyWatch().respond },
    );
    const { ask, gateway, upstream } = scenario;
    const clients: RpcOptions[] = [];
    for (const name of ['A', 'B']) {
      const headers = { authorization: `Bearer ${name}` };
      const { headers: raw } = await send(gateway.endpoint('u'), {
        headers: rawFields({ ...rpcRequest('initialize', { era: 'legacy' }).headers, ...headers }),
        body: rpcRequest('initialize', { era: 'legacy' }).body,
      });
      expect(valuesOf(raw, 'mcp-session-id'), 'once').toEqual([`s${name}`]);
      expect(valuesOf(raw, 'set-cookie')).toEqual([`c=s${name}`, 'd=1']);
      clients.push(inSession(`s${name}`, { ...headers, cookie: `c=s${name}` }));
    }
    const calls = clients.flatMap((client) =>
      Array.from({ length: 5 }, (_, id) => ask('tools/call', { ...client, id, params: { name: 't' } })),
    );
    const results = (await Promise.all(calls)).map(({ json }) => json.result.content);
    expect(results).toEqual([...Array(5).fill('sA'), ...Array(5).fill('sB')]);
    for (const [i, name] of ['sA', 'sB', 'sA', 'sB'].entries()) {
      expect(namesOf(await ask('tools/list', clients[i % 2]))).toEqual([name]);
    }
    for (const { headers } of upstream.requests.filter(({ json }) => json.method !== 'initialize')) {
      const name = String(headers['mcp-session-id']).slice(1);
      expect(headers).toMatchObject({ authorization: `Bearer ${name}`, cookie: `c=s${name}` });
    }
    const gone = await send(gateway.endpoint('u'), { method: 'DELETE', headers: ['Mcp-Session-Id', 'sA'] });
    expect([gone.status, [...ended]]).toEqual([204, ['sA']]);
    expect((await ask('tools/call', { ...clients[0], params: { name: 't' } })).status).toBe(404);
    expect((await ask('tools/call', { ...clients[1], params: { name: 't' } })).status).toBe(200);
    const own = upstream.watchRequests.filter(({ json }) => json?.method !== 'subscriptions/listen');
    expect(own).toHaveLength(3);
    expect(own.slice(1).every(({ headers }) => headers['mcp-session-id'] === 'watch-session')).toBe(true);
    expect(own.every(({ headers }) => headers.cookie === undefined)).toBe(true);
  });
});

describe('a batch (C37)', () => {
  const list = (id: number) => JSON.parse(rpcRequest('tools/list', { id }).body);
  const BATCHES = [
    JSON.stringify([list(1), JSON.parse(rpcRequest('tools/call', { id: 2 }).body)]),
    JSON.stringify([list(1)]),
    '[]',
    ` \n\t${JSON.stringify([list(1)], null, 1)}`,
  ];

  test.each(['modern', 'legacy'] as const)(
    'of a %s client is the upstream’s to answer, byte for byte, and is never stored',
    async (era) => {
      const { ask, gateway, upstream } = await start(catalogue());
      const options = era === 'legacy' ? ({ era, version: '2025-03-26' } as const) : {};
      await ask('tools/list', options);
      upstream.respond = (_request, res) =>
        sendJson(res, `[${'{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'}]`);
      for (const body of BATCHES) {
        const { status, text } = await post(
          gateway.endpoint('u'),
          body,
          rpcRequest('tools/list', options).headers,
        );
        expect([status, text]).toEqual([200, '[{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}]']);
        expect(upstream.requests.at(-1)?.body.toString()).toBe(body);
      }
      expect(namesOf(await ask('tools/list', options))).toEqual(['v1']);
      expect(upstream.count()).toBe(1 + BATCHES.length);
    },
  );
});

describe('a notification (C40)', () => {
  test.each([
    [202, undefined],
    [200, undefined],
    [204, undefined],
    [400, '{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}'],
  ])('gets the upstream’s %i, and nothing is added to it', async (status, body) => {
    const scenario = await start((_request, res) => {
      if (body === undefined) res.writeHead(status).end();
      else sendJson(res, body, status);
    });
    for (const method of ['notifications/initialized', 'notifications/tools/list_changed']) {
      const answer = await notify(scenario, method, { 'mcp-session-id': 's' });
      expect([answer.status, answer.text]).toEqual([status, body ?? '']);
      expect(valuesOf(answer.headers, 'content-type')).toEqual(
        body === undefined ? [] : ['application/json'],
      );
      expect(valuesOf(answer.headers, 'cache-status')).toEqual([]);
    }
    expect(scenario.upstream.count()).toBe(2);
  });
});

describe('a redirect (C50)', () => {
  test.each([
    [307, '/mcp/'],
    [307, 'http://127.0.0.1:1/steal'],
    [308, 'http://other.example/mcp'],
    [303, '/elsewhere'],
    [301, ''],
  ])('%i to %j is relayed, not followed, not stored', async (status, location) => {
    const scenario = await start((_request, res) => void res.writeHead(status, { location }).end());
    for (const method of ['tools/list', 'tools/call', 'tools/list']) {
      const answer = await scenario.ask(method, { headers: { authorization: 'Bearer a' } });
      expect([answer.status, answer.headers.get('location'), answer.asked]).toEqual([status, location, 1]);
    }
  });
});

describe('a GET of a client (C54)', () => {
  test.each([
    [405, { allow: 'POST' }],
    [404, {}],
  ])('that the upstream refuses with %i is so refused', async (status, headers) => {
    const { gateway, upstream } = await start((_request, res) => void res.writeHead(status, headers).end());
    const answer = await send(gateway.endpoint('u'), {
      method: 'GET',
      headers: ['Accept', 'text/event-stream'],
    });
    expect(answer.status).toBe(status);
    expect(valuesOf(answer.headers, 'allow')).toEqual(Object.values(headers));
    expect(upstream.count()).toBe(1);
  });
});

describe('the era of an upstream (C56)', () => {
  const supported = { supported: ['2026-07-28'], requested: '2027-01-01' };
  const REFUSALS: [string, number, string, string][] = [
    [
      'a version that it does not speak',
      400,
      'application/json',
      JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code: -32022, message: 'x', data: supported } }),
    ],
    ['plain text', 400, 'text/plain', 'Bad Request: Mcp-Session-Id header is required\n'],
    ['nothing', 400, 'text/plain', ''],
    [
      'an error of its own',
      400,
      'application/json',
      '{"jsonrpc":"2.0","error":{"code":-32000,"message":"no"},"id":null}',
    ],
    [
      'an unknown method',
      404,
      'application/json',
      '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}',
    ],
  ];

  test.each(REFUSALS)('is told by its refusal as it was sent: %s', async (_title, status, type, body) => {
    const { ask } = await start(
      (_request, res) => void res.writeHead(status, { 'content-type': type }).end(body),
    );
    for (const [method, options] of [
      ['server/discover', { version: '2027-01-01' }],
      ['tools/list', {}],
      ['tools/list', {}],
      ['initialize', { era: 'legacy' }],
    ] as [string, RpcOptions][]) {
      const answer = await ask(method, options);
      expect(answer).toMatchObject({ status, text: body, asked: 1 });
      expect(answer.headers.get('content-type')).toBe(type);
    }
  });

  test('may be both: clients of either era use one route, and their answers do not mix', async () => {
    const eraOf = ({ json }: SeenRequest) =>
      json.params?._meta?.['io.modelcontextprotocol/protocolVersion'] ?? 'legacy';
    const { ask, upstream } = await start((request, res) => {
      if (request.json.method === 'initialize' && eraOf(request) !== 'legacy')
        sendError(res, request, -32601, 404);
      else sendResult(res, request, resultOf(request, eraOf(request)));
    });
    for (let round = 0; round < 2; round += 1) {
      for (const version of ['2026-07-28', '2027-01-01']) {
        expect((await ask('server/discover', { version })).json.result.instructions).toBe(version);
        expect(namesOf(await ask('tools/list', { version }))).toEqual([version]);
      }
      expect(namesOf(await ask('tools/list', { era: 'legacy' }))).toEqual(['legacy']);
    }
    expect(upstream.count(), 'the second round was answered from memory').toBe(5);
  });
});

describe('an upstream without any stream (C54)', () => {
  test.each([
    [405, ''],
    [404, ''],
    [404, '{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}'],
  ])('that refuses the gateway’s own with %i %s is cached by its ttlMs', async (status, body) => {
    const { list, clock, upstream } = await start(paged({ '-': page(['a']) }), {
      watch: (_request, res) => void res.writeHead(status).end(body),
    });
    await list();
    for (let second = 0; second < 59; second += 1) {
      clock.advance(1_000);
      expect((await list()).asked).toBe(0);
    }
    clock.advance(1_000);
    expect((await list()).asked).toBe(1);
    expect(upstream.watchRequests.length).toBeLessThanOrEqual(2);
  });
});
