/** Paths and methods of the two listeners: design, section 2; cases C50 (a), C54 (HEAD), C67. */
import Fastify from 'fastify';
import { describe, expect, test } from 'vitest';
import { registerHealth } from '../../src/http/admin.js';
import { rpcRequest } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { catalogue } from '../support/lists.js';
import { openWire, rawFields, send, wireText } from '../support/raw.js';
import { useScenario } from '../support/scenario.js';
import { type Respond, sendJson } from '../support/upstream.js';

const start = useScenario();
const closing = useClosers();

const LIST = { headers: rawFields(rpcRequest('tools/list').headers), body: rpcRequest('tools/list').body };
const echo: Respond = (request, res) => sendJson(res, { method: request.httpMethod, url: request.url });
const METHODS = ['POST', 'GET', 'DELETE'] as const;

describe('the MCP endpoint of an upstream', () => {
  test.each(METHODS)('takes %s under its name, with a slash at the end as without', async (method) => {
    const { gateway, upstream } = await start(echo, { second: echo });
    for (const path of ['/mcp/u', '/mcp/u/']) {
      const answer = await send(`${gateway.url}${path}`, { method });
      expect([answer.status, answer.text]).toEqual([200, JSON.stringify({ method, url: '/mcp' })]);
    }
    expect(upstream.count()).toBe(2);
  });

  test.each(METHODS)('takes %s at /mcp where there is one upstream', async (method) => {
    const { gateway, upstream } = await start(echo);
    for (const path of ['/mcp', '/mcp/']) {
      expect((await send(`${gateway.url}${path}`, { method })).status).toBe(200);
    }
    expect(upstream.count()).toBe(2);
  });

  test('is the same under both: one cache', async () => {
    const { gateway, upstream } = await start(catalogue());
    for (const path of ['/mcp', '/mcp/', '/mcp/u', '/mcp/u/']) await send(`${gateway.url}${path}`, LIST);
    expect(upstream.count()).toBe(1);
  });

  test.each(METHODS)('does not take %s at /mcp where there are several', async (method) => {
    const { gateway, upstream, second } = await start(echo, { second: echo });
    expect((await send(`${gateway.url}/mcp`, { method })).status).toBe(404);
    expect([upstream.count(), second.count()]).toEqual([0, 0]);
  });

  test('is found by a target in absolute form as well (RFC 9112 section 3.2.2)', async () => {
    const { gateway, upstream } = await start(catalogue());
    const wire = closing(await openWire(gateway.url));
    const { headers, body } = rpcRequest('tools/list');
    wire.write(wireText(`${gateway.url}/mcp/u`, headers, body).replace(' /mcp/u ', ` ${gateway.url}/mcp/u `));
    await wire.sees('HTTP/1.1 200');
    expect(upstream.count()).toBe(1);
  });

  test('answers OPTIONS with what it takes, and only where there is a path', async () => {
    const { gateway } = await start(echo, { second: echo });
    for (const headers of [[], ['origin', 'http://localhost', 'access-control-request-method', 'POST']]) {
      const statusAt = async (path: string) =>
        (await send(`${gateway.url}${path}`, { method: 'OPTIONS', headers })).status;
      const there = ['/mcp/u', '/mcp/u/', '/.well-known/oauth-protected-resource/mcp/u'];
      expect(await Promise.all(there.map(statusAt))).toEqual([204, 204, 204]);
      const nowhere = ['/mcp', '/mcp/none', '/nope', '/.well-known/oauth-protected-resource', '/mcp/u%zz'];
      expect(await Promise.all(nowhere.map(statusAt))).toEqual([404, 404, 404, 404, 404]);
    }
  });

  test.each(['PUT', 'PATCH', 'HEAD', 'PROPFIND', 'TRACE'])(
    'answers %s with 405 and what it takes',
    async (method) => {
      const { gateway, upstream } = await start(echo);
      for (const path of ['/mcp', '/mcp/u', '/mcp/u/']) {
        const { status, headers, isWhole } = await send(`${gateway.url}${path}`, { method });
        expect([status, isWhole]).toEqual([405, true]);
        const allow = headers[headers.indexOf('Allow') + 1]?.split(', ');
        expect(allow).toEqual(expect.arrayContaining(['POST', 'GET', 'DELETE']));
        expect(allow).not.toContain(method);
      }
      expect(upstream.count()).toBe(0);
    },
  );
});

