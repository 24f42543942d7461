/** The short way of a hit: what counts as the same request, and that it says what the long way says (laws 3, 8, 14). */
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { describe, expect, test } from 'vitest';
import {
  type AskedRequest,
  createRecall,
  MAX_RECALLED,
  MAX_RECALLED_BYTES,
  type Recall,
  recallIn,
} from '../../src/http/recall.js';
import { rpcRequest } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { type RunningGateway, startGateway } from '../support/gateway.js';
import { goodResult, sendResult, startUpstream } from '../support/upstream.js';

const closing = useClosers();

const FIELDS = ['Content-Type', 'application/json', 'Content-Length', '40', 'X-Key', 'a'];
const URL = '/mcp/u?a=1';
const [BEFORE, AFTER] = ['{"jsonrpc":"2.0","id":', ',"method":"tools/list"}'];

function asked(
  id: string,
  change: { url?: string; rawHeaders?: string[]; before?: string; after?: string } = {},
) {
  const { url = URL, rawHeaders = FIELDS, before = BEFORE, after = AFTER } = change;
  return { url, rawHeaders, body: Buffer.from(`${before}${id}${after}`) };
}

function found<T>(recall: Recall<T>, connection: object, asked: AskedRequest) {
  const head = recall.headOf(connection, asked);
  return head && recallIn(head, asked.body);
}

function kept() {
  const recall = createRecall<string>();
  const connection = {};
  recall.keep(connection, asked('1'), { start: BEFORE.length, end: BEFORE.length + 1 }, 'value');
  return { recall, connection };
}

describe('a request is known again', () => {
  test.each(['2', '0', '-7', '123456789012345', '"abc"', '""', '"a b~"'])('under the id %s', (id) => {
    const { recall, connection } = kept();
    expect(found(recall, connection, asked(id))).toEqual({ value: 'value', idRaw: id });
  });

  test('with another length, which changes with the id', () => {
    const { recall, connection } = kept();
    const rawHeaders = FIELDS.with(3, '41');
    expect(found(recall, connection, asked('22', { rawHeaders }))?.value).toBe('value');
  });
});

describe('a request is not taken for another', () => {
  test.each([
    '1.0',
    '1e3',
    '01',
    '+1',
    '1234567890123456',
    'null',
    'true',
    '{}',
    '[]',
    '',
    '"a\\u0041"',
    '"a"b"',
    '"é"',
    '1,"x":2',
    '1 ',
    '"',
    `"${'a'.repeat(65)}"`,
  ])('whose id is %j', (id) => {
    const { recall, connection } = kept();
    expect(found(recall, connection, asked(id))).toBeUndefined();
  });

  test.each([
    ['the query', { url: '/mcp/u?a=2' }],
    ['the value of a field', { rawHeaders: FIELDS.with(5, 'b') }],
    ['the case of a name', { rawHeaders: FIELDS.with(4, 'x-key') }],
    ['one field more', { rawHeaders: [...FIELDS, 'X-Key', 'a'] }],
    ['one field less', { rawHeaders: FIELDS.slice(0, 4) }],
    ['a byte before the id', { before: BEFORE.replace('2.0', '2.1') }],
    ['a byte after the id', { after: AFTER.replace('tools', 'fools') }],
    ['more after it', { after: `${AFTER} ` }],
  ])('that differs in %s', (_title, change) => {
    const { recall, connection } = kept();
    expect(found(recall, connection, asked('1', change))).toBeUndefined();
  });

  test('on another connection', () => {
    expect(found(kept().recall, {}, asked('1'))).toBeUndefined();
  });
});

