/** What passes through arrives as it was sent, both ways: law 23. */
import { describe, expect, test } from 'vitest';
import { valuesOf } from '../../src/core/headers.js';
import { useRawUpstream } from '../support/before.js';
import { rpcRequest } from '../support/client.js';
import { rawFields, send } from '../support/raw.js';

const start = useRawUpstream();

const NO_CONTENT = 'HTTP/1.1 204 No Content\r\n\r\n';
const CALL = rpcRequest('tools/call', { id: 'c', params: { name: 't' } });
/** What each hop writes anew. */
const OF_THE_HOP = /^(host|connection|keep-alive|content-length|transfer-encoding|date)$/i;

function fieldsOf(request: string | undefined): string[] {
  const [, ...lines] = (request ?? '').split('\r\n\r\n', 1)[0]?.split('\r\n') ?? [];
  return lines.flatMap((line) => [
    line.slice(0, line.indexOf(':')),
    line.slice(line.indexOf(':') + 1).trim(),
  ]);
}

function endToEnd(fields: readonly string[]): string[] {
  return fields.flatMap((name, i) =>
    i % 2 === 0 && !OF_THE_HOP.test(name) ? [name, fields[i + 1] ?? ''] : [],
  );
}

const bodyOf = (request: string | undefined) => request?.slice(request.indexOf('\r\n\r\n') + 4);

describe('a request', () => {
  const BODIES: [string, Buffer][] = [
    ['JSON with its white space', Buffer.from(' {"jsonrpc" : "2.0",\r\n"id":1e0,"method":"tools/call"}\n\n')],
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0xff, 0x00, 0xfe, 0x7d])],
    [
      'numbers beyond 2^53',
      Buffer.from('{"jsonrpc":"2.0","id":1,"method":"x","params":{"n":9007199254740993}}'),
    ],
    ['nothing', Buffer.alloc(0)],
  ];

  test.each(BODIES)('of %s arrives byte for byte', async (_title, body) => {
    const { endpoint, upstream } = await start(NO_CONTENT);
    await send(endpoint, { headers: ['Content-Type', 'application/json'], body });
    expect(bodyOf(upstream.requests[0])).toBe(body.toString('latin1'));
    expect(valuesOf(fieldsOf(upstream.requests[0]), 'content-length')).toEqual([String(body.length)]);
  });

  test('arrives with its fields as they were sent, and with no others', async () => {
    const { endpoint, upstream } = await start(NO_CONTENT);
    const headers = [
      ...['X-b', '2', 'Content-Type', 'Application/JSON; Charset="utf-8"', 'ACCEPT', '*/*', 'x-B', '1'],
      ...['Authorization', 'Bearer a  b', 'Cookie', 'a=1; b=2', 'Mcp-Session-Id', 's-1', 'X-Empty', ''],
      ...['X-Latin', '\xe9', 'Origin', 'http://localhost:1', 'Last-Event-ID', '7', 'X-b', '3'],
    ];
    await send(endpoint, { headers, body: CALL.body });
    expect(endToEnd(fieldsOf(upstream.requests[0]))).toEqual(headers);
    expect(valuesOf(fieldsOf(upstream.requests[0]), 'host')).toEqual([new URL(upstream.url).host]);
  });

  test.each([
    [[]],
    [['Content-Type', 'nonsense']],
    [['Content-Type', ';']],
    [['Content-Type', 'text/plain']],
  ])('arrives whatever it says of its type: %j', async (headers) => {
    const { endpoint, upstream } = await start(NO_CONTENT);
    expect((await send(endpoint, { headers, body: CALL.body })).status).toBe(204);
    expect(endToEnd(fieldsOf(upstream.requests[0]))).toEqual(headers);
    expect(bodyOf(upstream.requests[0])).toBe(CALL.body);
  });

  test.each(['GET', 'DELETE'])('of %s arrives with its fields and without a body', async (method) => {
    const { endpoint, upstream } = await start(NO_CONTENT);
    const headers = [
      'Accept',
      'text/event-stream',
      'Mcp-Session-Id',
      's-1',
      'MCP-Protocol-Version',
      '2025-11-25',
    ];
    expect((await send(endpoint, { method, headers })).status).toBe(204);
    expect(upstream.requests[0]?.split(' ')[0]).toBe(method);
    expect(endToEnd(fieldsOf(upstream.requests[0]))).toEqual(headers);
    expect(bodyOf(upstream.requests[0])).toBe('');
  });

  test('that comes in chunks arrives whole', async () => {
    const { endpoint, upstream } = await start(NO_CONTENT);
    const response = await fetch(endpoint, {
      method: 'POST',
      body: new ReadableStream({
        start(controller) {
          for (const part of ['{"a":', '1', '}']) controller.enqueue(Buffer.from(part));
          controller.close();
        },
      }),
      duplex: 'half',
    });
    expect(response.status).toBe(204);
    expect(bodyOf(upstream.requests[0])).toBe('{"a":1}');
  });
});

