/** What makes two requests one, and what the cache has no part in: design, laws 1–3; cases C17, C37–C39, C59. */
import { describe, expect, test } from 'vitest';
import { post, rpc, rpcRequest } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { startGateway } from '../support/gateway.js';
import { CACHEABLE, catalogue, page, tools } from '../support/lists.js';
import { type Scenario, useScenario } from '../support/scenario.js';
import {
  goodResult,
  type Respond,
  type SeenRequest,
  sendJson,
  sendResult,
  startUpstream,
} from '../support/upstream.js';

const start = useScenario();
const closing = useClosers();

const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const CLIENT = 'io.modelcontextprotocol/clientInfo';

/** Answers with a list that names what `what` sees in the request. */
function telling(what: (request: SeenRequest) => unknown): Respond {
  return (request, res) => sendResult(res, request, page([String(what(request))]));
}

/** Sends a body as it is, under the fields of a good request of `method`. */
async function send(scenario: Scenario, body: string, method = 'tools/list', params = {}) {
  const before = scenario.upstream.count();
  const { headers } = rpcRequest(method, { params });
  const answer = await post(scenario.gateway.endpoint('u'), body, headers);
  return { ...answer, asked: scenario.upstream.count() - before };
}

const META = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","${CAPABILITIES}":{}}`;

describe('requests that mean the same (law 3, C59)', () => {
  test.each([
    ['another id', { id: 'x' }],
    ['progressToken', { meta: { progressToken: 'p' } }],
    ['another client', { meta: { [CLIENT]: { name: 'other', version: '9' } } }],
    ['a log level', { meta: { 'io.modelcontextprotocol/logLevel': 'debug' } }],
    ['a trace', { meta: { traceparent: '00-1', tracestate: 'a=1', baggage: 'b=2' } }],
    ['headers of no account', { headers: { 'x-request-id': '7', 'user-agent': 'other' } }],
  ])('differ in %s and share an entry', async (_title, options) => {
    const { list } = await start(catalogue());
    await list();
    const hit = await list(options);
    expect([hit.asked, hit.json.result.tools]).toEqual([0, tools('v1')]);
  });

  test('differ in key order and white space and share an entry', async () => {
    const scenario = await start(catalogue());
    const one = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":{"x":1,"y":[1,2]},"b":"\\u00e9",${META}}}`;
    const other = ` {"params" : {\n"b":"é", ${META} ,"a":{"y":[1, 2],"x":1}}, "method":"tools\\/list","id":1,"jsonrpc":"2.0"}`;
    expect((await send(scenario, one)).asked).toBe(1);
    expect((await send(scenario, other)).asked).toBe(0);
  });

  test('absent and empty params are the same to a legacy upstream', async () => {
    const { gateway, upstream } = await start(catalogue());
    const { headers } = rpcRequest('tools/list', { era: 'legacy' });
    for (const params of [
      '',
      ',"params":{}',
      ',"params":{"_meta":{}}',
      ',"params":{"_meta":{"progressToken":1}}',
    ]) {
      await post(gateway.endpoint('u'), `{"jsonrpc":"2.0","id":1,"method":"tools/list"${params}}`, headers);
    }
    expect(upstream.count()).toBe(1);
  });
});