test('a connection keeps a bounded number of requests, each of a bounded size', () => {
  const recall = createRecall<number>();
  const connection = {};
  const id = { start: BEFORE.length, end: BEFORE.length + 1 };
  for (let i = 0; i <= MAX_RECALLED; i += 1) recall.keep(connection, asked('1', { url: `/${i}` }), id, i);
  const all = Array.from({ length: MAX_RECALLED + 1 }, (_, i) =>
    found(recall, connection, asked('2', { url: `/${i}` })),
  );
  expect(all.map((one) => one?.value)).toEqual([undefined, 1, 2, 3, 4, 5, 6, 7, 8]);
  const large = asked('1', { after: `${AFTER}${' '.repeat(MAX_RECALLED_BYTES)}` });
  recall.keep(connection, large, id, 99);
  expect(found(recall, connection, large)).toBeUndefined();
});

describe('on one connection', () => {
  async function start(env: Readonly<Record<string, string>> = {}) {
    let edition = 1;
    const upstream = closing(
      await startUpstream((req, res) => {
        const whose = req.headers.authorization ?? 'nobody';
        sendResult(res, req, { ...goodResult({ tools: [{ name: whose, edition }] }), cacheScope: 'private' });
      }),
    );
    const gateway = closing(await startGateway({ upstreams: { u: upstream.url }, env }));
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    closing({ close: async () => agent.destroy() });
    /** Sends a request on the one connection and reads its answer. */
    async function ask(id: string | number, headers: Readonly<Record<string, string>> = {}) {
      const asked = rpcRequest('tools/list', { id, headers });
      const sent = request(gateway.endpoint('u'), { method: 'POST', agent, headers: asked.headers });
      sent.end(asked.body);
      const [response]: IncomingMessage[] = await once(sent, 'response');
      const json = JSON.parse((await response?.toArray())?.join('') ?? '');
      return { json, headers: response?.headers ?? {} };
    }
    const change = () => {
      edition += 1;
    };
    return { upstream, gateway, ask, change };
  }

  async function flush(gateway: RunningGateway) {
    expect((await fetch(`${gateway.adminUrl}/cache/flush`, { method: 'POST' })).status).toBe(200);
  }

  test('each answer has its own id, and all of a hit', async () => {
    const { upstream, ask, gateway } = await start();
    await ask(1);
    for (const id of [2, 'three', -4, 'fünf']) {
      const { json, headers } = await ask(id);
      expect(json.id).toBe(id);
      expect(json.result).toMatchObject({ tools: [{ name: 'nobody' }], cacheScope: 'private' });
      expect(json.result.ttlMs).toBeGreaterThan(0);
      expect(headers['cache-status']).toMatch(/^mcp-cache-gateway; hit; ttl=\d+$/);
      expect(headers.age).toMatch(/^\d+$/);
    }
    expect(upstream.count()).toBe(1);
    const shown = JSON.parse(await (await fetch(`${gateway.adminUrl}/cache`)).text());
    expect(shown.upstreams[0]).toMatchObject({ hits: 4, misses: 1 });
    const lines = gateway.logs.filter(({ msg }) => msg === 'request');
    expect(lines.slice(1).map(({ outcome, method }) => [outcome, method])).toEqual(
      Array(4).fill(['hit', 'tools/list']),
    );
  });

  test('two callers never get what is the other’s', async () => {
    const { ask } = await start();
    for (let id = 1; id <= 6; id += 1) {
      const authorization = `Bearer ${id % 2}`;
      expect((await ask(id, { authorization })).json.result.tools[0].name).toBe(authorization);
    }
  });

  test('nothing from before a flush is answered after it', async () => {
    const { ask, gateway, change, upstream } = await start();
    await ask(1);
    await ask(2);
    change();
    await flush(gateway);
    expect((await ask(3)).json.result.tools[0].edition).toBe(2);
    expect((await ask(4)).json.result.tools[0].edition).toBe(2);
    expect(upstream.count()).toBe(2);
  });

  test('pages stay pages', async () => {
    const { ask } = await start({ PAGE_SIZE: '1' });
    await ask(1);
    expect((await ask(2)).json.result.tools).toHaveLength(1);
  });
});
