import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { upstreamHeaders } from '../../src/core/headers.js';
import { type AuthContextParts, authContextOf, cacheKeys, type KeyParts } from '../../src/core/key.js';
import { cacheable } from '../support/core.js';

const NO_INJECTION = { headers: {} };
const PARTS: KeyParts = {
  upstream: { name: 'u', url: 'http://u/mcp' },
  query: '',
  request: cacheable('tools/list'),
  headers: [],
  varyHeaders: [],
};
const keysOf = (change: Partial<KeyParts> = {}, context = 'c') => cacheKeys({ ...PARTS, ...change }, context);
const sharedOf = (change: Partial<KeyParts> = {}) => keysOf(change).shared;
const readKey = (uri: string) =>
  sharedOf({ request: cacheable('resources/read', { era: 'legacy', params: { uri } }) });

function allDifferent(keys: readonly string[]): void {
  expect(new Set(keys).size).toBe(keys.length);
}

describe('what shares a key (law 3, C59)', () => {
  test('id, key order, neutral _meta and the headers of no meaning do not split it', () => {
    const [one, other] = [
      cacheable('tools/list', { id: 1, params: { a: 1, b: { c: 2, d: 3 } } }),
      cacheable('tools/list', {
        id: 'x',
        params: { b: { d: 3, c: 2 }, a: 1 },
        meta: {
          progressToken: 7,
          'io.modelcontextprotocol/clientInfo': { name: 'another', version: '9' },
          'io.modelcontextprotocol/logLevel': 'debug',
          traceparent: 't',
          tracestate: 's',
          baggage: 'b',
        },
        headers: { 'user-agent': 'x' },
      }),
    ];
    expect(sharedOf({ request: other, headers: ['User-Agent', 'x'] })).toBe(sharedOf({ request: one }));
  });

  test('method, version, capabilities, params and unknown _meta split it', () => {
    const requests = [
      cacheable('tools/list'),
      cacheable('prompts/list'),
      cacheable('tools/list', { version: '2026-09-01' }),
      cacheable('tools/list', { era: 'legacy' }),
      cacheable('tools/list', { era: 'legacy', version: '2025-06-18' }),
      cacheable('tools/list', { meta: { 'io.modelcontextprotocol/clientCapabilities': { roots: {} } } }),
      cacheable('tools/list', { params: { folder: 'a' } }),
      cacheable('tools/list', { params: { folder: 'b' } }),
      cacheable('tools/list', { meta: { 'com.example/folder': 'a' } }),
    ];
    allDifferent(requests.map((request) => sharedOf({ request })));
  });

  test('every spelling of a uri is a resource of its own', () => {
    allDifferent(
      [
        'file:///a%2Fb',
        'file:///a%2fb',
        'file:///a/b',
        'FILE:///a/b',
        'file:///a/./b',
        'file:///a/b/',
        'x:\u00e9',
        'x:e\u0301',
        '__proto__',
        'constructor',
        '',
        '\ud800',
        '\ud801',
        '\ufffd',
      ].map(readKey),
    );
  });

  test('name, URL and query of the upstream are its identity (C17)', () => {
    allDifferent([
      sharedOf(),
      sharedOf({ upstream: { name: 'v', url: 'http://u/mcp' } }),
      sharedOf({ upstream: { name: 'u', url: 'http://u/mcp/' } }),
      sharedOf({ upstream: { name: 'u', url: 'http://u/MCP' } }),
      sharedOf({ upstream: { name: 'u', url: 'http://u/mcp?toolsets=core,alerting' } }),
      sharedOf({ upstream: { name: 'u', url: 'http://u/mcp?toolsets=core' } }),
      sharedOf({ query: 'folder=a' }),
      sharedOf({ query: 'folder=b' }),
      sharedOf({ query: 'folder=a&' }),
    ]);
  });

  test('VARY_HEADERS split it by value, and by presence', () => {
    const vary = (headers: string[], varyHeaders = ['x-a', 'x-b']) => sharedOf({ headers, varyHeaders });
    allDifferent([
      vary([]),
      vary(['X-A', '']),
      vary(['X-A', '1']),
      vary(['X-B', '1']),
      vary(['X-A', '1', 'X-B', '1']),
      vary(['X-A', '1', 'X-A', '1']),
      vary(['X-A', '1,1']),
    ]);
    expect(vary(['x-a', '1', 'X-B', '2', 'other', '3'])).toBe(vary(['X-b', '2', 'X-A', '1']));
    expect(vary(['X-A', '1'], [])).toBe(vary([], []));
  });

  test('no part can pose as two', () => {
    const text = fc.oneof(
      fc.constantFrom('', '"', '","', '\\', '\\"', '[]', ',', '\n', 'a', 'null', '\u0000', '[["a"]]'),
      fc.string({ unit: 'binary', maxLength: 4 }),
    );
    const parts = fc.record({ name: text, url: text, query: text, folder: text, a: text, b: text });
    const keyOf = (p: { name: string; url: string; query: string; folder: string; a: string; b: string }) =>
      sharedOf({
        upstream: { name: p.name, url: p.url },
        query: p.query,
        request: cacheable('tools/list', { params: { folder: p.folder } }),
        headers: ['x-a', p.a, 'x-b', p.b],
        varyHeaders: ['x-a', 'x-b'],
      });
    const isSame = (p: object, q: object) => JSON.stringify(p) === JSON.stringify(q);
    fc.assert(
      fc.property(parts, parts, (p, q) => {
        expect(keyOf(p) === keyOf(q)).toBe(isSame(p, q));
      }),
      { numRuns: 500 },
    );
    // The same letters, cut elsewhere.
    fc.assert(
      fc.property(text, text, text, (x, y, z) => {
        const p = { name: x + y, url: z, query: '', folder: x, a: y, b: z };
        const q = { name: x, url: y + z, query: '', folder: x, a: y, b: z };
        expect(keyOf(p) === keyOf(q)).toBe(isSame(p, q));
      }),
      { numRuns: 500 },
    );
  });
});

