/** Bodies that are large or deep: design, section 2 (MAX_BODY_BYTES, CACHE_MAX_ENTRY_BYTES); case C53. */
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { MAX_DISCARDED_BYTES } from '../../src/http/reply.js';
import { rpcRequest } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { createGate } from '../support/gate.js';
import { page } from '../support/lists.js';
import { openWire, rawFields, send } from '../support/raw.js';
import { useScenario } from '../support/scenario.js';
import { beginEvents, goodResult, type Respond, sendJson, sendResult } from '../support/upstream.js';

const start = useScenario();
const closing = useClosers();

const ok: Respond = (_request, res) => sendJson(res, '{"ok":1}');
const LIMIT = 100_000;
const limited = { env: { MAX_BODY_BYTES: String(LIMIT) } };
const LIST = rpcRequest('tools/list');

/** A `tools/call` whose body has this length. */
function callOf(length: number): { headers: string[]; body: string } {
  const { headers, body } = rpcRequest('tools/call', { params: { name: 't', text: '' } });
  const text = 'x'.repeat(length - body.length);
  return { headers: rawFields(headers), body: body.replace('"text":""', `"text":"${text}"`) };
}

function inChunks(url: string, body: string): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: new ReadableStream({
      start(controller) {
        for (let at = 0; at < body.length; at += 65_536)
          controller.enqueue(Buffer.from(body.slice(at, at + 65_536)));
        controller.close();
      },
    }),
    duplex: 'half',
  });
}

describe('a request body', () => {
  test('passes up to the limit, with a length and in chunks', async () => {
    const { gateway, upstream } = await start(ok, limited);
    const call = callOf(LIMIT);
    expect((await send(gateway.endpoint('u'), call)).status).toBe(200);
    expect((await inChunks(gateway.endpoint('u'), call.body)).status).toBe(200);
    for (const request of upstream.requests) expect(request.body.equals(Buffer.from(call.body))).toBe(true);
    expect(upstream.count()).toBe(2);
  });

  test('beyond it is refused with 413 that names the limit, and the upstream is not asked', async () => {
    const { gateway, upstream } = await start(ok, limited);
    const call = callOf(LIMIT + 1);
    const { status, text } = await send(gateway.endpoint('u'), call);
    const other = await inChunks(gateway.endpoint('u'), call.body);
    for (const [code, body] of [[status, text] as const, [other.status, await other.text()] as const]) {
      expect(code).toBe(413);
      const { error, ...rest } = JSON.parse(body);
      expect(rest).toEqual({ jsonrpc: '2.0' });
      expect(error.message).toContain(String(LIMIT));
    }
    expect(upstream.count()).toBe(0);
  });

  test.each([
    ['too large', 413, {}],
    ['of a foreign page', 403, { origin: 'https://evil.example' }],
  ])(
    'that is %s is read to its end, so that the client sees the verdict',
    async (_title, status, headers) => {
      const { gateway } = await start(ok, limited);
      const body = Buffer.alloc(20_000_000, 'x');
      for (let i = 0; i < 5; i += 1) {
        const answer = await fetch(gateway.endpoint('u'), { method: 'POST', body, headers });
        expect(answer.status).toBe(status);
        expect(JSON.parse(await answer.text()).error.code).toBe(status);
      }
    },
  );

  test('of which there is no end is not read for ever', async () => {
    const { gateway } = await start(ok, limited);
    const wire = closing(await openWire(gateway.url));
    const { host } = new URL(gateway.url);
    wire.write(`POST /mcp/u HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n`);
    const chunk = Buffer.concat([
      Buffer.from('100000\r\n'),
      Buffer.alloc(1_048_576, 'x'),
      Buffer.from('\r\n'),
    ]);
    wire.socket.on('error', () => {});
    let sent = 0;
    for (; !wire.socket.destroyed && sent < 2 * MAX_DISCARDED_BYTES; sent += chunk.length) {
      if (!wire.socket.write(chunk))
        await Promise.race([once(wire.socket, 'drain'), once(wire.socket, 'close')]).catch(() => {});
    }
    expect(wire.received()).toContain('HTTP/1.1 413');
    expect(sent).toBeLessThan(2 * MAX_DISCARDED_BYTES);
  });

  test('beyond it is refused before it was sent', async () => {
    const { gateway } = await start(ok, limited);
    const wire = closing(await openWire(gateway.url));
    const { host } = new URL(gateway.url);
    wire.write(`POST /mcp/u HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${LIMIT + 1}\r\n\r\n`);
    await wire.sees('HTTP/1.1 413');
    await wire.closed;
  });

  test('of many megabytes gets its 413 all the same, and not a broken connection', async () => {
    const { gateway, upstream } = await start(ok);
    const call = callOf(16_000_000);
    for (let i = 0; i < 5; i += 1) {
      expect((await send(gateway.endpoint('u'), call)).status).toBe(413);
      const { host } = new URL(gateway.url);
      const wire = closing(await openWire(gateway.url));
      wire.write(`POST /mcp/u HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n`);
      wire.write(`${call.body.length.toString(16)}\r\n${call.body}\r\n0\r\n\r\n`);
      await wire.sees('HTTP/1.1 413');
    }
    expect(upstream.count()).toBe(0);
  });

  test('has a limit of 4 MiB where none is set', async () => {
    const { gateway } = await start(ok);
    expect((await send(gateway.endpoint('u'), callOf(4_194_304))).status).toBe(200);
    const { status, text } = await send(gateway.endpoint('u'), callOf(4_194_305));
    expect(status).toBe(413);
    expect(text).toContain('4194304');
  });
});

