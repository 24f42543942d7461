import { describe, expect, test } from 'vitest';
import { filterHeaders } from '../../src/core/headers.js';
import { cacheable, classifyRpc, classifyText, rawHeaders } from '../support/core.js';

const CACHEABLE = [
  'resources/list',
  'resources/templates/list',
  'tools/list',
  'prompts/list',
  'resources/read',
  'server/discover',
] as const;
const paramsOf = (method: string) => (method === 'resources/read' ? { uri: 'file:///a' } : {});
const without = (headers: readonly string[], name: string) => filterHeaders(headers, (n) => n !== name);
const bypass = (reason: string) => ({ kind: 'bypass', reason });

describe.each(['modern', 'legacy'] as const)('methods of a %s client (law 1)', (era) => {
  test.each(CACHEABLE)('%s is cacheable', (method) => {
    expect(cacheable(method, { era, params: paramsOf(method) })).toMatchObject({ method, era });
  });

  test.each([
    'tools/call',
    'prompts/get',
    'completion/complete',
    'initialize',
    'ping',
    'subscriptions/listen',
    'Tools/list',
    'tools/list ',
    'tools/list/',
    '__proto__',
    'constructor',
    'toString',
    '',
  ])('%j passes through', (method) => {
    expect(classifyRpc(method, { era, params: { name: 'x' } })).toEqual(bypass('not-cacheable-method'));
  });

  test.each([
    { inputResponses: {} },
    { inputResponses: null },
    { requestState: 'x' },
    { requestState: null },
  ])('a request that carries %j passes through', (params) => {
    expect(classifyRpc('tools/list', { era, params })).toEqual(bypass('multi-round-trip'));
  });

  test.each(['p2', '', 'a+b/c==é'])(
    'the client’s own cursor %j is told, and no part of the key (C05)',
    (cursor) => {
      const [whole, page] = [{}, { cursor }].map((params) => classifyRpc('tools/list', { era, params }));
      expect(page).toMatchObject({ kind: 'cacheable', cursor });
      expect(whole).toMatchObject({ kind: 'cacheable', cursor: undefined });
      expect(page).toHaveProperty('paramsText', whole?.kind === 'cacheable' ? whole.paramsText : '');
    },
  );

  test.each([0, false, {}])('a cursor of %j passes through', (cursor) => {
    expect(classifyRpc('tools/list', { era, params: { cursor } })).toEqual(bypass('has-cursor'));
  });

  test('a cursor of what is no list passes through', () => {
    const params = { uri: 'file:///a', cursor: 'p2' };
    expect(classifyRpc('resources/read', { era, params })).toEqual(bypass('has-cursor'));
  });

  test('a request beyond 64 KiB passes through, whatever it asks', () => {
    const params = { filter: 'x'.repeat(65_536) };
    expect(classifyRpc('tools/list', { era, params })).toEqual(bypass('large-request'));
  });

  test('a request with a member that JSON-RPC does not have passes through', () => {
    const withMember = ({ body }: { body: string }) => ({ body: body.replace('{', '{"session":"s",') });
    expect(classifyRpc('tools/list', { era }, withMember)).toEqual(bypass('unexpected-member'));
  });

  test('a cursor of null is none', () => {
    expect(classifyRpc('tools/list', { era, params: { cursor: null } }).kind).toBe('cacheable');
  });

  test.each([null, 1.5, 2 ** 53, true, ['a']])('the id %j passes through', (id) => {
    expect(classifyRpc('tools/list', { era, id })).toEqual(bypass('unusable-id'));
  });

  test('a list without id passes through', () => {
    const classified = classifyRpc('tools/list', { era }, ({ body }) => ({
      body: body.replace('"id":1,', ''),
    }));
    expect(classified).toEqual(bypass('notification'));
  });

  test.each([
    ['a batch of one', (body: string) => `[${body}]`, 'batch'],
    ['an empty batch', () => '[]', 'batch'],
    ['malformed JSON', (body: string) => body.slice(1), 'not-json-rpc'],
    [
      'a doubled param',
      (body: string) => body.replace('"params":{', '"params":{"x":1,"x":2,'),
      'ambiguous-params',
    ],
    [
      'a doubled key within a param',
      (body: string) => body.replace('"params":{', '"params":{"x":{"a":1,"\\u0061":2},'),
      'ambiguous-params',
    ],
  ])('%s passes through (C37, C38)', (_name, respell, reason) => {
    const classified = classifyRpc('tools/list', { era, params: { y: 1 } }, ({ body }) => ({
      body: respell(body),
    }));
    expect(classified).toEqual(bypass(reason));
  });

  test.each([undefined, 1, null, ['file:///a'], {}])('a read of the uri %j passes through', (uri) => {
    const classified = classifyRpc('resources/read', {
      era,
      params: { uri },
      headers: { 'mcp-name': 'file:///a' },
    });
    expect(classified.kind).not.toBe('cacheable');
  });

  test.each([
    '__proto__',
    'constructor',
    'toString',
    'file:///a%2Fb',
    'FILE:///a/./b',
    'x:\u00e9',
    'x:e\u0301',
  ])('the uri %j is kept to the letter (C39, C59)', (uri) => {
    expect(cacheable('resources/read', { era, params: { uri } }).uri).toBe(uri);
  });

  test.each([
    ['no Content-Type', (h: readonly string[]) => without(h, 'content-type')],
    [
      'another Content-Type',
      (h: readonly string[]) => [...without(h, 'content-type'), 'content-type', 'text/plain'],
    ],
    ['two Content-Types', (h: readonly string[]) => [...h, 'Content-Type', 'application/json']],
    ['a packed body', (h: readonly string[]) => [...h, 'content-encoding', 'gzip']],
    ['no Accept', (h: readonly string[]) => without(h, 'accept')],
    ['half an Accept', (h: readonly string[]) => [...without(h, 'accept'), 'accept', 'application/json']],
    [
      'an Accept of q=0',
      (h: readonly string[]) => [
        ...without(h, 'accept'),
        'accept',
        'application/json, text/event-stream;q=0',
      ],
    ],
  ])('%s passes through, for a server may refuse its form', (_name, change) => {
    const classified = classifyRpc('tools/list', { era }, ({ headers }) => ({ headers: change(headers) }));
    expect(classified).toEqual(bypass('incomplete-request'));
  });

  test.each([
    ['a charset', { 'content-type': 'Application/JSON; charset=utf-8' }],
    ['Accept in another order and case', { accept: 'Text/Event-Stream;q=0.5, APPLICATION/json' }],
  ])('%s is no reason to pass', (_name, headers) => {
    expect(classifyRpc('tools/list', { era, headers })).toMatchObject({ kind: 'cacheable' });
  });
});