describe('the path that is asked of the upstream (C50)', () => {
  test.each(['/mcp', '/mcp/', '/', '/a/b/mcp', '/a%2Fb/./mcp', '/mcp?toolsets=core,alerting', '/mcp/?a=%2c'])(
    'is the configured one, %s',
    async (path) => {
      const { gateway, upstream } = await start(echo, { path });
      await send(gateway.endpoint('u'));
      await send(`${gateway.endpoint('u')}/`);
      expect(upstream.requests.map(({ url }) => url)).toEqual([path, path]);
    },
  );

  test.each([
    ['/mcp', '?folder=a&folder=%2F', '/mcp?folder=a&folder=%2F'],
    ['/mcp?x=1,2', '?folder=a?b', '/mcp?x=1,2&folder=a?b'],
  ])('%s is followed by the client’s own query', async (path, query, expected) => {
    const { gateway, upstream } = await start(echo, { path });
    await send(`${gateway.endpoint('u')}${query}`);
    expect(upstream.requests[0]?.url).toBe(expected);
  });
});

describe('any other path of the MCP listener', () => {
  const PATHS = [
    '/',
    '/mcp/other',
    '/mcp/u/more',
    '/mcp//u',
    '/MCP/u',
    '/mcp/U',
    '/mcpu',
    '/mcp/u%2F',
    '/mcp/%75',
  ];
  const ADMIN = ['/healthz', '/readyz', '/metrics', '/cache', '/cache/flush'];

  test.each([...PATHS, ...ADMIN])('%s is 404', async (path) => {
    const { gateway, upstream } = await start(echo);
    for (const method of ['GET', 'POST', 'PUT', 'HEAD']) {
      const { status, text, isWhole } = await send(`${gateway.url}${path}`, { method });
      expect([method, status, isWhole]).toEqual([method, 404, true]);
      if (method !== 'HEAD') expect(JSON.parse(text)).toMatchObject({ jsonrpc: '2.0', error: { code: 404 } });
    }
    expect(upstream.count()).toBe(0);
  });

  test('is 404 also for names that every object has', async () => {
    const { gateway } = await start(echo);
    for (const path of ['/mcp/__proto__', '/mcp/constructor', '/mcp/toString']) {
      expect((await send(`${gateway.url}${path}`)).status).toBe(404);
    }
  });

  test('is 404 for a broken percent-encoding as well, or 400', async () => {
    const { gateway, upstream } = await start(echo);
    for (const path of ['/mcp/%', '/mcp/%zz', '/%c0%af']) {
      expect([400, 404]).toContain((await send(`${gateway.url}${path}`)).status);
    }
    expect(upstream.count()).toBe(0);
  });
});

describe('the admin listener', () => {
  test('tells that the process lives and can serve, whatever becomes of its upstream', async () => {
    const { gateway, upstream } = await start(echo);
    await upstream.close();
    for (const path of ['/healthz', '/readyz']) {
      const { status, text } = await send(`${gateway.adminUrl}${path}`, { method: 'GET' });
      expect([path, status]).toEqual([path, 200]);
      expect(text).not.toBe('');
    }
  });

  test('has no part in MCP', async () => {
    const { gateway, upstream } = await start(echo);
    for (const path of ['/mcp', '/mcp/u']) {
      expect((await send(`${gateway.adminUrl}${path}`, LIST)).status).toBe(404);
    }
    expect(upstream.count()).toBe(0);
  });

  test('tells that it cannot serve while that is so', async () => {
    let isReady = false;
    const app = Fastify();
    registerHealth(app, () => isReady);
    const ask = async (url: string) => (await app.inject({ url })).statusCode;
    expect([await ask('/readyz'), await ask('/healthz')]).toEqual([503, 200]);
    isReady = true;
    expect(await ask('/readyz')).toBe(200);
    await app.close();
  });
});
