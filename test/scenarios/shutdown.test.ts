/** The process from its start to its end: design, section 2 (Running, SHUTDOWN_GRACE_MS); cases C46, C67. */
import { describe, expect, test } from 'vitest';
import { rpc, rpcRequest } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { createGate, until } from '../support/gate.js';
import { heldStream } from '../support/held-stream.js';
import { heldLegacyWatch } from '../support/legacy-watch.js';
import { catalogue, page } from '../support/lists.js';
import { type GatewayProcess, startProcess } from '../support/process.js';
import { openWire, wireText } from '../support/raw.js';
import { openStream } from '../support/stream.js';
import { heldWatch, type Respond, sendResult, startUpstream } from '../support/upstream.js';

const closing = useClosers();

/** Longer than any test may take: who waits for it has failed. */
const LONG_MS = '600000';
const CALL = { params: { name: 't' } };

async function start(respond: Respond, env: Readonly<Record<string, string>> = {}, watch?: Respond) {
  const upstream = closing(await startUpstream(respond));
  if (watch !== undefined) upstream.respondToWatch = watch;
  const gateway = closing(startProcess({ UPSTREAMS: `u=${upstream.url}`, ...env }));
  const { url, adminUrl } = await gateway.listening;
  return { upstream, gateway, url, adminUrl, endpoint: `${url}/mcp/u` };
}

const statusOf = async (url: string) => (await fetch(url)).status;

/** Sends the signal, and waits until it has been taken. */
async function end(
  gateway: GatewayProcess,
  adminUrl: string,
  signal: NodeJS.Signals = 'SIGTERM',
): Promise<void> {
  gateway.kill(signal);
  await until(async () => (await statusOf(`${adminUrl}/readyz`)) === 503);
}

describe('a start', () => {
  test('is told by one line with both addresses, and both are right', async () => {
    const { gateway, url, adminUrl, endpoint } = await start(catalogue());
    const told = gateway.lines.filter(({ msg }) => msg === 'listening');
    expect(told).toHaveLength(1);
    expect(told[0]).toMatchObject({ level: 30, url, adminUrl });
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:[1-9]\d*$/);
    expect(adminUrl).toMatch(/^http:\/\/127\.0\.0\.1:[1-9]\d*$/);
    expect((await rpc(endpoint, 'tools/list')).status).toBe(200);
    expect(await statusOf(`${adminUrl}/healthz`)).toBe(200);
    expect(await statusOf(`${adminUrl}/readyz`)).toBe(200);
  });

  test('on an IPv6 address is told so that it can be used', async () => {
    const { url, adminUrl, endpoint } = await start(catalogue(), { HOST: '::1', ADMIN_HOST: '::1' });
    expect(url).toMatch(/^http:\/\/\[::1\]:\d+$/);
    expect((await rpc(endpoint, 'tools/list')).status).toBe(200);
    expect(await statusOf(`${adminUrl}/healthz`)).toBe(200);
  });

  test('does not need an upstream that lives', async () => {
    const upstream = await startUpstream(catalogue());
    await upstream.close();
    const gateway = closing(startProcess({ UPSTREAMS: `u=${upstream.url}` }));
    const { url, adminUrl } = await gateway.listening;
    expect(await statusOf(`${adminUrl}/readyz`)).toBe(200);
    expect((await rpc(`${url}/mcp`, 'tools/list')).status).toBe(502);
  });

  test('on a port that is taken fails', async () => {
    const { url } = await start(catalogue());
    const second = closing(startProcess({ UPSTREAMS: 'u=http://127.0.0.1:1/', PORT: new URL(url).port }));
    expect(await second.exited).not.toBe(0);
    await expect(second.listening).rejects.toThrow();
  });
});

