/** Requests whose headers contradict their body: law 2; streamable-http, Server Validation and Value Encoding. */
import { describe, expect, test } from 'vitest';
import { valuesOf } from '../../src/core/headers.js';
import { type RpcOptions, rpcRequest } from '../support/client.js';
import { catalogue } from '../support/lists.js';
import { rawFields, send, type WireAnswer } from '../support/raw.js';
import { type Scenario, useScenario } from '../support/scenario.js';
import { sendJson } from '../support/upstream.js';

const start = useScenario();

const TOOL = { params: { name: 'ä tool', arguments: {} } };
const base64 = (text: string) => `=?base64?${Buffer.from(text).toString('base64')}?=`;

/** Sends a request with its fields changed: a name in lower case, and the values that stand in its place. */
function ask(
  { gateway }: Scenario,
  method: string,
  options: RpcOptions,
  changed: Readonly<Record<string, readonly string[]>> = {},
): Promise<WireAnswer> {
  const { headers, body } = rpcRequest(method, options);
  const kept = Object.entries(headers).filter(([name]) => changed[name] === undefined);
  const added = Object.entries(changed).flatMap(([name, values]) => values.flatMap((value) => [name, value]));
  return send(gateway.endpoint('u'), { headers: [...kept.flat(), ...added], body });
}

const CONTRADICTIONS: [string, string, RpcOptions, Record<string, string[]>][] = [
  ['another method', 'tools/list', {}, { 'mcp-method': ['tools/call'] }],
  ['the method in another case', 'tools/list', {}, { 'mcp-method': ['Tools/List'] }],
  ['an empty method', 'tools/list', {}, { 'mcp-method': [''] }],
  ['the method and another', 'tools/list', {}, { 'mcp-method': ['tools/list', 'tools/call'] }],
  ['an older version than the body', 'tools/list', {}, { 'mcp-protocol-version': ['2025-11-25'] }],
  ['a later version than the body', 'tools/list', {}, { 'mcp-protocol-version': ['2027-01-01'] }],
  [
    'a modern version before a body of the older era',
    'tools/list',
    { version: '2025-11-25' },
    { 'mcp-protocol-version': ['2026-07-28'] },
  ],
  ['another tool', 'tools/call', TOOL, { 'mcp-name': ['other'] }],
  ['another prompt', 'prompts/get', { params: { name: 'p' } }, { 'mcp-name': ['q'] }],
  ['another resource', 'resources/read', { params: { uri: 'file:///a' } }, { 'mcp-name': ['file:///b'] }],
  [
    'a resource in another spelling',
    'resources/read',
    { params: { uri: 'file:///a' } },
    { 'mcp-name': ['FILE:///a'] },
  ],
  ['another name, encoded', 'tools/call', TOOL, { 'mcp-name': [base64('a tool')] }],
  ['a name whose encoding is broken', 'tools/call', TOOL, { 'mcp-name': ['=?base64?w6Qg=dG9vbA?='] }],
  [
    'an encoded name that is taken for itself',
    'tools/call',
    { params: { name: base64('x') } },
    { 'mcp-name': [base64('x')] },
  ],
  ['a method of its own making', 'example/do', {}, { 'mcp-method': ['example/undo'] }],
];

describe('a modern request whose headers name', () => {
  test.each(CONTRADICTIONS)(
    '%s is refused, and the upstream is not asked',
    async (_title, method, options, changed) => {
      const scenario = await start(catalogue());
      const answer = await ask(scenario, method, { id: 'r-1', ...options }, changed);
      expect(answer.status).toBe(400);
      expect(JSON.parse(answer.text)).toMatchObject({ jsonrpc: '2.0', id: 'r-1', error: { code: -32020 } });
      expect(scenario.upstream.count()).toBe(0);
    },
  );
});

