/** Streams go on as they come, for as long as they like, and end with their client: law 23; C46, C48, C49. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { type RpcOptions, rpcRequest } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { createGate, until } from '../support/gate.js';
import { heldStream } from '../support/held-stream.js';
import { catalogue } from '../support/lists.js';
import { openWire, type Wire, wireText } from '../support/raw.js';
import { type Scenario, useScenario } from '../support/scenario.js';
import { beginEvents, type Respond } from '../support/upstream.js';

const start = useScenario();
const closing = useClosers();

/** The requests whose answers are streams that pass through. */
const STREAMS: [string, RpcOptions][] = [
  ['tools/call', { params: { name: 't' } }],
  ['tools/call', { params: { name: 't' }, era: 'legacy' }],
  ['subscriptions/listen', { params: { notifications: { toolsListChanged: true } } }],
  ['GET', {}],
];

/** Opens one of them; what comes is read only while `isReading` holds. */
async function open(
  { gateway }: Scenario,
  method: string,
  options: RpcOptions,
  isReading = true,
): Promise<Wire> {
  const wire = closing(await openWire(gateway.url));
  if (!isReading) wire.socket.pause();
  const endpoint = gateway.endpoint('u');
  if (method === 'GET') {
    const { host, pathname } = new URL(endpoint);
    wire.write(
      `GET ${pathname} HTTP/1.1\r\nhost: ${host}\r\naccept: text/event-stream\r\nmcp-session-id: s\r\n\r\n`,
    );
  } else {
    const { headers, body } = rpcRequest(method, options);
    wire.write(wireText(endpoint, { ...headers, 'accept-encoding': 'gzip' }, body));
  }
  return wire;
}

const progress = (n: number) => ({
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progress: n },
});

describe.each(STREAMS)('the stream of %s (%j)', (method, options) => {
  test('begins before its first event, and each event comes at once (C49)', async () => {
    const stream = heldStream();
    const scenario = await start(stream.respond);
    const wire = await open(scenario, method, options);
    await wire.sees('\r\n\r\n');
    const head = wire.received().toLowerCase();
    expect(head).toMatch(/^http\/1\.1 200 /);
    expect(head).toContain('\r\nx-accel-buffering: no\r\n');
    expect(head).toContain('\r\ncontent-type: text/event-stream\r\n');
    expect(head).not.toMatch(/\r\ncontent-(length|encoding):/);
    for (const n of [1, 2, 3]) {
      await stream.send(progress(n));
      await wire.sees(JSON.stringify(progress(n)));
    }
    await stream.write(': a comment');
    await wire.sees(': a comment');
  });

  test('may be silent, or go on, for hours (C48)', async () => {
    const stream = heldStream();
    const scenario = await start(stream.respond);
    const wire = await open(scenario, method, options);
    await wire.sees('\r\n\r\n');
    scenario.clock.advance(320_000);
    await stream.send(progress(0));
    await wire.sees('"progress":0');
    for (let minute = 1; minute <= 10; minute += 1) {
      scenario.clock.advance(60_000);
      await stream.send(progress(minute));
      await wire.sees(`"progress":${minute}`);
    }
    scenario.clock.advance(86_400_000);
    stream.end();
    await wire.sees('\r\n0\r\n\r\n');
  });

  const PHASES: [string, (res: ServerResponse) => void][] = [
    ['before the head', () => {}],
    ['before the first event', (res) => beginEvents(res)],
    [
      'between events',
      (res) => {
        beginEvents(res);
        res.write('data: 1\n\n');
      },
    ],
  ];

  test.each(PHASES)('ends at the upstream when its client leaves %s (C46)', async (phase, begin) => {
    const left = createGate();
    const asked = createGate();
    const scenario = await start((_request, res) => {
      res.on('close', () => left.pass());
      begin(res);
      asked.pass();
    });
    for (const leave of ['resetAndDestroy', 'destroy'] as const) {
      const wire = await open(scenario, method, options);
      await asked.arrivals(leave === 'destroy' ? 2 : 1);
      if (phase !== 'before the head') await wire.sees('\r\n\r\n');
      wire.socket[leave]();
    }
    await left.arrivals(2);
  });
});

describe('a client that leaves (C46)', () => {
  /** Writes for ever, as fast as it may. */
  const pouring: Respond = async (_request, res) => {
    beginEvents(res);
    const event = `data: ${'x'.repeat(65_000)}\n\n`;
    const gone = once(res, 'close');
    while (!res.destroyed) {
      if (!res.write(event)) await Promise.race([once(res, 'drain'), gone]);
    }
  };

  test('a hundred times, in the middle of much, leaves no socket behind, and others notice nothing', async () => {
    const left = createGate();
    const scenario = await start((request, res) => {
      if (request.json?.method === 'tools/list') return catalogue()(request, res);
      res.on('close', () => left.pass());
      return pouring(request, res);
    });
    await scenario.list();
    const sockets = () => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
    const before = sockets();
    for (let round = 0; round < 25; round += 1) {
      const wires = await Promise.all(STREAMS.map(([method, options]) => open(scenario, method, options)));
      await Promise.all(wires.map((wire) => until(() => wire.received().length > 100_000)));
      for (const wire of wires) wire.socket.resetAndDestroy();
    }
    await left.arrivals(100);
    await until(() => sockets() <= before);
    expect(await scenario.list()).toMatchObject({ status: 200, asked: 0 });
  });

  test('before its request is whole does not reach the upstream', async () => {
    const scenario = await start(catalogue());
    const wire = closing(await openWire(scenario.gateway.url));
    wire.write('POST /mcp/u HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"jsonrpc"');
    wire.socket.resetAndDestroy();
    await scenario.list();
    expect(scenario.upstream.count()).toBe(1);
  });
});

