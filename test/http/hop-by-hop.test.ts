/** What belongs to one hop does not travel: law 23; cases C43, C45; RFC 9110 sections 7.6.1 and 10.1.1. */
import { describe, expect, test } from 'vitest';
import { valuesOf } from '../../src/core/headers.js';
import { useRawUpstream } from '../support/before.js';
import { rpcRequest } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { namesOf, page } from '../support/lists.js';
import { openWire, rawFields, send, wireText } from '../support/raw.js';
import { useScenario } from '../support/scenario.js';
import { sendJson, sendResult } from '../support/upstream.js';

const start = useScenario();
const startRaw = useRawUpstream();
const closing = useClosers();

const LIST = rpcRequest('tools/list');
const CALL = rpcRequest('tools/call', { params: { name: 't', arguments: { text: 'x'.repeat(2_000) } } });

describe('fields of the hop (C43)', () => {
  test('do not reach the upstream, nor do those that Connection names', async () => {
    const { gateway, upstream } = await start((_request, res) => sendJson(res, '{}'));
    const hop = [
      ...['Connection', 'keep-alive, X-Hop , x-other', 'Connection', 'X-Third', 'X-Hop', '1', 'X-Other', '2'],
      ...['X-Third', '3', 'TE', 'trailers', 'Keep-Alive', 'timeout=5', 'Proxy-Authorization', 'Basic eA=='],
      ...['Proxy-Connection', 'keep-alive', 'Upgrade', 'h2c', 'HTTP2-Settings', 'x'],
    ];
    const headers = [...hop, 'X-End', 'e', ...rawFields(CALL.headers)];
    expect((await send(gateway.endpoint('u'), { headers, body: CALL.body })).status).toBe(200);
    const names = Object.keys(upstream.requests[0]?.headers ?? {});
    expect(names).toContain('x-end');
    for (let i = 0; i < hop.length; i += 2) {
      const name = hop[i]?.toLowerCase() ?? '';
      if (name !== 'connection') expect(names).not.toContain(name);
    }
    expect(upstream.requests[0]?.headers.connection).not.toMatch(/x-/i);
  });

  test.each(['application/json', 'text/event-stream'])('do not reach the client (%s)', async (type) => {
    const hop = [
      ...['Connection: X-Up, close', 'X-Up: 1', 'Keep-Alive: timeout=77', 'Proxy-Authenticate: Basic'],
      ...['Trailer: X-T', 'Upgrade: h2c', 'Proxy-Connection: close', 'Transfer-Encoding: chunked'],
    ];
    const head = ['HTTP/1.1 200 OK', ...hop, 'X-End: e', `Content-Type: ${type}`].join('\r\n');
    for (const { headers, body } of [LIST, CALL]) {
      const { endpoint } = await startRaw(`${head}\r\n\r\n4\r\n\r\n\r\n\r\n0\r\nX-T: 1\r\n\r\n`);
      const answer = await send(endpoint, { headers: rawFields(headers), body });
      expect([answer.text, answer.isWhole]).toEqual(['\r\n\r\n', true]);
      expect(valuesOf(answer.headers, 'x-end')).toEqual(['e']);
      for (const name of ['x-up', 'proxy-authenticate', 'trailer', 'upgrade', 'proxy-connection']) {
        expect(valuesOf(answer.headers, name)).toEqual([]);
      }
      expect(valuesOf(answer.headers, 'connection').join()).not.toMatch(/x-up/i);
      expect(valuesOf(answer.headers, 'keep-alive')).not.toContain('timeout=77');
    }
  });

  test('cannot take a credential from a request and leave it the entry of its owner', async () => {
    const { gateway, upstream } = await start((request, res) => {
      const token = request.headers.authorization ?? 'nobody';
      sendResult(res, request, page([token], undefined, { cacheScope: 'private' }));
    });
    const ask = async (fields: Record<string, string>) => {
      const answer = await send(gateway.endpoint('u'), {
        headers: rawFields({ ...LIST.headers, ...fields }),
        body: LIST.body,
      });
      return namesOf({ json: JSON.parse(answer.text) });
    };
    expect(await ask({ authorization: 'Bearer a' })).toEqual(['Bearer a']);
    expect(await ask({ authorization: 'Bearer a', connection: 'Authorization' })).toEqual(['nobody']);
    expect(await ask({ authorization: 'Bearer a' })).toEqual(['Bearer a']);
    expect(upstream.count()).toBe(2);
  });

  test.each(['close', 'keep-alive, ,', ',', 'Host', 'Content-Length', 'content-type, accept'])(
    'may be named oddly, %s: the request is answered',
    async (connection) => {
      const { gateway, upstream } = await start((_request, res) => sendJson(res, '{"ok":1}'));
      const answer = await send(gateway.endpoint('u'), {
        headers: rawFields({ ...CALL.headers, connection }),
        body: CALL.body,
      });
      expect(answer.text).toBe('{"ok":1}');
      expect(upstream.requests[0]?.body.toString()).toBe(CALL.body);
      expect(upstream.requests[0]?.headers.host).toBe(new URL(upstream.url).host);
    },
  );
});

