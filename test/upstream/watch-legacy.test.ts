/** The gateway's own session and stream at an upstream of the older era: laws 8 and 21, cases C33, C54. */
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { useClosers } from '../support/closers.js';
import { until } from '../support/gate.js';
import { beginEvents, type SeenRequest, sendEvent, sendResult, startUpstream } from '../support/upstream.js';
import { startWatch, type WatchSetup } from '../support/watch-driver.js';

const closing = useClosers();

interface LegacyScript {
  /** The sessions that are given out, one after the other; none at all where this is empty. */
  sessions: string[];
  version: string;
  /** Answers the GET; opens a stream unless a test says otherwise. */
  get: (request: SeenRequest, res: ServerResponse) => void;
  /** The status of the answer to `notifications/initialized`. */
  initialized: number;
  /** Answers `initialize` with an event stream. */
  asEvents: boolean;
}

/** An upstream that knows `initialize`, the GET stream and DELETE, and nothing modern. */
async function watching(script: Partial<LegacyScript> = {}, setup: WatchSetup = {}) {
  const streams = new Set<ServerResponse>();
  const seen: SeenRequest[] = [];
  const legacy: LegacyScript = {
    sessions: ['s1', 's2', 's3', 's4'],
    version: '2025-11-25',
    initialized: 202,
    asEvents: false,
    get(_request, res) {
      beginEvents(res);
      streams.add(res);
      res.on('close', () => streams.delete(res));
    },
    ...script,
  };
  function initialize(request: SeenRequest, res: ServerResponse): void {
    const session = legacy.sessions.shift();
    const headers: Record<string, string> = session === undefined ? {} : { 'mcp-session-id': session };
    const result = {
      protocolVersion: legacy.version,
      capabilities: {},
      serverInfo: { name: 'l', version: '1' },
    };
    if (legacy.asEvents) {
      beginEvents(res, headers);
      res.write('id: 1\ndata:\n\n');
      sendEvent(res, { jsonrpc: '2.0', id: request.json.id, result });
    } else {
      sendResult(res, request, result, headers);
    }
  }
  const respond = (request: SeenRequest, res: ServerResponse) => {
    seen.push(request);
    const method = request.json?.method;
    if (request.httpMethod === 'GET') legacy.get(request, res);
    else if (method === 'initialize') initialize(request, res);
    else if (method === 'notifications/initialized') res.writeHead(legacy.initialized).end();
    else if (request.httpMethod === 'DELETE') res.writeHead(200).end();
    else if (method === undefined) res.writeHead(202).end();
    else res.writeHead(400, { 'content-type': 'text/plain' }).end('Bad Request: no session');
  };
  const upstream = closing(await startUpstream(respond));
  upstream.respondToWatch = respond;
  const driver = closing(startWatch(upstream, setup));
  const stands = (times = 1) => until(() => driver.connections.length === times);
  return { legacy, seen, streams, stands, ...driver };
}

const label = ({ httpMethod, json }: SeenRequest) =>
  httpMethod === 'POST' ? (json?.method ?? 'answer') : httpMethod;
const sessionOf = ({ headers }: SeenRequest) => headers['mcp-session-id'];

describe('a session of the gateway’s own', () => {
  test('is opened as the older revision demands, and then its stream', async () => {
    const { seen, stands } = await watching(
      {},
      { authorization: 'Bearer ours', headers: { 'X-Api-Key': 'key' } },
    );
    await stands();
    expect(seen.map(label)).toEqual([
      'subscriptions/listen',
      'initialize',
      'notifications/initialized',
      'GET',
    ]);
    const [, initialize, initialized, get] = seen;
    expect(initialize?.json).toMatchObject({
      jsonrpc: '2.0',
      params: {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'mcp-cache-gateway', version: '1.2.3' },
      },
    });
    for (const name of ['mcp-session-id', 'mcp-protocol-version', 'mcp-method']) {
      expect(initialize?.headers, 'nothing is agreed yet').not.toHaveProperty(name);
    }
    expect(initialized?.json).toEqual({ jsonrpc: '2.0', method: 'notifications/initialized' });
    const own = { 'mcp-session-id': 's1', 'mcp-protocol-version': '2025-11-25' };
    expect(initialized?.headers).toMatchObject({ ...own, 'content-type': 'application/json' });
    expect(get?.headers).toMatchObject({ ...own, accept: 'text/event-stream' });
    expect(get?.headers).not.toHaveProperty('mcp-method');
    expect(get?.body).toHaveLength(0);
    for (const { headers } of seen) {
      expect(headers).toMatchObject({ authorization: 'Bearer ours', 'x-api-key': 'key' });
    }
    for (const request of [initialize, initialized]) {
      expect(request?.headers.accept).toContain('application/json');
      expect(request?.headers.accept).toContain('text/event-stream');
    }
  });

  test.each(['2025-06-18', '2025-03-26'])('speaks %s where that was agreed', async (version) => {
    const { seen, stands } = await watching({ version });
    await stands();
    expect(seen.slice(2).map(({ headers }) => headers['mcp-protocol-version'])).toEqual([version, version]);
  });

  test('may be begun with an event stream', async () => {
    const { stands, seen } = await watching({ asEvents: true });
    await stands();
    expect(seen.map(sessionOf).at(-1)).toBe('s1');
  });

  test('may be none: then no header names one, and nothing is deleted', async () => {
    const { seen, stands, close } = await watching({ sessions: [] });
    await stands();
    await close();
    expect(seen.map(label)).not.toContain('DELETE');
    expect(seen.map(sessionOf)).toEqual([undefined, undefined, undefined, undefined]);
  });
});

