/** The gateway's own subscription to a modern upstream: laws 18 and 21, cases C27, C54. */
import { describe, expect, test } from 'vitest';
import { useClosers } from '../support/closers.js';
import { createGate, until } from '../support/gate.js';
import {
  beginEvents,
  heldWatch,
  type Respond,
  type ScriptedUpstream,
  sendEvent,
  startUpstream,
} from '../support/upstream.js';
import { startWatch, TIMEOUT_MS, type WatchSetup } from '../support/watch-driver.js';

const closing = useClosers();

async function watching(respond: Respond, setup: WatchSetup = {}) {
  const upstream = closing(await startUpstream(() => {}));
  upstream.respondToWatch = respond;
  return { upstream, ...closing(startWatch(upstream, setup)) };
}

const EVENTS = { 'content-type': 'text/event-stream' };
const refuse: Respond = (_request, res) => void res.writeHead(503).end();
const acknowledged = (notifications: object) => ({
  jsonrpc: '2.0',
  method: 'notifications/subscriptions/acknowledged',
  params: { notifications },
});
const methodsOf = ({ watchRequests }: ScriptedUpstream) => watchRequests.map(({ json }) => json?.method);

describe('a subscription', () => {
  test('is asked for as the revision demands, with the operator’s credentials', async () => {
    const watch = heldWatch();
    const { upstream, connections } = await watching(watch.respond, {
      authorization: 'Bearer ours',
      headers: { 'X-Api-Key': 'key' },
    });
    await until(() => connections.length === 1);
    const [request] = upstream.watchRequests;
    expect(request?.httpMethod).toBe('POST');
    expect(request?.headers).toMatchObject({
      'content-type': 'application/json',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'subscriptions/listen',
      authorization: 'Bearer ours',
      'x-api-key': 'key',
    });
    expect(request?.headers.accept).toContain('application/json');
    expect(request?.headers.accept).toContain('text/event-stream');
    expect(request?.headers).not.toHaveProperty('mcp-session-id');
    expect(request?.json).toMatchObject({
      jsonrpc: '2.0',
      method: 'subscriptions/listen',
      params: {
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': { name: 'mcp-cache-gateway', version: '1.2.3' },
          'io.modelcontextprotocol/clientCapabilities': {},
        },
        notifications: { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true },
      },
    });
  });

  test('stands when it is acknowledged, and not before', async () => {
    const gate = createGate();
    const { connections, states, watch } = await watching(async (_request, res) => {
      beginEvents(res);
      res.write(': ping\n\n');
      await gate.pass();
      sendEvent(res, acknowledged({ toolsListChanged: true }));
    });
    await gate.arrivals(1);
    expect(states).toEqual([]);
    gate.open();
    await watch.settled;
    expect(states).toEqual(['connected']);
    expect(connections).toEqual([{ isGap: false, watched: ['toolsListChanged'] }]);
  });

  test('watches no more than the upstream agreed to', async () => {
    const { connections } = await watching((_request, res) => {
      beginEvents(res);
      sendEvent(res, acknowledged({ promptsListChanged: true, resourcesListChanged: false, other: true }));
    });
    await until(() => connections.length === 1);
    expect(connections[0]?.watched).toEqual(['promptsListChanged']);
  });

  test('tells the changes in their order, one after the other', async () => {
    const gate = createGate();
    const watch = heldWatch();
    const { connections, changes } = await watching(watch.respond, { onChange: () => gate.pass() });
    await until(() => connections.length === 1);
    watch.notify('notifications/tools/list_changed');
    watch.notify('notifications/message', { level: 'info', data: 'x' });
    watch.notify('notifications/resources/updated', { uri: 'file:///a' });
    await gate.arrivals(1);
    expect(changes).toEqual([]);
    gate.open();
    await until(() => changes.length === 2);
    expect(changes).toEqual([
      { kind: 'list-changed', method: 'notifications/tools/list_changed' },
      { kind: 'resource-updated', uri: 'file:///a' },
    ]);
  });
});

