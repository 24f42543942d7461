import { request } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { rpc, rpcRequest } from '../support/client.js';
import { type RunningGateway, startGateway } from '../support/gateway.js';
import {
  goodResult,
  type ScriptedUpstream,
  sendJson,
  sendResult,
  startUpstream,
} from '../support/upstream.js';

let upstream: ScriptedUpstream;
let gateway: RunningGateway;

beforeEach(async () => {
  upstream = await startUpstream((req, res) => sendResult(res, req, goodResult({ tools: [{ name: 't' }] })));
  gateway = await startGateway({ upstreams: { u: upstream.url } });
});

afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** A request whose fields go out exactly as they are given, doubles included. */
function raw(url: string, method: string, headers: readonly string[], body = ''): Promise<RawAnswer> {
  const { hostname, port, pathname } = new URL(url);
  return new Promise((resolve, reject) => {
    const host = headers.some((name, i) => i % 2 === 0 && name.toLowerCase() === 'host')
      ? []
      : ['Host', `${hostname}:${port}`];
    const length = body === '' ? [] : ['Content-Length', String(Buffer.byteLength(body))];
    const req = request(
      { hostname, port, path: pathname, method, headers: [...host, ...length, ...headers] },
      (res) => {
        const chunks: Buffer[] = [];
        res.on('data', (chunk: Buffer) => chunks.push(chunk));
        res.on('end', () =>
          resolve({
            status: res.statusCode ?? 0,
            headers: res.headers,
            body: Buffer.concat(chunks).toString(),
          }),
        );
      },
    );
    req.on('error', reject);
    req.end(body);
  });
}

function listWith(fields: readonly string[]): Promise<RawAnswer> {
  const { headers, body } = rpcRequest('tools/list');
  return raw(gateway.endpoint('u'), 'POST', [...Object.entries(headers).flat(), ...fields], body);
}

describe('Origin and Host come before the cache (C52)', () => {
  test.each([
    ['an origin on this machine', ['Origin', 'http://localhost:3000']],
    ['an origin on this machine by IPv6', ['Origin', 'http://[::1]:3000']],
    ['no origin', []],
    ['a loopback Host', ['Host', 'localhost:1234']],
  ])('lets in %s', async (_title, fields) => {
    await rpc(gateway.endpoint('u'), 'tools/list');
    const answer = await listWith(fields);
    expect(answer.status).toBe(200);
    expect(answer.headers['cache-status']).toContain('hit');
  });

  test.each([
    ['null', ['Origin', 'null']],
    ['a foreign origin', ['Origin', 'https://evil.example']],
    ['a look-alike of localhost', ['Origin', 'http://localhost.evil.example']],
    ['a look-alike of 127.0.0.1', ['Origin', 'http://127.0.0.1.evil.example']],
    ['two origins', ['Origin', 'http://localhost:1', 'Origin', 'http://localhost:1']],
    ['a foreign Host', ['Host', 'evil.example']],
    ['a look-alike Host', ['Host', 'localhost.evil.example']],
  ])('refuses %s with 403 and no data, on a hit as on a miss', async (_title, fields) => {
    const miss = await listWith(fields);
    expect(miss.status).toBe(403);
    expect(upstream.count()).toBe(0);
    await rpc(gateway.endpoint('u'), 'tools/list');
    const hit = await listWith(fields);
    expect(hit.status).toBe(403);
    expect(hit.body).not.toContain('tools');
    expect(upstream.count()).toBe(1);
    expect((await raw(`${gateway.adminUrl}/healthz`, 'GET', fields)).status).toBe(403);
  });

  test('lets in what ALLOWED_ORIGINS and ALLOWED_HOSTS name, and nothing else', async () => {
    const other = await startGateway({
      upstreams: { u: upstream.url },
      env: { ALLOWED_ORIGINS: 'https://app.example', ALLOWED_HOSTS: 'mcp.example' },
    });
    const { headers, body } = rpcRequest('tools/list');
    const ask = (fields: readonly string[]) =>
      raw(other.endpoint('u'), 'POST', [...Object.entries(headers).flat(), ...fields], body);
    expect((await ask(['Host', 'mcp.example:80', 'Origin', 'https://app.example'])).status).toBe(200);
    expect((await ask(['Host', 'mcp.example', 'Origin', 'http://localhost:1'])).status).toBe(403);
    expect((await ask(['Host', 'localhost'])).status).toBe(403);
    await other.close();
  });
});