describe('its stream', () => {
  test('tells of changes', async () => {
    const { streams, stands, changes } = await watching();
    await stands();
    for (const res of streams) {
      res.write('id: 1\nretry: 3000\ndata:\n\n');
      sendEvent(res, { jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
    }
    await until(() => changes.length === 1);
    expect(changes).toEqual([{ kind: 'list-changed', method: 'notifications/tools/list_changed' }]);
  });

  test('is opened again within the same session when it ends', async () => {
    const { streams, stands, seen, connections, untilAwake } = await watching();
    await stands();
    for (const res of streams) res.end();
    expect(await untilAwake()).toBe(1_000);
    await stands(2);
    expect(seen.slice(4).map(label)).toEqual(['GET']);
    expect(seen.map(sessionOf).at(4)).toBe('s1');
    expect(connections.map(({ isGap }) => isGap)).toEqual([false, true]);
  });

  test('is opened in a new session where a 404 says that the old one is dead', async () => {
    const { legacy, streams, stands, seen, untilAwake } = await watching();
    await stands();
    const { get } = legacy;
    legacy.get = (request, res) => {
      if (sessionOf(request) === 's1') res.writeHead(404).end();
      else get(request, res);
    };
    for (const res of streams) res.destroy();
    await untilAwake();
    await stands(2);
    expect(seen.slice(4).map(label)).toEqual(['GET', 'initialize', 'notifications/initialized', 'GET']);
    expect(seen.slice(4).map(sessionOf)).toEqual(['s1', undefined, 's2', 's2']);
  });

  test('has its pings answered, and other requests declined', async () => {
    const { streams, stands, seen, changes } = await watching();
    await stands();
    for (const res of streams) {
      sendEvent(res, { jsonrpc: '2.0', id: 'p-1', method: 'ping' });
      sendEvent(res, { jsonrpc: '2.0', id: 7, method: 'sampling/createMessage', params: {} });
      sendEvent(res, { jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
    }
    await until(() => changes.length === 1);
    const [pong, declined] = seen.slice(4);
    expect(pong?.json).toEqual({ jsonrpc: '2.0', id: 'p-1', result: {} });
    expect(declined?.json).toMatchObject({ jsonrpc: '2.0', id: 7, error: { code: -32601 } });
    for (const request of [pong, declined]) {
      expect(request?.headers).toMatchObject({
        'mcp-session-id': 's1',
        'mcp-protocol-version': '2025-11-25',
      });
    }
  });

  test.each([404, 405, 401])(
    'that is refused with %i is asked for again after minutes, and its session is ended',
    async (status) => {
      const { seen, asleep, states, untilAwake } = await watching({
        get: (_request, res) => void res.writeHead(status).end(),
      });
      await asleep();
      expect(states).toEqual(['refused']);
      expect(seen.slice(1).map(label)).toEqual(['initialize', 'notifications/initialized', 'GET', 'DELETE']);
      expect(seen.map(sessionOf).at(4)).toBe('s1');
      const asked = seen.length;
      expect(await untilAwake()).toBeGreaterThanOrEqual(120_000);
      await until(() => seen.length > asked);
    },
  );

  test('that ends at once each time is asked for a handful of times a minute at most', async () => {
    const { seen, asleep, untilAwake } = await watching({
      get(_request, res) {
        beginEvents(res);
        res.end();
      },
    });
    for (let waitedMs = 0; waitedMs < 60_000; waitedMs += await untilAwake()) await asleep();
    expect(seen.filter(({ httpMethod }) => httpMethod === 'GET').length).toBeLessThanOrEqual(6);
  });
});

describe('the end of the watch', () => {
  test('ends the session, and the stream with it', async () => {
    const { seen, stands, streams, close } = await watching({}, { authorization: 'Bearer ours' });
    await stands();
    await close();
    await until(() => streams.size === 0);
    const last = seen.at(-1);
    expect(last?.httpMethod).toBe('DELETE');
    expect(last?.headers).toMatchObject({
      'mcp-session-id': 's1',
      'mcp-protocol-version': '2025-11-25',
      authorization: 'Bearer ours',
    });
    expect(seen.filter(({ httpMethod }) => httpMethod === 'DELETE')).toHaveLength(1);
  });

  test('ends the session also while the stream is down', async () => {
    const { seen, stands, streams, close, asleep } = await watching();
    await stands();
    for (const res of streams) res.destroy();
    await asleep();
    await close();
    expect(seen.at(-1)?.httpMethod).toBe('DELETE');
  });

  test('leaves no session behind that was opened and never came to use', async () => {
    const { seen, asleep, close } = await watching({ initialized: 500 });
    await asleep();
    await close();
    const opened = seen.filter((request) => label(request) === 'initialize');
    const ended = seen.filter(({ httpMethod }) => httpMethod === 'DELETE').map(sessionOf);
    expect([opened.length, ended]).toEqual([1, ['s1']]);
  });
});