describe('a subscription that ends', () => {
  const ENDS: [string, Respond][] = [
    ['before it stands', (_request, res) => void res.writeHead(200, EVENTS).end()],
    ['with a broken connection', (_request, res) => void res.destroy()],
    ['with status 503', refuse],
    ['with status 429', (_request, res) => void res.writeHead(429).end()],
  ];

  test.each(ENDS)(
    '%s is asked for again after 1 s, then ever later up to 30 s, for ever',
    async (_title, respond) => {
      const { upstream, untilAwake, states } = await watching(respond);
      const waits: number[] = [];
      for (let i = 0; i < 8; i += 1) {
        waits.push(await untilAwake());
        await until(() => upstream.watchRequests.length === i + 2);
      }
      expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
      expect(states).not.toContain('refused');
      expect(new Set(methodsOf(upstream))).toEqual(new Set(['subscriptions/listen']));
    },
  );

  test('is asked for again at other moments by each replica, and within the same bounds', async () => {
    const early = await watching(refuse, { random: () => 0 });
    const late = await watching(refuse, { random: () => 0.999 });
    for (let i = 0; i < 8; i += 1) {
      const [one, other] = [await early.untilAwake(), await late.untilAwake()];
      expect(one, `attempt ${i}`).not.toBe(other);
      for (const waitedMs of [one, other]) {
        expect(waitedMs).toBeGreaterThanOrEqual(1_000);
        expect(waitedMs).toBeLessThanOrEqual(30_000);
      }
    }
  });

  test('after it stood for long is asked for again after 1 s, and has a gap', async () => {
    const watch = heldWatch();
    const { connections, clock, untilAwake, upstream, asleep } = await watching(refuse);
    for (let i = 0; i < 4; i += 1) await untilAwake();
    await asleep();
    upstream.respondToWatch = watch.respond;
    await untilAwake();
    await until(() => connections.length === 1);
    clock.advance(3_600_000);
    watch.cut();
    expect(await untilAwake()).toBe(1_000);
    await until(() => connections.length === 2);
    expect(connections.map(({ isGap }) => isGap)).toEqual([false, true]);
  });

  test('as soon as it stands, time and again, is asked for a handful of times a minute at most', async () => {
    const { upstream, untilAwake, asleep } = await watching((request, res) => {
      heldWatch().respond(request, res);
      res.end();
    });
    for (let waitedMs = 0; waitedMs < 60_000; waitedMs += await untilAwake()) await asleep();
    expect(upstream.watchRequests.length).toBeLessThanOrEqual(6);
  });

  test('with a result of the upstream’s is asked for again', async () => {
    const watch = heldWatch();
    const { connections, asleep, clock, upstream } = await watching(watch.respond);
    await until(() => connections.length === 1);
    clock.advance(60_000);
    for (const res of watch.streams) {
      sendEvent(res, {
        jsonrpc: '2.0',
        id: upstream.watchRequests[0]?.json.id,
        result: { resultType: 'complete' },
      });
    }
    await asleep();
    clock.advance(1_000);
    await until(() => connections.length === 2);
    expect(new Set(upstream.watchRequests.map(({ json }) => json.id)).size, 'each under its own id').toBe(2);
  });

  test('because its head never comes is asked for again', async () => {
    const { upstream, clock, asleep } = await watching(() => {});
    await until(() => upstream.watchRequests.length === 1);
    clock.advance(TIMEOUT_MS);
    await asleep();
    clock.advance(1_000);
    await until(() => upstream.watchRequests.length === 2);
  });

  test('never for its silence', async () => {
    const watch = heldWatch();
    const { connections, changes, clock, states } = await watching(watch.respond);
    await until(() => connections.length === 1);
    expect(clock.sleepers, 'no timer runs').toBe(0);
    clock.advance(86_400_000);
    watch.notify('notifications/tools/list_changed');
    await until(() => changes.length === 1);
    expect(states).toEqual(['connected']);
  });
});

describe('the end of a watch', () => {
  test('ends its stream at the upstream, and no other attempt follows', async () => {
    const watch = heldWatch();
    const { connections, close, upstream, clock, states } = await watching(watch.respond);
    await until(() => connections.length === 1);
    await close();
    await until(() => watch.streams.size === 0);
    expect([clock.sleepers, upstream.watchRequests.length, states.at(-1)]).toEqual([0, 1, 'stopped']);
  });

  test('comes at once while it waits, and while an answer is awaited', async () => {
    const waiting = await watching(refuse);
    await waiting.asleep();
    await waiting.close();
    const asking = await watching(() => {});
    await until(() => asking.upstream.watchRequests.length === 1);
    await asking.close();
    expect([waiting.clock.sleepers, asking.clock.sleepers]).toEqual([0, 0]);
  });
});