describe('browsers (C51)', () => {
  test('a preflight is answered here, with what was asked for allowed', async () => {
    const asked = 'content-type, authorization, mcp-protocol-version, mcp-method, mcp-name, mcp-param-region';
    const answer = await raw(gateway.endpoint('u'), 'OPTIONS', [
      ...['Origin', 'http://localhost:3000', 'Access-Control-Request-Method', 'POST'],
      ...['Access-Control-Request-Headers', asked],
    ]);
    expect(answer.status).toBe(204);
    expect(answer.headers['access-control-allow-origin']).toBe('http://localhost:3000');
    expect(answer.headers['access-control-allow-headers']).toBe(asked);
    expect(answer.headers['access-control-allow-methods']).toContain('DELETE');
    expect(upstream.count()).toBe(0);
  });

  test('every answer exposes what scripts need, once, for its own origin', async () => {
    upstream.respond = (req, res) =>
      req.json.method === 'tools/list'
        ? sendResult(res, req, goodResult({ tools: [] }), { 'access-control-allow-origin': '*' })
        : sendJson(res, {}, 401, { 'www-authenticate': 'Bearer' });
    const miss = await listWith(['Origin', 'http://localhost:1']);
    const hit = await listWith(['Origin', 'http://localhost:2']);
    const { headers, body } = rpcRequest('tools/call', { params: { name: 'x' } });
    const fields = [...Object.entries(headers).flat(), 'Origin', 'http://localhost:3'];
    const refused = await raw(gateway.endpoint('u'), 'POST', fields, body);
    await upstream.close();
    const failed = await raw(gateway.endpoint('u'), 'POST', fields, body);
    expect([miss.status, hit.status, refused.status, failed.status]).toEqual([200, 200, 401, 502]);
    expect(hit.headers['cache-status']).toContain('hit');
    for (const [i, answer] of [miss, hit, refused].entries()) {
      expect(answer.headers['access-control-allow-origin']).toBe(`http://localhost:${i + 1}`);
      expect(answer.headers['access-control-expose-headers']).toContain('Mcp-Session-Id');
      expect(answer.headers.vary).toContain('Origin');
    }
    expect(failed.headers['access-control-allow-origin']).toBe('http://localhost:3');
  });
});

describe('protected-resource metadata (law 24, C55)', () => {
  const document = { resource: 'https://mcp.example/mcp', authorization_servers: ['https://auth.example'] };

  test('is the upstream’s own, found behind the path and then at the root, without credentials', async () => {
    upstream.respond = (req, res) =>
      req.url === '/.well-known/oauth-protected-resource'
        ? sendJson(res, document)
        : sendJson(res, { error: 'none' }, 404);
    const answer = await fetch(`${gateway.url}/.well-known/oauth-protected-resource/mcp/u`, {
      headers: { authorization: 'Bearer secret' },
    });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual(document);
    expect(upstream.requests.map((r) => r.url)).toEqual([
      '/.well-known/oauth-protected-resource/mcp',
      '/.well-known/oauth-protected-resource',
    ]);
    expect(upstream.requests.every((r) => r.headers.authorization === undefined)).toBe(true);
  });

  test.each([
    '/.well-known/oauth-protected-resource',
    '/.well-known/oauth-protected-resource/mcp/other',
    '/.well-known/oauth-authorization-server/mcp/u',
    '/.well-known/openid-configuration',
  ])('%s is a plain 404', async (path) => {
    expect((await fetch(`${gateway.url}${path}`)).status).toBe(404);
    expect(upstream.count()).toBe(0);
  });

  test('names the gateway under PUBLIC_URL with OAUTH_METADATA=rewrite, and so do challenges', async () => {
    const challenge = 'Bearer resource_metadata="https://mcp.example/.well-known/x", scope="a b"';
    const quoting = 'Basic realm="resource_metadata=\\"r\\""';
    upstream.respond = (req, res) =>
      req.httpMethod === 'GET'
        ? sendJson(res, JSON.stringify(document).replace('}', ',"n":9007199254740993}'))
        : sendJson(res, {}, 401, { 'www-authenticate': [challenge, quoting] });
    const other = await startGateway({
      upstreams: { u: upstream.url },
      env: { OAUTH_METADATA: 'rewrite', PUBLIC_URL: 'https://gw.example/base' },
    });
    const metadata = await fetch(`${other.url}/.well-known/oauth-protected-resource/mcp/u`);
    const text = await metadata.text();
    expect(JSON.parse(text)).toMatchObject({ ...document, resource: 'https://gw.example/base/mcp/u' });
    expect(text).toContain('"n":9007199254740993');
    const named = 'https://gw.example/.well-known/oauth-protected-resource/base/mcp/u';
    for (const method of ['tools/list', 'tools/call']) {
      const refused = await rpc(other.endpoint('u'), method, { params: { name: 'x' } });
      expect(refused.status).toBe(401);
      expect(refused.headers.get('www-authenticate')).toBe(
        `Bearer resource_metadata="${named}", scope="a b", ${quoting}`,
      );
    }
    await other.close();
  });
});
