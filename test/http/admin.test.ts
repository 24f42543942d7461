import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { rpc } from '../support/client.js';
import { type RunningGateway, startGateway } from '../support/gateway.js';
import { goodResult, type ScriptedUpstream, sendResult, startUpstream } from '../support/upstream.js';

let upstream: ScriptedUpstream;
let gateway: RunningGateway;

beforeEach(async () => {
  upstream = await startUpstream((req, res) =>
    sendResult(res, req, { ...goodResult({ tools: [{ name: 'canary-value' }] }), cacheScope: 'private' }),
  );
  gateway = await startGateway({ upstreams: { u: upstream.url, v: upstream.url } });
});

afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

describe('the admin listener', () => {
  test('tells of each upstream what is cached, without values or tokens', async () => {
    const token = { authorization: 'Bearer canary-token' };
    await rpc(gateway.endpoint('u'), 'tools/list', { headers: token });
    await rpc(gateway.endpoint('u'), 'tools/list', { headers: token });
    const text = await (await fetch(`${gateway.adminUrl}/cache`)).text();
    expect(text).not.toContain('canary');
    const shown = JSON.parse(text);
    const u = shown.upstreams.find((one: { name: string }) => one.name === 'u');
    expect(u).toMatchObject({
      entries: 1,
      hits: 1,
      misses: 1,
      stale: 0,
      upstreamCallsSaved: 1,
      lastFlush: null,
    });
    expect(u.bytes).toBeGreaterThan(0);
    expect(u.watch.state).toBe('refused');
    expect(u.list).toHaveLength(1);
    expect(u.list[0]).toMatchObject({ method: 'tools/list', scope: 'private', items: 1, pages: 1 });
    expect(u.list[0].authContext).toMatch(/^[\w-]{12}$/);
    expect(u.list[0].remainingMs).toBeLessThanOrEqual(60_000);
  });

  test('answers a method that a path does not have with 405, and HEAD as GET', async () => {
    const ask = async (method: string, path: string) => {
      const { status, headers } = await fetch(`${gateway.adminUrl}${path}`, { method });
      return [status, headers.get('allow')];
    };
    expect(await ask('POST', '/cache')).toEqual([405, 'GET, HEAD']);
    expect(await ask('GET', '/cache/flush')).toEqual([405, 'POST']);
    expect(await ask('DELETE', '/')).toEqual([405, 'GET, HEAD']);
    expect(await ask('POST', '/readyz')).toEqual([405, 'GET, HEAD']);
    expect(await ask('GET', '/nope')).toEqual([404, null]);
    expect(await ask('HEAD', '/healthz')).toEqual([200, null]);
  });

  test('flushes one upstream, or all, and tells which', async () => {
    for (const name of ['u', 'v']) await rpc(gateway.endpoint(name), 'tools/list');
    const one = await fetch(`${gateway.adminUrl}/cache/flush?upstream=u`, { method: 'POST' });
    expect([one.status, await one.json()]).toEqual([200, { flushed: ['u'] }]);
    expect((await rpc(gateway.endpoint('u'), 'tools/list')).cacheStatus).toContain('fwd=miss');
    expect((await rpc(gateway.endpoint('v'), 'tools/list')).cacheStatus).toContain('hit');
    const all = await fetch(`${gateway.adminUrl}/cache/flush`, { method: 'POST' });
    expect(await all.json()).toEqual({ flushed: ['u', 'v'] });
    expect((await rpc(gateway.endpoint('v'), 'tools/list')).cacheStatus).toContain('fwd=miss');
    expect((await fetch(`${gateway.adminUrl}/cache/flush?upstream=w`, { method: 'POST' })).status).toBe(404);
    const logged = gateway.logs.find((line) => line.msg === 'flush by hand');
    expect(logged).toMatchObject({ upstreams: ['u'], by: '127.0.0.1' });
  });

  test('needs ADMIN_TOKEN for the cache and the dashboard, not for health and metrics', async () => {
    const guarded = await startGateway({
      upstreams: { u: upstream.url },
      env: { ADMIN_TOKEN: 'open-sesame' },
    });
    const status = async (path: string, method: string, authorization?: string) => {
      const headers = authorization === undefined ? {} : { authorization };
      return (await fetch(`${guarded.adminUrl}${path}`, { method, headers })).status;
    };
    const guardedPaths = [
      ['/cache', 'GET'],
      ['/', 'GET'],
      ['/cache/flush', 'POST'],
    ] as const;
    for (const [path, method] of guardedPaths) {
      expect(await status(path, method)).toBe(401);
      expect(await status(path, method, 'Bearer open-sesam')).toBe(401);
      expect(await status(path, method, 'Bearer open-sesame')).toBe(200);
    }
    expect(await status('/healthz', 'GET')).toBe(200);
    expect(await status('/metrics', 'GET')).toBe(200);
    await guarded.close();
  });

  test('counts in the Prometheus text format', async () => {
    await rpc(gateway.endpoint('u'), 'tools/list');
    await rpc(gateway.endpoint('u'), 'tools/list');
    await rpc(gateway.endpoint('u'), 'tools/call', { params: { name: 'x' } });
    const response = await fetch(`${gateway.adminUrl}/metrics`);
    expect(response.headers.get('content-type')).toContain('text/plain');
    const text = await response.text();
    expect(text).toContain(
      'mcp_cache_gateway_requests_total{upstream="u",method="tools/list",outcome="hit"} 1',
    );
    expect(text).toContain('mcp_cache_gateway_bypass_total{upstream="u",reason="not-cacheable-method"} 1');
    expect(text).toContain('mcp_cache_gateway_entries{upstream="u"} 1');
  });

  test('is not on the MCP listener', async () => {
    for (const path of ['/healthz', '/readyz', '/metrics', '/cache', '/']) {
      expect((await fetch(`${gateway.url}${path}`)).status).toBe(404);
    }
  });
});
