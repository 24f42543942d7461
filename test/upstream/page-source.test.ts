/** What the answer to a cacheable request is, where it is no event stream: laws 4 and 6, cases C44, C53. */
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { useClosers } from '../support/closers.js';
import { relayed, startFetch } from '../support/fetching.js';
import { createGate } from '../support/gate.js';
import { page } from '../support/lists.js';
import { startRawUpstream } from '../support/raw.js';
import { type Respond, sendJson, startUpstream } from '../support/upstream.js';

const closing = useClosers();

const ANSWER = JSON.stringify({ jsonrpc: '2.0', id: 1, result: page(['a', 'ü']) });

async function upstreamAt(respond: Respond): Promise<string> {
  return closing(await startUpstream(respond)).url;
}

function answering(body: string | Buffer, status = 200, headers: Record<string, string> = {}) {
  return upstreamAt((_request, res) => {
    res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
  });
}

describe('a JSON answer', () => {
  test('is a page, received when its last byte came, and held as it came', async () => {
    let now = 5;
    const gate = createGate();
    const url = await upstreamAt(async (_request, res) => {
      res.writeHead(200, { 'content-type': 'Application/JSON; charset=utf-8' });
      res.write(ANSWER.slice(0, 20));
      await gate.pass();
      now = 42;
      res.end(ANSWER.slice(20));
    });
    const { fetched } = startFetch(url, { now: () => now });
    await gate.arrivals(1);
    gate.open();
    const got = await fetched;
    expect(got).toMatchObject({ kind: 'page', received: { receivedAt: 42, page: { items: { count: 2 } } } });
    expect(Buffer.from(await relayed(got), 'latin1').toString()).toBe(ANSWER);
  });

  test.each([
    ['gzip', gzipSync(ANSWER)],
    ['deflate', deflateSync(ANSWER)],
    ['br', brotliCompressSync(ANSWER)],
  ])('packed with %s is read, and held as it came', async (coding, packed) => {
    const got = await startFetch(await answering(packed, 200, { 'content-encoding': coding })).fetched;
    expect(got).toMatchObject({ kind: 'page', received: { page: { items: { count: 2 } } } });
    expect(await relayed(got)).toBe(packed.toString('latin1'));
    expect(got.response.headers).toEqual(expect.arrayContaining(['content-encoding', coding]));
  });

  test('that breaks off is a failure of the upstream', async () => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n';
    const upstream = closing(await startRawUpstream(head + ANSWER, { after: 'end' }));
    await expect(startFetch(upstream.url).fetched).rejects.toMatchObject({ code: 'upstream-unreachable' });
  });

  test.each([
    ['an error', 'error-reply', '{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}'],
    ['another id', 'unexpected', ANSWER.replace('"id":1', '"id":"1"')],
    ['no JSON', 'unexpected', '<html>'],
    ['nothing', 'unexpected', ''],
    ['a result of another method', 'unexpected', '{"jsonrpc":"2.0","id":1,"result":{"prompts":[]}}'],
    [
      'a request for input',
      'input-required',
      '{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","tools":[]}}',
    ],
  ])('that is %s is other (%s), as it came', async (_title, reason, body) => {
    const got = await startFetch(await answering(body)).fetched;
    expect(got).toMatchObject({ kind: 'other', reason, response: { status: 200 } });
    expect(Buffer.from(await relayed(got), 'latin1').toString()).toBe(body);
  });

  test('of an error tells its code', async () => {
    const body = '{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}';
    expect(await startFetch(await answering(body)).fetched).toHaveProperty('errorCode', -32602);
  });
});

describe('an answer that is not read', () => {
  test.each([
    ['another status', 500, {}, 'status'],
    ['another status of success', 206, {}, 'status'],
    ['another type', 200, { 'content-type': 'text/html' }, 'unexpected'],
    ['a coding that is not known here', 200, { 'content-encoding': 'zstd' }, 'unexpected'],
    ['two codings', 200, { 'content-encoding': 'br, gzip' }, 'unexpected'],
    ['a coding that it does not have', 200, { 'content-encoding': 'gzip' }, 'unexpected'],
  ] as const)('for %s is other, as it came', async (_title, status, headers, reason) => {
    const got = await startFetch(await answering(ANSWER, status, headers)).fetched;
    expect(got).toMatchObject({ kind: 'other', reason, response: { status } });
    expect(Buffer.from(await relayed(got), 'latin1').toString()).toBe(ANSWER);
  });

  test('for its size is other as soon as that is known, and nothing of it is lost', async () => {
    const gate = createGate();
    const url = await upstreamAt(async (_request, res) => {
      res.writeHead(200, { 'content-type': 'application/json' });
      res.write('x'.repeat(101));
      await gate.pass();
      res.end('the rest');
    });
    const got = await startFetch(url, { maxBytes: 100 }).fetched;
    expect(got).toMatchObject({ kind: 'other', reason: 'too-large' });
    gate.open();
    expect(await relayed(got)).toBe(`${'x'.repeat(101)}the rest`);
  });

  test('for its size once unpacked is other, as it came', async () => {
    const packed = gzipSync(JSON.stringify({ jsonrpc: '2.0', id: 1, result: page(['a'.repeat(2_000)]) }));
    const url = await answering(packed, 200, { 'content-encoding': 'gzip' });
    const got = await startFetch(url, { maxBytes: 1_000 }).fetched;
    expect(packed.length).toBeLessThan(1_000);
    expect(got).toMatchObject({ kind: 'other', reason: 'too-large' });
    expect(await relayed(got)).toBe(packed.toString('latin1'));
  });

  test('is let go of when it is discarded', async () => {
    const left = createGate();
    const url = await upstreamAt((_request, res) => {
      res.on('close', () => left.open());
      res.writeHead(500).write('held');
    });
    (await startFetch(url).fetched).response.discard();
    await left.pass();
  });
});

describe('a later page of a walk (law 10)', () => {
  test.each([200, 400, 404])('that is refused with status %i tells the error code', async (status) => {
    const body = '{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}';
    const url = await upstreamAt((_request, res) => sendJson(res, body, status));
    const got = await startFetch(url, { isLaterPage: true }).fetched;
    expect(got).toMatchObject({ kind: 'other', errorCode: -32602 });
  });

  test('that is a result under another status is no page', async () => {
    const got = await startFetch(await answering(ANSWER, 500), { isLaterPage: true }).fetched;
    expect(got).toMatchObject({ kind: 'other', reason: 'status' });
  });
});