describe('what of the params counts (law 3, C59)', () => {
  const texts = (options: Parameters<typeof cacheable>[1]) => {
    const { paramsText, metaText } = cacheable('tools/list', { era: 'legacy', ...options });
    return [paramsText, metaText];
  };

  test('absent and empty params are the same', () => {
    const headers = rawHeaders({
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    });
    const absent = classifyText('{"jsonrpc":"2.0","id":1,"method":"tools/list"}', headers);
    const empty = classifyText('{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}', headers);
    const bareMeta = classifyText(
      '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{}}}',
      headers,
    );
    for (const classified of [absent, empty, bareMeta]) {
      expect(classified).toMatchObject({
        kind: 'cacheable',
        paramsText: '{}',
        metaText: '{}',
        version: undefined,
      });
    }
  });

  test.each([
    ['progressToken', 'p1'],
    ['io.modelcontextprotocol/clientInfo', { name: 'other', version: '2' }],
    ['io.modelcontextprotocol/logLevel', 'debug'],
    ['traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'],
    ['tracestate', 'a=b'],
    ['baggage', 'k=v'],
  ])('%s in _meta is neutral', (key, value) => {
    expect(texts({ meta: { [key]: value } })).toEqual(texts({}));
  });

  test.each([
    ['io.modelcontextprotocol/clientCapabilities', { roots: {} }],
    ['io.modelcontextprotocol/protocolVersion', '2025-06-18'],
    ['com.example/tenant', 'b'],
    ['ProgressToken', 'p1'],
    ['__proto__', 1],
  ])('%s in _meta counts', (key, value) => {
    const meta = JSON.parse(`{${JSON.stringify(key)}:${JSON.stringify(value)}}`);
    expect(texts({ meta })[1]).not.toBe(texts({})[1]);
  });

  test('an unknown param counts', () => {
    expect(texts({ params: { folder: 'a' } })[0]).not.toBe(texts({ params: { folder: 'b' } })[0]);
  });

  test('no params text holds _meta', () => {
    expect(texts({ params: { a: 1 }, meta: { 'com.example/tenant': 'b' } })).toEqual([
      '{"a":1}',
      '{"com.example/tenant":"b"}',
    ]);
  });
});
