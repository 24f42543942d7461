/** Event streams as answers to cacheable requests, through a whole gateway: laws 4, 11, 19, 23; C28, C30, C31, C44. */
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { rpcRequest } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { flushes } from '../support/flushes.js';
import { createGate, until } from '../support/gate.js';
import { type Coding, heldStream } from '../support/held-stream.js';
import {
  cursorOf,
  namesOf,
  page,
  paged,
  sendResultAsEvents,
  sixNames,
  threePages,
  tools,
} from '../support/lists.js';
import { rawFields, send } from '../support/raw.js';
import { type Scenario, useScenario } from '../support/scenario.js';
import { messagesIn, openStream } from '../support/stream.js';
import { beginEvents, heldWatch, type Respond, type SeenRequest, sendJson } from '../support/upstream.js';

const start = useScenario();
const closing = useClosers();

const LIST = { method: 'POST', ...rpcRequest('tools/list') };
const PROGRESS = {
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken: 'p', progress: 1 },
};
const answerTo = (request: SeenRequest, result: object = page(['a'])) => ({
  jsonrpc: '2.0',
  id: request.json.id,
  result,
});
const ANSWER = JSON.stringify({ jsonrpc: '2.0', id: 1, result: page(['a', 'b']) });

async function openList({ gateway }: Scenario) {
  return closing(await openStream(gateway.endpoint('u'), LIST));
}

describe('messages before the answer (law 4)', () => {
  test.each<Coding>(['identity', 'gzip', 'br'])(
    'reach the client at once, then the answer (%s)',
    async (coding) => {
      const stream = heldStream(coding);
      const scenario = await start(stream.respond);
      const opening = openList(scenario);
      await stream.send(PROGRESS);
      const client = await opening;
      expect(client.headers.get('content-type')).toBe('text/event-stream');
      expect(client.headers.get('x-accel-buffering')).toBe('no');
      expect(client.headers.get('cache-status')).toBe('mcp-cache-gateway; fwd=miss');
      for (const name of ['content-length', 'content-encoding']) expect(client.headers.has(name)).toBe(false);
      expect(await client.next()).toEqual(PROGRESS);
      const request = { jsonrpc: '2.0', id: 1, method: 'roots/list' };
      await stream.send(request);
      expect(await client.next()).toEqual(request);
      await stream.write(`: ping\n\ndata: ${ANSWER}\n\n`);
      stream.end();
      expect(await client.next()).toEqual(JSON.parse(ANSWER));
      expect(messagesIn(await client.rest())).toHaveLength(3);
      expect(await scenario.list()).toMatchObject({ asked: 0, json: { result: { tools: tools('a', 'b') } } });
    },
  );

  test('come with the whole list where it has more pages', async () => {
    const scenario = await start(
      paged(threePages('t'), (res, request, result) =>
        sendResultAsEvents(res, request, result, [{ ...PROGRESS, params: { cursor: cursorOf(request) } }]),
      ),
    );
    const messages = messagesIn(await (await openList(scenario)).rest());
    expect(messages[0]?.params, 'of the page that the client asked for').toEqual({ cursor: '-' });
    expect(messages[1]).toMatchObject({ id: 1, result: { tools: tools(...sixNames('t')) } });
    expect(messages[1]?.result).not.toHaveProperty('nextCursor');
    expect(messages).toHaveLength(2);
    expect(await scenario.list()).toMatchObject({ asked: 0 });
  });

  test('come with an error as well, which is not stored', async () => {
    const error = { code: -32603, message: 'no' };
    const scenario = await start((request, res) => {
      beginEvents(res);
      for (const message of [PROGRESS, { jsonrpc: '2.0', id: request.json.id, error }]) {
        res.write(`data: ${JSON.stringify(message)}\n\n`);
      }
      res.end();
    });
    const text = await (await openList(scenario)).rest();
    expect(messagesIn(text)).toEqual([PROGRESS, { jsonrpc: '2.0', id: 1, error }]);
    expect((await scenario.list()).asked).toBe(1);
  });

  test('and no answer are broken off for the client where the upstream breaks off', async () => {
    const gate = createGate();
    const scenario = await start(async (_request, res) => {
      beginEvents(res);
      res.write(`data: ${JSON.stringify(PROGRESS)}\n\n`);
      await gate.pass();
      res.destroy();
    });
    const client = await openList(scenario);
    expect(await client.next()).toEqual(PROGRESS);
    gate.open();
    await expect(client.next()).rejects.toThrow();
    scenario.upstream.respond = paged({ '-': page(['a']) });
    expect((await scenario.list()).asked).toBe(1);
  });

  test('go on, and so do those behind it', async () => {
    const later = { ...PROGRESS, params: { progress: 2 } };
    const scenario = await start((request, res) => {
      beginEvents(res);
      for (const message of [PROGRESS, answerTo(request), later]) {
        res.write(`data: ${JSON.stringify(message)}\n\n`);
      }
      res.end();
    });
    const text = await (await openList(scenario)).rest();
    expect(messagesIn(text)).toEqual([PROGRESS, { jsonrpc: '2.0', id: 1, result: page(['a']) }, later]);
  });
});