describe('requests that differ (law 3, C59)', () => {
  test.each([
    ['client capabilities', { meta: { [CAPABILITIES]: { sampling: {} } } }],
    ['an unknown _meta key', { meta: { 'example.com/tenant': 't' } }],
    ['an unknown param', { params: { filter: 'a' } }],
    ['the protocol version', { version: '2026-12-01' }],
    ['the era', { era: 'legacy' as const }],
  ])('in %s share nothing', async (_title, options) => {
    const { list } = await start(catalogue());
    await list();
    expect((await list(options)).asked).toBe(1);
    expect((await list(options)).asked).toBe(0);
    expect((await list()).asked).toBe(0);
  });

  test('in the version that a legacy client declares, or declares not, share nothing', async () => {
    const { gateway, upstream } = await start(catalogue());
    const legacy = rpcRequest('tools/list', { era: 'legacy' });
    for (const round of [1, 2]) {
      for (const version of ['2025-11-25', '2025-06-18', undefined]) {
        const { 'mcp-protocol-version': _, ...headers } = legacy.headers;
        const declared = version === undefined ? {} : { 'mcp-protocol-version': version };
        await post(gateway.endpoint('u'), legacy.body, { ...headers, ...declared });
      }
      expect(upstream.count(), `round ${round}`).toBe(3);
    }
  });

  test('in a param’s digits, type or order of elements share nothing', async () => {
    const scenario = await start(catalogue());
    const values = [
      '1',
      '"1"',
      '1.0',
      '[1,2]',
      '[2,1]',
      'null',
      '9007199254740992',
      '9007199254740993',
      '{"a":1}',
    ];
    for (const value of values) {
      const body = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"p":${value},${META}}}`;
      expect((await send(scenario, body)).asked, value).toBe(1);
    }
  });

  test('in their method share nothing', async () => {
    const { ask, upstream } = await start(catalogue());
    for (const [method, params] of CACHEABLE) await ask(method, { params });
    for (const [method, params] of CACHEABLE) {
      expect((await ask(method, { params })).asked, method).toBe(0);
    }
    expect(upstream.count()).toBe(CACHEABLE.length);
  });

  test('in the spelling of a uri are resources of their own, asked for as they were spelt', async () => {
    const { ask, upstream } = await start((request, res) => {
      const { uri } = request.json.params;
      sendResult(res, request, goodResult({ contents: [{ uri, text: `text of ${uri}` }] }));
    });
    const uris = [
      'file:///a%2Fb',
      'file:///a%2fb',
      'file:///a/b',
      'FILE:///a/b',
      'file:///a/./b',
      'file:///a/b/',
      'file:///a//b',
      'x:\u00e9',
      'x:e\u0301',
      '__proto__',
      'constructor',
      '',
    ];
    for (const round of [1, 0]) {
      for (const uri of uris) {
        const { json, asked } = await ask('resources/read', { params: { uri } });
        expect([json.result.contents[0].text, asked]).toEqual([`text of ${uri}`, round]);
      }
    }
    expect(upstream.requests.map((request) => request.json.params.uri)).toEqual(uris);
  });

  test('in a header of VARY_HEADERS share nothing; without it they do', async () => {
    const env = { VARY_HEADERS: 'Accept-Language, x-tenant' };
    const { list } = await start(
      telling((r) => r.headers['accept-language']),
      { env },
    );
    const lists: Record<string, string>[] = [
      { 'accept-language': 'de' },
      { 'accept-language': 'en' },
      { 'accept-language': 'de', 'x-tenant': 'de' },
      { 'accept-language': 'x', 'x-tenant': 'de' },
    ];
    for (const headers of lists) {
      expect((await list({ headers })).asked).toBe(1);
      const hit = await list({ headers });
      expect([hit.asked, hit.json.result.tools]).toEqual([0, tools(String(headers['accept-language']))]);
    }
    expect((await list({ headers: { 'accept-language': 'de', 'x-other': '1' } })).asked).toBe(0);
  });
});

describe('the address of an upstream (law 3, C17)', () => {
  test('keeps its query byte for byte, with the client’s own behind it', async () => {
    const { list, upstream, gateway } = await start(
      telling((r) => r.url),
      {
        path: '/mcp?toolsets=core,alerting',
      },
    );
    const endpoint = `${gateway.endpoint('u')}?folder=a%2Cb,c&x`;
    const url = '/mcp?toolsets=core,alerting&folder=a%2Cb,c&x';
    await list();
    expect((await list({ endpoint })).json.result.tools).toEqual(tools(url));
    expect(upstream.requests.map((request) => request.url)).toEqual(['/mcp?toolsets=core,alerting', url]);
  });

  test('answers each query of a client for itself', async () => {
    const { list, gateway } = await start(telling((request) => request.url));
    for (const asked of [1, 0]) {
      for (const query of ['?folder=a', '?folder=b', '']) {
        const answer = await list({ endpoint: gateway.endpoint('u') + query });
        expect([answer.asked, answer.json.result.tools]).toEqual([asked, tools(`/mcp${query}`)]);
      }
    }
  });

  test('sets apart two upstreams on one host, and keeps the slash at the end', async () => {
    const upstream = closing(await startUpstream(telling((request) => request.url)));
    const { origin } = upstream;
    const gateway = closing(
      await startGateway({
        upstreams: { a: `${origin}/a/mcp`, b: `${origin}/b/mcp/`, c: `${origin}/b/mcp` },
      }),
    );
    const paths = { a: '/a/mcp', b: '/b/mcp/', c: '/b/mcp' };
    for (const [name, path] of Object.entries(paths)) {
      for (const client of [gateway.endpoint(name), `${gateway.endpoint(name)}/`]) {
        expect((await rpc(client, 'tools/list')).json.result.tools).toEqual(tools(path));
      }
    }
    expect(upstream.count()).toBe(3);
  });
});

describe('what the cache has no part in (law 1)', () => {
  test.each([
    ['the retry of a request for input', { params: { inputResponses: {} } }],
    ['a request with state', { params: { requestState: 's' } }],
  ])('%s goes to the upstream each time', async (_title, options) => {
    const { list } = await start(catalogue());
    await list();
    for (const answer of [await list(options), await list(options)]) {
      expect(answer.asked).toBe(1);
      expect(answer.cacheStatus).toBe('mcp-cache-gateway; fwd=bypass; detail=multi-round-trip');
    }
    expect((await list()).asked).toBe(0);
  });

  const LIST = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{${META}}}`;
  test.each([
    ['a batch of two', `[${LIST},{"jsonrpc":"2.0","id":2,"method":"tools/call"}]`],
    ['a batch of one', ` \n[${LIST}]`],
    ['an empty batch', '[]'],
    ['a notification', '{"jsonrpc":"2.0","method":"tools/list"}'],
    ['malformed JSON', `${LIST.slice(0, -1)},}`],
    ['two values', `${LIST}${LIST}`],
    ['a method twice', LIST.replace('"params"', '"method":"tools/call","params"')],
    ['a method twice, the reverse', LIST.replace('"method"', '"method":"tools/call","method"')],
    ['a method hidden by an escape', LIST.replace('"params"', '"meth\\u006fd":"tools/call","params"')],
    ['an id twice', LIST.replace('"id":1', '"id":2,"id":1')],
    ['params twice', LIST.replace('"params"', '"params":{},"params"')],
    ['a param twice', LIST.replace('"_meta"', '"a":1,"a":2,"_meta"')],
    ['a nested key twice', LIST.replace('"_meta"', '"a":{"b":1,"\\u0062":2},"_meta"')],
    ['another version of JSON-RPC', LIST.replace('"2.0"', '"1.0"')],
    ['params that are no object', '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}'],
  ])('%s goes to the upstream as it came, and its answer is not stored (C37, C38)', async (_title, body) => {
    const scenario = await start((request, res) =>
      sendJson(res, `{"jsonrpc":"2.0","id":1,"result":${JSON.stringify(page([`n${request.body.length}`]))}}`),
    );
    await scenario.list();
    for (const answer of [await send(scenario, body), await send(scenario, body)]) {
      expect(answer.asked).toBe(1);
      expect(scenario.upstream.requests.at(-1)?.body.toString()).toBe(body);
      expect(answer.json.result.tools).toEqual(tools(`n${Buffer.byteLength(body)}`));
      expect(answer.cacheStatus).not.toContain('hit');
    }
    expect((await scenario.list()).asked).toBe(0);
  });

  test('names of JavaScript’s own are names like any other (C39)', async () => {
    const scenario = await start(catalogue());
    const args = '{"__proto__":{"x":1},"constructor":{"prototype":{"y":2}}}';
    const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"__proto__","arguments":${args},${META}}}`;
    await send(scenario, call, 'tools/call', { name: '__proto__' });
    expect(scenario.upstream.requests.at(-1)?.body.toString()).toBe(call);
    for (const method of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      expect((await scenario.ask(method)).asked).toBe(1);
      expect((await scenario.ask(method)).asked).toBe(1);
    }
    for (const params of ['"__proto__":{"x":1}', '"constructor":1', '"__proto__":{"x":2}', '"x":1']) {
      const body = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{${params},${META}}}`;
      expect([(await send(scenario, body)).asked, (await send(scenario, body)).asked]).toEqual([1, 0]);
    }
    expect(Object.keys(Object.prototype)).toEqual([]);
    expect({}).not.toHaveProperty('x');
  });

  test('a uri twice is answered neither for the one nor for the other (C38)', async () => {
    const scenario = await start(catalogue());
    const one = `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x:a","uri":"x:b",${META}}}`;
    await scenario.ask('resources/read', { params: { uri: 'x:a' } });
    await scenario.ask('resources/read', { params: { uri: 'x:b' } });
    for (const named of [{ uri: 'x:a' }, { uri: 'x:b' }]) {
      const answer = await send(scenario, one, 'resources/read', named);
      expect(answer.cacheStatus).not.toContain('hit');
      expect(answer.asked === 1 || answer.status === 400).toBe(true);
    }
  });
});
