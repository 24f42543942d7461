/**
 * Requests of whatever bytes, over a running gateway: every answer is one, nothing that was hidden in a body is sent on
 * as a request, the next client is answered rightly, and no socket is left (law 23; RFC 9112 sections 5 to 7 and 11.2).
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { rpcRequest } from '../support/client.js';
import { type RunningGateway, startGateway } from '../support/gateway.js';
import { wireText } from '../support/raw.js';
import { FIELD_VALUES, REQUEST_BODIES } from './corpus.js';
import { mutate } from './mutate.js';
import { parseJson } from './reference.js';
import { REQUESTS, UNCLEAR } from './requests.js';
import { countInputs, fuzzSlowly, TIMEOUT_MS } from './runs.js';
import { expectSame } from './same.js';
import {
  exchange,
  expectClosed,
  responsesIn,
  type Say,
  socketsOpen,
  startWireUpstream,
  type WireUpstream,
} from './wire.js';

const RESULT = { tools: [{ name: 'é' }], ttlMs: 86_400_000, cacheScope: 'public' };

/** Answers a list with a list, and all else with an empty result. */
function answer(request: string): Say {
  const id = /"id":(\d+)/.exec(request)?.[1] ?? '1';
  const body = `{"jsonrpc":"2.0","id":${id},"result":${request.includes('tools/list') ? JSON.stringify(RESULT) : '{}'}}`;
  const fields = `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close`;
  return { bytes: Buffer.from(`HTTP/1.1 200 OK\r\n${fields}\r\n\r\n${body}`), after: 'end' };
}

let upstream: WireUpstream;
let gateway: RunningGateway;
let socketsBefore: number;
let listening: number;

beforeAll(async () => {
  socketsBefore = socketsOpen();
  upstream = await startWireUpstream(answer);
  gateway = await startGateway({ upstreams: { u: upstream.url }, env: { LOG_LEVEL: 'silent' } });
  listening = socketsOpen();
});

beforeEach(() => {
  upstream.requests.length = 0;
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
  await expectClosed(socketsBefore);
});

/** The next client, whose list is mostly in the cache. */
async function expectWell(): Promise<void> {
  const { headers, body } = rpcRequest('tools/list', { id: 7 });
  const request = wireText(gateway.endpoint('u'), { ...headers, connection: 'close' }, body);
  const [response, ...none] = responsesIn(await exchange(gateway.url, Buffer.from(request)));
  expectSame([response?.status, response?.isWhole, none], [200, true, []]);
  const told = parseJson(response?.body ?? Buffer.alloc(0));
  expect(told).toMatchObject({
    jsonrpc: '2.0',
    id: 7,
    result: { tools: RESULT.tools, cacheScope: 'public' },
  });
}

/** What the gateway sends on is framed in one way, whatever came. */
function expectSound(request: string): void {
  const cut = request.indexOf('\r\n\r\n');
  const [line = '', ...fields] = request.slice(0, cut).split('\r\n');
  expect(line).toMatch(/^(POST|GET|DELETE) \/[\x21-\xff]* HTTP\/1\.1$/);
  for (const field of fields) expect(field).toMatch(/^[!#$%&'*+.^_`|~\w-]+: ?[\t\x20-\x7e\x80-\xff]*$/);
  expect(fields.filter((field) => /^transfer-encoding:/i.test(field))).toEqual([]);
  expect(fields.filter((field) => /^content-length:/i.test(field)).length).toBeLessThanOrEqual(1);
  expect(fields.filter((field) => /^host:/i.test(field))).toHaveLength(1);
}

describe('a request that is unclear', { timeout: TIMEOUT_MS }, () => {
  test.each(UNCLEAR)('by %s is refused, and nothing of it sent on', async (_title, text) => {
    countInputs();
    const responses = responsesIn(await exchange(gateway.url, Buffer.from(text, 'latin1'), true));
    for (const { status } of responses) expect(status >= 400 && status < 500).toBe(true);
    expectSame(upstream.requests, []);
    await expectWell();
    await expectClosed(listening);
  });
});

/** One request of whatever body and value of a field, framed as it should be. */
function framed(body: Buffer, value: string): Buffer {
  const { headers } = rpcRequest('tools/list');
  const fields = { host: 'localhost', ...headers, 'x-value': value, connection: 'close' };
  const lines = Object.entries(fields).map(([name, text]) => `${name}: ${text}\r\n`);
  const head = `POST /mcp/u HTTP/1.1\r\n${lines.join('')}content-length: ${body.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), body]);
}

describe('a request of whatever body and fields', { timeout: TIMEOUT_MS }, () => {
  test('is sent on byte for byte, or answered here as a list or a refusal', async () => {
    let sentOn = 0;
    await fuzzSlowly({ name: 'bodies', corpus: REQUEST_BODIES, runs: 600 }, async (body, random) => {
      const noise = mutate(FIELD_VALUES, random).toString('latin1');
      const value = noise.replace(/[^\t\x20-\x7e\x80-\xff]/g, '').trim();
      const before = upstream.requests.length;
      const responses = responsesIn(await exchange(gateway.url, framed(body, value)));
      const [response] = responses;
      expectSame([responses.length, response?.isWhole], [1, true]);
      const sent = upstream.requests.slice(before);
      for (const request of sent) {
        sentOn += 1;
        expectSound(request);
        expectSame(Buffer.from(request.slice(request.indexOf('\r\n\r\n') + 4), 'latin1'), body);
        expect(/\r\nx-value: ?([^\r]*)\r\n/.exec(request)?.[1]?.trim()).toBe(value);
      }
      if (sent.length > 1) throw new Error(`sent on ${sent.length} times`);
      if (sent.length === 0 && response?.status !== 400) expect(response?.fields).toContain('Cache-Status');
      expect(response?.status).toBe(sent.length === 1 || response?.status !== 400 ? 200 : 400);
    });
    expect(sentOn).toBeGreaterThan(100);
    await expectWell();
    await expectClosed(listening);
  });
});

describe('a request of whatever bytes', { timeout: TIMEOUT_MS }, () => {
  test('gets answers that are whole, and leaves the gateway as it was', async () => {
    let answered = 0;
    await fuzzSlowly({ name: 'requests', corpus: REQUESTS, runs: 500 }, async (bytes) => {
      const before = upstream.requests.length;
      const responses = responsesIn(await exchange(gateway.url, bytes, true));
      answered += responses.length;
      for (const { status, isWhole } of responses) {
        expect(status >= 100 && status < 500, `${status}`).toBe(true);
        expect(isWhole).toBe(true);
      }
      const sent = upstream.requests.slice(before);
      for (const request of sent) expectSound(request);
      const final = responses.filter(({ status }) => status >= 200);
      expect(sent.length).toBeLessThanOrEqual(final.length);
      await expectWell();
    });
    expect(answered).toBeGreaterThan(REQUESTS.length / 2);
    await expectClosed(listening);
  });
});