describe('a list that is fetched anew after messages went on (law 11)', () => {
  /** Sends progress, then tells of a change, and answers when that has taken effect; the second time as given. */
  async function overtaken(second: Respond): Promise<Scenario> {
    const watch = heldWatch();
    const scenario: Scenario = await start(
      async (request, res) => {
        if (scenario.upstream.count() > 1) return second(request, res);
        beginEvents(res);
        res.write(`data: ${JSON.stringify(PROGRESS)}\n\n`);
        watch.notify('notifications/tools/list_changed');
        await until(() => flushes(scenario.gateway, 'watch') === 1);
        res.end(`data: ${JSON.stringify(answerTo(request, page(['old'])))}\n\n`);
      },
      { watch: watch.respond },
    );
    return scenario;
  }

  const plain = (request: SeenRequest, ttlMs = 0) =>
    JSON.stringify(answerTo(request, page(['new'], undefined, { ttlMs })), null, 1);
  const SECOND: [string, Respond][] = [
    ['JSON to be stored', (request, res) => sendJson(res, plain(request, 60_000))],
    ['JSON that is not stored', (request, res) => sendJson(res, plain(request))],
    [
      'an event stream that is not stored',
      (request, res) => sendResultAsEvents(res, request, JSON.parse(plain(request)).result),
    ],
    [
      'a packed event stream that is not stored',
      (request, res) => {
        beginEvents(res, { 'content-encoding': 'gzip' });
        res.end(gzipSync(`: x\n\ndata: ${JSON.stringify(JSON.parse(plain(request)))}\n\n`));
      },
    ],
  ];

  test.each(SECOND)(
    'ends with the new answer as an event of the stream that has begun: %s',
    async (_title, second) => {
      const scenario = await overtaken(second);
      const messages = messagesIn(await (await openList(scenario)).rest());
      expect(messages.map(({ method }) => method)).toEqual(['notifications/progress', undefined]);
      expect(messages[1]).toMatchObject({ id: 1, result: { tools: tools('new') } });
      expect(scenario.upstream.count()).toBe(2);
    },
  );

  test.each<[string, Respond]>([
    ['no JSON-RPC', (_request, res) => void res.writeHead(502, { 'content-type': 'text/html' }).end('<h1>')],
    ['a broken connection', (_request, res) => void res.destroy()],
    [
      'JSON that is packed',
      (request, res) => {
        const headers = { 'content-type': 'application/json', 'content-encoding': 'br' };
        res.writeHead(200, headers).end(brotliCompressSync(plain(request)));
      },
    ],
  ])('is broken off where the new answer cannot be one: %s', async (_title, second) => {
    const scenario = await overtaken(second);
    const client = await openList(scenario);
    expect((await client.next()).method).toBe('notifications/progress');
    await expect(client.next()).rejects.toThrow(/terminated|aborted/);
  });
});

const LINES = [
  ...[': ping', '', 'id: 1', 'retry: 3000', 'data:', '', 'event: message', '', 'unknown: x', ''],
  ...[`data:${ANSWER.slice(0, 17)}`, `data: ${ANSWER.slice(17)}`, ''],
];

describe('an answer in any spelling (C28, C30)', () => {
  test.each([
    ['LF', '\n'],
    ['CR', '\r'],
    ['CRLF', '\r\n'],
  ])(
    'with lines that end in %s reaches the client as it was sent, and a hit is clean',
    async (_title, end) => {
      const text = `\ufeff${LINES.map((line) => line + end).join('')}`;
      const { list, gateway } = await start((_request, res) => {
        beginEvents(res);
        res.end(text);
      });
      const first = await send(gateway.endpoint('u'), { headers: rawFields(LIST.headers), body: LIST.body });
      expect(first.body.toString()).toBe(text);
      const hit = await list({ id: 'h' });
      expect(hit).toMatchObject({ asked: 0, json: { id: 'h', result: { tools: tools('a', 'b') } } });
      expect(hit.headers.get('content-type')).toBe('application/json');
    },
  );
});

describe('a last event without a blank line (C31)', () => {
  test('reaches the client though the stream stays open, and nobody else waits for its end', async () => {
    const scenario = await start((_request, res) => {
      beginEvents(res);
      res.write(`data: ${ANSWER}\n`);
    });
    const response = await fetch(scenario.gateway.endpoint('u'), LIST);
    const reader = response.body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe(`data: ${ANSWER}\n`);
    const others = await Promise.all([scenario.list({ id: 2 }), scenario.list({ id: 3 })]);
    for (const other of others) expect(namesOf(other)).toEqual(['a', 'b']);
    expect(scenario.upstream.count()).toBe(1);
    await reader?.cancel();
  });

  test('reaches the client where the stream ends after it, and is stored', async () => {
    const scenario = await start((_request, res) => {
      beginEvents(res);
      res.end(`data: ${ANSWER}\n`);
    });
    expect((await scenario.list()).text).toBe(`data: ${ANSWER}\n`);
    expect((await scenario.list()).asked).toBe(0);
  });

  test.each(['end', 'destroy'] as const)(
    'that ends in the middle (%s) is never stored, and looks broken',
    async (how) => {
      const half = `data: ${ANSWER.slice(0, 50)}`;
      const scenario = await start((_request, res) => {
        beginEvents(res);
        res.write(half, () => res[how]());
      });
      for (let i = 0; i < 2; i += 1) {
        const answer = await scenario.list();
        if (how === 'end') expect([answer.status, answer.text]).toEqual([200, half]);
        else expect(answer).toMatchObject({ status: 502, json: { id: 1, error: { code: 502 } } });
        expect(answer.asked).toBe(1);
      }
    },
  );
});