describe('the end', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    'by %s has status 0, and comes at once where nothing is in flight',
    async (signal) => {
      const watch = heldWatch();
      const { gateway, endpoint, adminUrl } = await start(
        catalogue(),
        { SHUTDOWN_GRACE_MS: LONG_MS },
        watch.respond,
      );
      await rpc(endpoint, 'tools/list');
      await statusOf(`${adminUrl}/healthz`);
      gateway.kill(signal);
      expect(await gateway.exited).toBe(0);
      await until(() => watch.streams.size === 0);
    },
  );

  test('waits for the requests in flight, and no longer', async () => {
    const gate = createGate();
    const respond: Respond = async (request, res) => {
      await gate.pass();
      await catalogue()(request, res);
    };
    const { gateway, endpoint, adminUrl, url } = await start(respond, { SHUTDOWN_GRACE_MS: LONG_MS });
    const answers = [rpc(endpoint, 'tools/list'), rpc(endpoint, 'tools/call', CALL)];
    await gate.arrivals(2);
    await end(gateway, adminUrl);
    expect(await statusOf(`${adminUrl}/healthz`), 'it lives').toBe(200);
    await expect(openWire(url), 'and takes nothing new').rejects.toMatchObject({ code: 'ECONNREFUSED' });
    gate.open();
    for (const { status } of await Promise.all(answers)) expect(status).toBe(200);
    expect(await gateway.exited).toBe(0);
  });

  test('comes within SHUTDOWN_GRACE_MS though event streams are open, and ends them on both sides', async () => {
    const left = createGate();
    const stream = heldStream();
    const watch = heldWatch();
    const respond: Respond = (request, res) => {
      res.on('close', () => left.pass());
      return stream.respond(request, res);
    };
    const { gateway, endpoint } = await start(respond, { SHUTDOWN_GRACE_MS: '500' }, watch.respond);
    const init = { method: 'POST', ...rpcRequest('tools/call', CALL) };
    const get = { method: 'GET', headers: { accept: 'text/event-stream' } };
    const clients = [await openStream(endpoint, init), await openStream(endpoint, get)];
    const began = performance.now();
    gateway.kill('SIGTERM');
    expect(await gateway.exited).toBe(0);
    expect(performance.now() - began).toBeLessThan(5_000);
    for (const client of clients) await client.rest();
    await left.arrivals(2);
    await until(() => watch.streams.size === 0);
  });

  test.each<[string, RequestInit]>([
    ['a GET stream', { method: 'GET', headers: { accept: 'text/event-stream' } }],
    ['a subscription', { method: 'POST', ...rpcRequest('subscriptions/listen') }],
  ])('ends %s at once, which would go on for ever', async (_title, init) => {
    const stream = heldStream();
    const { gateway, upstream, endpoint } = await start(stream.respond, { SHUTDOWN_GRACE_MS: LONG_MS });
    upstream.respondToWatch = stream.respond;
    const client = await openStream(endpoint, init);
    gateway.kill('SIGTERM');
    await client.rest();
    expect(await gateway.exited).toBe(0);
  });

  test('lets an open stream go on until then', async () => {
    const stream = heldStream();
    const { gateway, endpoint, adminUrl } = await start(stream.respond, { SHUTDOWN_GRACE_MS: LONG_MS });
    const client = await openStream(endpoint, { method: 'POST', ...rpcRequest('tools/call', CALL) });
    await end(gateway, adminUrl);
    await stream.send({ jsonrpc: '2.0', method: 'notifications/progress' });
    expect((await client.next()).method).toBe('notifications/progress');
    stream.end();
    await client.rest();
    expect(await gateway.exited).toBe(0);
  });

  test.each(['a hit', 'a call'])(
    'does not cut %s short for a client that is slow to read it',
    async (what) => {
      const length = 15_000_000;
      const respond: Respond = (request, res) => sendResult(res, request, page(['x'.repeat(length)]));
      const { gateway, endpoint, url, adminUrl } = await start(respond, { SHUTDOWN_GRACE_MS: LONG_MS });
      await rpc(endpoint, 'tools/list');
      const { headers, body } = what === 'a hit' ? rpcRequest('tools/list') : rpcRequest('tools/call', CALL);
      const wire = closing(await openWire(url));
      wire.write(wireText(endpoint, headers, body));
      await wire.sees('HTTP/1.1 200');
      wire.socket.pause();
      await end(gateway, adminUrl);
      wire.socket.resume();
      expect(await gateway.exited).toBe(0);
      await wire.closed;
      expect(wire.received().length).toBeGreaterThan(length);
    },
  );

  test('does not wait for connections on which nothing was ever asked', async () => {
    const { gateway, url, adminUrl } = await start(catalogue(), { SHUTDOWN_GRACE_MS: '500' });
    for (const address of [url, adminUrl]) closing(await openWire(address));
    const began = performance.now();
    gateway.kill('SIGTERM');
    expect(await gateway.exited).toBe(0);
    expect(performance.now() - began).toBeLessThan(5_000);
  });

  test.each<[string, Respond]>([
    ['answers', heldLegacyWatch().respond],
    [
      'never answers',
      (request, res) =>
        request.httpMethod === 'DELETE' ? undefined : heldLegacyWatch().respond(request, res),
    ],
  ])('ends the session of its own at an upstream that %s', async (_title, respond) => {
    const { gateway, upstream } = await start(catalogue(), { SHUTDOWN_GRACE_MS: LONG_MS }, respond);
    gateway.kill('SIGTERM');
    expect(await gateway.exited).toBe(0);
    const deleted = upstream.watchRequests.filter(({ httpMethod }) => httpMethod === 'DELETE');
    expect(deleted.map(({ headers }) => headers['mcp-session-id'])).toEqual(['watch-session']);
  });
});