describe('a client that reads slowly', () => {
  const TOTAL = 96_000_000;
  const CHUNK = Buffer.alloc(64_000, 0x20);

  /** Polls until the number has stood still for a while: nothing announces that a writer is held up. */
  async function still(value: () => number): Promise<number> {
    let last = -1;
    let same = 0;
    await until(() => {
      same = value() === last && last > 0 ? same + 1 : 0;
      last = value();
      return same >= 30;
    }, 15_000);
    return last;
  }

  test.each([
    ['JSON', 'tools/call', 'application/json'],
    ['an event stream', 'tools/call', 'text/event-stream'],
    ['what is too large to keep', 'tools/list', 'application/json'],
    ['an event that is too large to keep', 'tools/list', 'text/event-stream'],
  ])('holds up the upstream, and gets all of %s in the end', async (_title, method, type) => {
    let written = 0;
    const scenario = await start(
      async (_request, res) => {
        res.writeHead(200, { 'content-type': type });
        for (; written < TOTAL; written += CHUNK.length) {
          if (!res.write(CHUNK)) await once(res, 'drain');
        }
        res.end();
      },
      { env: { CACHE_MAX_ENTRY_BYTES: '1000000' } },
    );
    const wire = await open(scenario, method, { params: { name: 't' } }, false);
    expect(await still(() => written)).toBeLessThan(TOTAL / 2);
    let length = 0;
    wire.socket.removeAllListeners('data');
    wire.socket.on('data', (chunk: Buffer) => {
      length += chunk.length;
    });
    wire.socket.resume();
    await until(() => written >= TOTAL && length >= TOTAL, 15_000);
  });
});

describe('an upstream that does not answer (C48)', () => {
  const FIRST_BYTES: [string, Respond][] = [
    ['takes the connection and no more', () => {}],
    [
      'sends a head and no more',
      (_request, res) => void res.writeHead(200, { 'content-type': 'application/json' }).flushHeaders(),
    ],
    ['begins an event stream and no more', (_request, res) => beginEvents(res)],
  ];

  test.each(FIRST_BYTES)(
    'but %s is a 504 to all who wait for the list, and the next tries anew',
    async (_title, respond) => {
      const left = createGate();
      const scenario = await start((request, res) => {
        res.on('close', () => left.open());
        return respond(request, res);
      });
      const { clock, list, upstream } = scenario;
      const answers = [list({ id: 'a' }), list({ id: 'b' })];
      await until(() => upstream.count() === 1 && clock.sleepers >= 3);
      // Whoever waited for half the time without a sign of the upstream asks for itself.
      clock.advance(15_000);
      await until(() => upstream.count() === 2);
      clock.advance(15_000);
      for (const [i, answer] of (await Promise.all(answers)).entries()) {
        expect(answer).toMatchObject({ status: 504, json: { id: 'ab'[i], error: { code: 504 } } });
      }
      await left.pass();
      upstream.respond = catalogue();
      expect(await list()).toMatchObject({ status: 200, asked: 1 });
    },
  );

  test('a call gets a 504 after the time of that upstream, and its request has ended', async () => {
    const left = createGate();
    const { clock, ask, upstream } = await start((_request, res) => void res.on('close', () => left.open()), {
      env: { UPSTREAM_TIMEOUT_MS: '1000', UPSTREAM_U_TIMEOUT_MS: '5000' },
    });
    const answer = ask('tools/call', { id: 'c', params: { name: 't' } });
    await until(() => upstream.count() === 1);
    clock.advance(4_999);
    expect(await Promise.race([answer, new Promise((resolve) => setImmediate(resolve, 'not yet'))])).toBe(
      'not yet',
    );
    clock.advance(1);
    expect(await answer).toMatchObject({ status: 504, json: { id: 'c', error: { code: 504 } } });
    await left.pass();
  });

  test('beyond the head of a call’s answer may take minutes', async () => {
    const gate = createGate();
    const { clock, ask } = await start(async (_request, res) => {
      res.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
      await gate.pass();
      res.end('{"late":1}');
    });
    const before = clock.sleepers;
    const answer = ask('tools/call', { params: { name: 't' } });
    await gate.arrivals(1);
    await until(() => clock.sleepers === before);
    clock.advance(240_000);
    gate.open();
    expect(await answer).toMatchObject({ status: 200, json: { late: 1 } });
  });
});