describe('JSON nested 100,000 deep', () => {
  const DEEP = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  const OBJECTS = `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`;
  const listWith = (params: string) => LIST.body.replace('"params":{', `"params":{${params},`);

  test.each([
    ['alone', DEEP],
    ['in a list’s parameters', listWith(`"x":${DEEP}`)],
    ['in a list’s parameters, as objects', listWith(`"x":${OBJECTS}`)],
    ['in its metadata', LIST.body.replace('"_meta":{', `"_meta":{"x":${OBJECTS},`)],
    ['instead of parameters', LIST.body.replace(/"params":.*}$/, `"params":${OBJECTS}}`)],
    ['instead of an id', LIST.body.replace('"id":1', `"id":${DEEP}`)],
    ['in a call', rpcRequest('tools/call').body.replace('"params":{', `"params":{"arguments":${OBJECTS},`)],
    ['and never closed', `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":${'['.repeat(100_000)}`],
  ])('in a request, %s, passes to the upstream byte for byte', async (_title, body) => {
    const { gateway, upstream } = await start(ok);
    const answer = await send(gateway.endpoint('u'), { headers: rawFields(LIST.headers), body });
    expect([answer.status, answer.text]).toEqual([200, '{"ok":1}']);
    expect(upstream.requests[0]?.body.equals(Buffer.from(body))).toBe(true);
    expect(
      (await send(gateway.endpoint('u'), { headers: rawFields(LIST.headers), body: LIST.body })).status,
    ).toBe(200);
  });

  const ANSWERS: [string, string][] = [
    ['alone', DEEP],
    [
      'in an item',
      `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","x":${OBJECTS}}],"ttlMs":60000,"cacheScope":"public"}}`,
    ],
    [
      'in a result',
      `{"jsonrpc":"2.0","id":1,"result":{"tools":[],"x":${DEEP},"ttlMs":60000,"cacheScope":"public"}}`,
    ],
    [
      'in place of hints',
      `{"jsonrpc":"2.0","id":1,"result":{"tools":[],"ttlMs":${DEEP},"cacheScope":${OBJECTS}}}`,
    ],
    ['in an error', `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"list_changed","data":${OBJECTS}}}`],
  ];

  test.each(ANSWERS)('in an answer, %s, arrives byte for byte', async (_title, body) => {
    for (const isStream of [false, true]) {
      const { gateway } = await start((_request, res) => {
        if (!isStream) return sendJson(res, body);
        beginEvents(res);
        res.end(
          `data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed","x":${DEEP}}\n\ndata: ${body}\n\n`,
        );
      });
      for (const { headers, body: asked } of [LIST, rpcRequest('tools/call')]) {
        const { status, text } = await send(gateway.endpoint('u'), {
          headers: rawFields(headers),
          body: asked,
        });
        expect(status).toBe(200);
        expect(text.includes(body), 'the whole answer').toBe(true);
      }
    }
  });
});

describe('an answer too large to keep', () => {
  test('passes as it comes, whole, and is not stored', async () => {
    const gate = createGate();
    const text = 'y'.repeat(8_000_000);
    const { gateway, upstream } = await start(
      async (request, res) => {
        const whole = JSON.stringify({
          jsonrpc: '2.0',
          id: request.json.id,
          result: goodResult({ contents: [{ uri: 'x:y', text }] }),
        });
        res.writeHead(200, { 'content-type': 'application/json' });
        res.write(whole.slice(0, 2_000_000));
        await gate.pass();
        res.end(whole.slice(2_000_000));
      },
      { env: { CACHE_MAX_ENTRY_BYTES: '1000000' } },
    );
    const { headers, body } = rpcRequest('resources/read', { params: { uri: 'x:y' } });
    const response = await fetch(gateway.endpoint('u'), { method: 'POST', headers, body });
    expect(response.headers.get('cache-status')).toContain('fwd=miss; detail=too-large');
    expect(upstream.count(), 'the head is here, and the upstream still writes').toBe(1);
    gate.open();
    const json: { result: { contents: { text: string }[] } } = JSON.parse(await response.text());
    expect(json.result.contents[0]?.text === text).toBe(true);
    await (await fetch(gateway.endpoint('u'), { method: 'POST', headers, body })).body?.cancel();
    expect(upstream.count()).toBe(2);
  });

  test('up to the bound is stored, and is the same on a hit', async () => {
    const { gateway, upstream } = await start(
      (request, res) => sendResult(res, request, page(['z'.repeat(900_000)])),
      {
        env: { CACHE_MAX_ENTRY_BYTES: '1000000' },
      },
    );
    const ask = () => send(gateway.endpoint('u'), { headers: rawFields(LIST.headers), body: LIST.body });
    const [first, second] = [JSON.parse((await ask()).text), JSON.parse((await ask()).text)];
    expect(upstream.count()).toBe(1);
    expect(second.result.tools[0].name === first.result.tools[0].name).toBe(true);
    expect(second.result.tools[0].name).toHaveLength(900_000);
  });
});