describe('private entries add the authorization context (law 3, law 8)', () => {
  test('contexts share the shared key and have keys of their own', () => {
    const [a, b] = [keysOf({}, 'a'), keysOf({}, 'b')];
    expect(a.shared).toBe(b.shared);
    allDifferent([a.shared, a.own, b.own]);
  });

  test('one context has different keys for different requests', () => {
    const other = keysOf({ request: cacheable('prompts/list') }, 'c');
    allDifferent([keysOf().own, other.own, keysOf().shared, other.shared]);
  });
});

describe('the authorization context (law 8, C14)', () => {
  const contextOf = (headers: string[], change: Partial<AuthContextParts> = {}) =>
    authContextOf({
      headers,
      authHeaders: ['authorization', 'cookie', 'x-api-key'],
      injected: NO_INJECTION,
      era: 'modern',
      ...change,
    });

  test('each set of credentials is one of its own, none at all included', () => {
    allDifferent([
      contextOf([]),
      contextOf(['Authorization', 'Bearer a']),
      contextOf(['Authorization', 'Bearer b']),
      contextOf(['Authorization', '']),
      contextOf(['Cookie', 'Bearer a']),
      contextOf(['X-Api-Key', 'Bearer a']),
      contextOf(['Authorization', 'Bearer a', 'Cookie', 's=1']),
      contextOf(['Authorization', 'Bearer a', 'Authorization', 'Bearer b']),
      contextOf(['Authorization', 'Bearer a,Bearer b']),
    ]);
  });

  test('name case, place and other fields make no difference', () => {
    const plain = contextOf(['authorization', 'Bearer a', 'cookie', 's=1']);
    expect(contextOf(['COOKIE', 's=1', 'User-Agent', 'x', 'Authorization', 'Bearer a'])).toBe(plain);
  });

  test('no credential can pose as another field', () => {
    allDifferent([
      contextOf(['Authorization', 'a","cookie","b']),
      contextOf(['Authorization', 'a', 'Cookie', 'b']),
      contextOf(['Authorization', 'a"],["cookie","b']),
    ]);
  });

  test('the session of a legacy request belongs to it, and of a modern one does not (C20)', () => {
    const session = (id: string, era: 'modern' | 'legacy') => contextOf(['Mcp-Session-Id', id], { era });
    allDifferent([session('s1', 'legacy'), session('s2', 'legacy'), contextOf([], { era: 'legacy' })]);
    expect(session('s1', 'modern')).toBe(contextOf([]));
  });

  test('AUTH_HEADERS decides which fields count', () => {
    const tenant = (value: string, authHeaders: string[]) => contextOf(['X-Tenant', value], { authHeaders });
    expect(tenant('a', ['x-tenant'])).not.toBe(tenant('b', ['x-tenant']));
    expect(tenant('a', ['authorization'])).toBe(tenant('b', ['authorization']));
  });

  test('credentials that the gateway injects count', () => {
    const asSent = (client: string[], injected: AuthContextParts['injected']) =>
      contextOf(upstreamHeaders(client, injected), { injected });
    const token = { authorization: 'Bearer gateway', headers: {} };
    expect(asSent([], token)).not.toBe(asSent([], NO_INJECTION));
    expect(asSent([], token)).toBe(asSent(['Authorization', 'Bearer gateway'], token));
    expect(asSent(['Authorization', 'Bearer a'], token)).not.toBe(asSent([], token));
    const tenant = (value: string) => ({ headers: { 'x-tenant': value } });
    allDifferent([asSent([], tenant('a')), asSent([], tenant('b')), asSent([], NO_INJECTION)]);
  });

  test('a credential that does not reach the upstream does not count (C43)', () => {
    const client = ['Authorization', 'Bearer a', 'Connection', 'Authorization'];
    expect(contextOf(upstreamHeaders(client, NO_INJECTION))).toBe(contextOf([]));
  });

  test('no key shows a credential', () => {
    const context = contextOf(['Authorization', 'Bearer s3cret']);
    const keys = keysOf({ query: 'key=s3cret', headers: ['X-A', 's3cret'], varyHeaders: ['x-a'] }, context);
    for (const value of [context, keys.shared, keys.own, keys.authContext]) {
      expect(value).toMatch(/^[A-Za-z0-9_-]{43}$/);
    }
  });
});

describe('legacy requests with and without a session (C20)', () => {
  test('a request without a session does not share with those that have one', () => {
    const request = cacheable('tools/list', { era: 'legacy' });
    const session = (id: string) => sharedOf({ request, headers: ['Mcp-Session-Id', id] });
    expect(session('s1')).toBe(session('s2'));
    expect(session('s1')).not.toBe(sharedOf({ request }));
  });
});