describe('a refusal', () => {
  test('is JSON-RPC under the request’s id, digit for digit, and says which header it was', async () => {
    const scenario = await start(catalogue());
    for (const id of [0, -5, 9007199254740991, '', '1', 'ÿ']) {
      const { headers, text } = await ask(scenario, 'tools/list', { id }, { 'mcp-method': ['x'] });
      expect(valuesOf(headers, 'content-type')).toEqual(['application/json']);
      const { error, ...rest } = JSON.parse(text);
      expect(rest).toStrictEqual({ jsonrpc: '2.0', id });
      expect(error.message).toContain('Mcp-Method');
    }
  });

  test('repeats nothing of what was sent', async () => {
    const scenario = await start(catalogue());
    const { text } = await ask(scenario, 'tools/call', TOOL, { 'mcp-name': ['secret-name'] });
    expect(text).not.toContain('secret-name');
  });

  test('bears Cache-Status where the method is a cacheable one, and only there', async () => {
    const scenario = await start(catalogue());
    const list = await ask(scenario, 'tools/list', {}, { 'mcp-method': ['x'] });
    expect(valuesOf(list.headers, 'cache-status')).toEqual(['mcp-cache-gateway; detail=header-mismatch']);
    const call = await ask(scenario, 'tools/call', TOOL, { 'mcp-name': ['x'] });
    expect(valuesOf(call.headers, 'cache-status')).toEqual([]);
  });
});

describe('what contradicts nothing goes on', () => {
  const FINE: [string, string, RpcOptions, Record<string, string[]>][] = [
    ['names in full', 'tools/call', { params: { name: 'get_weather' } }, {}],
    ['a name that is encoded', 'tools/call', TOOL, { 'mcp-name': [base64('ä tool')] }],
    [
      'a plain name that is encoded',
      'tools/call',
      { params: { name: 'plain' } },
      { 'mcp-name': [base64('plain')] },
    ],
    [
      'a name that looks encoded, encoded',
      'tools/call',
      { params: { name: base64('x') } },
      { 'mcp-name': [base64(base64('x'))] },
    ],
    ['the same method twice', 'tools/call', TOOL, { 'mcp-method': ['tools/call', 'tools/call'] }],
    ['no method', 'tools/call', TOOL, { 'mcp-method': [] }],
    ['no name', 'tools/call', TOOL, { 'mcp-name': [] }],
    ['no version', 'tools/call', TOOL, { 'mcp-protocol-version': [] }],
    ['a name where the method has none', 'tools/list', {}, { 'mcp-name': ['x'] }],
    ['a parameter', 'tools/call', TOOL, { 'mcp-param-region': ['x'] }],
    ['a version that is no date', 'tools/list', { version: 'DRAFT' }, { 'mcp-method': ['x'] }],
    ['an older version', 'tools/list', { era: 'legacy' }, { 'mcp-method': ['x'], 'mcp-name': ['y'] }],
  ];

  test.each(FINE)('with %s', async (_title, method, options, changed) => {
    const scenario = await start((_request, res) => sendJson(res, '{"verdict":1}', 418));
    const answer = await ask(scenario, method, options, changed);
    expect([answer.status, answer.text]).toEqual([418, '{"verdict":1}']);
    const [request] = scenario.upstream.requests;
    for (const [name, values] of Object.entries(changed)) {
      expect(valuesOf(request?.rawHeaders ?? [], name), 'as it was sent').toEqual(values);
    }
  });

  test.each([
    ['a notification', '{"jsonrpc":"2.0","method":"notifications/initialized"}'],
    ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]'],
    ['an answer', '{"jsonrpc":"2.0","id":1,"result":{}}'],
    ['what is no JSON', '{"method":'],
  ])('where it is %s', async (_title, body) => {
    const { gateway, upstream } = await start((_request, res) => sendJson(res, '{}'));
    const headers = rawFields({ ...rpcRequest('tools/list').headers, 'mcp-method': 'x' });
    expect((await send(gateway.endpoint('u'), { headers, body })).status).toBe(200);
    expect(upstream.requests[0]?.body.toString()).toBe(body);
  });
});