describe('a request that could be read in two ways (C43; RFC 9112 section 6)', () => {
  const SMUGGLED = 'POST /mcp/u HTTP/1.1\r\nHost: x\r\n\r\n';
  const FRAMES = {
    'both a length and chunks': `Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
    'two lengths': `Content-Length: 0\r\nContent-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`,
    'a coding that is none': `Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
    'a length that is none': `Content-Length: 0x5\r\n\r\n${SMUGGLED}`,
  };

  test.each(Object.entries(FRAMES))('by %s is refused with 400', async (_title, rest) => {
    const { gateway, upstream } = await start((_request, res) => sendJson(res, '{}'));
    const wire = closing(await openWire(gateway.url));
    wire.write(`POST /mcp/u HTTP/1.1\r\nHost: ${new URL(gateway.url).host}\r\n${rest}`);
    await wire.closed;
    expect(wire.received().match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 400']);
    expect(upstream.count()).toBe(0);
  });
});

describe('Expect (C45)', () => {
  test('of 100-continue is answered, and the call works once its body is there', async () => {
    const { gateway, upstream } = await start((_request, res) => sendJson(res, '{"done":1}'));
    const wire = closing(await openWire(gateway.url));
    const text = wireText(gateway.endpoint('u'), { ...CALL.headers, expect: '100-continue' }, CALL.body);
    const head = text.slice(0, text.indexOf('\r\n\r\n') + 4);
    wire.write(head);
    await wire.sees('HTTP/1.1 100 Continue\r\n\r\n');
    wire.write(text.slice(head.length));
    await wire.sees('{"done":1}');
    expect(wire.received()).toContain('HTTP/1.1 200 OK');
    expect(upstream.requests[0]?.body.toString()).toBe(CALL.body);
    expect(upstream.requests[0]?.headers).not.toHaveProperty('expect');
  });

  test('of 100-continue is no obstacle to a hit', async () => {
    const { gateway, upstream } = await start((request, res) => sendResult(res, request, page(['a'])));
    for (let i = 0; i < 2; i += 1) {
      const wire = closing(await openWire(gateway.url));
      wire.write(wireText(gateway.endpoint('u'), { ...LIST.headers, expect: '100-continue' }, LIST.body));
      await wire.sees('"name":"a"');
      expect(wire.received()).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK/);
    }
    expect(upstream.count()).toBe(1);
  });

  test('of anything else is 417, or is not minded', async () => {
    const { gateway } = await start((_request, res) => sendJson(res, '{}'));
    const headers = rawFields({ ...CALL.headers, expect: 'x' });
    expect([200, 417]).toContain((await send(gateway.endpoint('u'), { headers, body: CALL.body })).status);
  });
});