describe('an answer', () => {
  const STATUSES = [
    ...['200 OK', '201 Created', '202 Accepted', '299 Quite Odd', '300 Multiple Choices', '400 Bad Request'],
    ...[
      '404 Nobody Here',
      '405 Method Not Allowed',
      '409 Conflict',
      '418 ',
      '500 Oops',
      '503 Later',
      '599 X',
    ],
  ];

  test.each(STATUSES)('of %s arrives with its reason and its bytes', async (line) => {
    const body = '{"a":1}\r\n\0\xff trailing\n\n';
    const type = 'Content-Type: application/json\r\n';
    const { endpoint } = await start(
      Buffer.from(`HTTP/1.1 ${line}\r\n${type}Content-Length: ${body.length}\r\n\r\n${body}`, 'latin1'),
    );
    const answer = await send(endpoint, { headers: rawFields(CALL.headers), body: CALL.body });
    expect(`${answer.status} ${answer.reason}`).toBe(line);
    expect(answer.body.toString('latin1')).toBe(body);
    expect(answer.isWhole).toBe(true);
    expect(endToEnd(answer.headers)).toEqual(['Content-Type', 'application/json']);
    expect(valuesOf(answer.headers, 'content-length')).toEqual([String(body.length)]);
  });

  test('arrives with its fields in order and case, doubles and bytes beyond ASCII included', async () => {
    const fields = [
      ...[
        'X-b',
        '2',
        'Set-Cookie',
        'a=1',
        'set-cookie',
        'b=2',
        'WWW-Authenticate',
        'Bearer a="1"',
        'x-B',
        '',
      ],
      ...['www-authenticate', 'Basic', 'X-Latin', '\xe9', 'X-Utf8', 'Ã©â\x82¬', 'Mcp-Session-Id', 's'],
      ...[
        'Content-Type',
        'text/plain',
        'Content-Type',
        'text/html',
        'Cache-Control',
        'no-store',
        'ETag',
        '"e"',
      ],
    ];
    const lines = fields.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${fields[i + 1]}\r\n`] : []));
    const { endpoint } = await start(
      Buffer.from(`HTTP/1.1 200 OK\r\n${lines.join('')}Content-Length: 2\r\n\r\nok`, 'latin1'),
    );
    const answer = await send(endpoint, { body: CALL.body });
    expect(endToEnd(answer.headers)).toEqual(fields);
  });

  test('keeps the date that the upstream wrote', async () => {
    const date = 'Tue, 01 Jan 2030 00:00:00 GMT';
    const { endpoint } = await start(`HTTP/1.1 200 OK\r\nDate: ${date}\r\nContent-Length: 0\r\n\r\n`);
    expect(valuesOf((await send(endpoint)).headers, 'date')).toEqual([date]);
  });

  test('whose reason is not ASCII arrives all the same', async () => {
    for (const reason of ['G\xfcltig', 'G\xc3\xbcltig', '\xe6\x97\xa5']) {
      const { endpoint } = await start(
        Buffer.from(`HTTP/1.1 200 ${reason}\r\nContent-Length: 2\r\n\r\nok`, 'latin1'),
      );
      expect(await send(endpoint)).toMatchObject({ status: 200, text: 'ok' });
    }
  });

  test.each([
    [
      'chunks',
      'Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\n\r\n\r\n0\r\nX-Trailer: 1\r\n\r\n',
      'keep',
    ],
    ['a body that the end of the connection ends', 'Connection: close\r\n\r\nabc\r\n', 'end'],
  ] as const)('in %s arrives whole', async (_title, rest, after) => {
    const { endpoint } = await start(`HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n${rest}`, { after });
    const answer = await send(endpoint, { body: CALL.body });
    expect([answer.text, answer.isWhole]).toEqual(['abc\r\n', true]);
    expect(endToEnd(answer.headers)).toEqual(['Content-Type', 'text/plain']);
  });

  test.each(['202 Accepted', '200 OK'])('of %s without a body gets neither body nor type', async (line) => {
    for (const empty of ['Content-Length: 0\r\n\r\n', 'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n']) {
      const { endpoint } = await start(`HTTP/1.1 ${line}\r\n${empty}`);
      const answer = await send(endpoint, { body: CALL.body });
      expect([answer.text, answer.isWhole, endToEnd(answer.headers)]).toEqual(['', true, []]);
    }
  });

  test('behind an interim one is the answer', async () => {
    const early = 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n';
    const { endpoint } = await start(`${early}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`);
    expect(await send(endpoint)).toMatchObject({ status: 200, text: 'ok' });
  });
});

describe('an answer that breaks off', () => {
  const HALVES: [string, string][] = [
    ['a length', 'Content-Type: application/json\r\nContent-Length: 9\r\n\r\nhalf'],
    ['chunks', 'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n'],
    ['an event stream', 'Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n'],
  ];

  test.each(HALVES)('with %s is broken off for the client as well', async (_title, rest) => {
    const { endpoint } = await start(`HTTP/1.1 200 OK\r\n${rest}`, { after: 'end' });
    const answer = await send(endpoint, { headers: rawFields(CALL.headers), body: CALL.body });
    expect([answer.status, answer.text, answer.isWhole]).toEqual([200, 'half', false]);
  });

  test.each(['end', 'reset'] as const)(
    'before it begins (%s) is a 502 under the request’s id, asked for once',
    async (after) => {
      const { endpoint, upstream } = await start('', { after });
      const answer = await send(endpoint, { headers: rawFields(CALL.headers), body: CALL.body });
      expect(answer.status).toBe(502);
      expect(JSON.parse(answer.text)).toMatchObject({ jsonrpc: '2.0', id: 'c', error: { code: 502 } });
      expect(upstream.requests).toHaveLength(1);
    },
  );

  test('in its head is a 502', async () => {
    const { endpoint } = await start('HTTP/1.1 200 OK\r\nX-A', { after: 'end' });
    expect((await send(endpoint, { method: 'GET' })).status).toBe(502);
  });

  test('is a 502 where it is no HTTP', async () => {
    const { endpoint, upstream } = await start('SSH-2.0-x\r\n', { after: 'end' });
    const answer = await send(endpoint, { headers: rawFields(CALL.headers), body: CALL.body });
    expect(answer.status).toBe(502);
    expect(answer.text, 'nothing of the cause is told').not.toMatch(/SSH|HPE|parse/i);
    expect(upstream.requests).toHaveLength(1);
  });
});
