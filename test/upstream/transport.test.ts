/** One exchange with an upstream: law 23, cases C43, C50. */
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../src/errors.js';
import { createTransport, type Outgoing, toGatewayError } from '../../src/upstream/transport.js';
import { useClosers } from '../support/closers.js';
import { createGate } from '../support/gate.js';
import { startRawUpstream } from '../support/raw.js';
import { startUpstream } from '../support/upstream.js';

const closing = useClosers();
const transport = createTransport();
const never = new AbortController().signal;

function outgoing(url: string, fields: Partial<Outgoing> = {}): Outgoing {
  const { origin, pathname, search } = new URL(url);
  return { method: 'POST', origin, path: pathname + search, headers: [], body: Buffer.from('{}'), ...fields };
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function read(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString('latin1');
}

describe('a request', () => {
  test('goes out with its fields in their order and case, doubles and bytes beyond ASCII included', async () => {
    const upstream = closing(await startRawUpstream('HTTP/1.1 204 No Content\r\n\r\n'));
    const headers = ['X-b', '2', 'x-B', '', 'Authorization', 'Bearer é', 'X-b', '1'];
    await transport.send(outgoing(`${upstream.url}?a=%2f,b`, { headers }), { signal: never });
    const [head = '', body] = upstream.requests[0]?.split('\r\n\r\n') ?? [];
    const [first, ...fields] = head.split('\r\n');
    expect(first).toBe('POST /mcp?a=%2f,b HTTP/1.1');
    expect(fields.filter((field) => /^(x-b|authorization):/i.test(field))).toEqual([
      'X-b: 2',
      'x-B: ',
      'Authorization: Bearer é',
      'X-b: 1',
    ]);
    expect(fields.map((field) => field.split(':')[0]?.toLowerCase())).not.toContain('user-agent');
    expect(body).toBe('{}');
  });

  test.each(['GET', 'DELETE'] as const)('of %s has no body', async (method) => {
    const upstream = closing(await startRawUpstream('HTTP/1.1 204 No Content\r\n\r\n'));
    const { origin } = new URL(upstream.url);
    await transport.send({ method, origin, path: '/mcp', headers: [] }, { signal: never });
    expect(upstream.requests[0]).toMatch(new RegExp(`^${method} /mcp HTTP/1.1\r\n`));
    expect(upstream.requests[0]).not.toMatch(/content-length: [1-9]|transfer-encoding/i);
  });
});

describe('localhost', () => {
  test.each(['127.0.0.1', '::1'])('is found where only %s listens (C68)', async (address) => {
    const server = createServer((req, res) => void res.end(req.headers.host)).listen(0, address);
    closing({ close: async () => void server.close() });
    await once(server, 'listening');
    const port = portOf(server);
    const { body } = await transport.send(outgoing(`http://localhost:${port}/mcp`), { signal: never });
    expect(await read(body)).toBe(`localhost:${port}`);
  });
});

describe('an answer', () => {
  test('is told with its reason, its fields as they came, and its bytes', async () => {
    const head =
      'HTTP/1.1 299 Quite Odd\r\nX-A: 1\r\nx-a: 2\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nX-Latin: \xe9\r\n';
    const bytes = Buffer.from(`${head}Content-Length: 4\r\n\r\n\x00\xff\r\n`, 'latin1');
    const upstream = closing(await startRawUpstream(bytes));
    const response = await transport.send(outgoing(upstream.url), { signal: never });
    expect(response).toMatchObject({ status: 299, statusText: 'Quite Odd' });
    expect(response.headers).toEqual([
      ...['X-A', '1', 'x-a', '2', 'Set-Cookie', 'a=1', 'set-cookie', 'b=2'],
      ...['X-Latin', '\xe9', 'Content-Length', '4'],
    ]);
    expect(await read(response.body)).toBe('\x00\xff\r\n');
  });

  test('of 307 is told and not followed', async () => {
    const upstream = closing(
      await startUpstream((_request, res) => {
        res.writeHead(307, { location: '/x' }).end();
      }),
    );
    const response = await transport.send(outgoing(upstream.url), { signal: never });
    response.body.destroy();
    expect(response.status).toBe(307);
    expect(upstream.count()).toBe(1);
  });

  test('that is packed stays packed', async () => {
    const packed = 'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8bz';
    const upstream = closing(await startRawUpstream(Buffer.from(packed, 'latin1')));
    const response = await transport.send(outgoing(upstream.url), { signal: never });
    expect(await read(response.body)).toBe('\x1f\x8bz');
  });

  test('that breaks off fails its reader', async () => {
    const part = 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf';
    const upstream = closing(await startRawUpstream(part, { after: 'end' }));
    const response = await transport.send(outgoing(upstream.url), { signal: never });
    await expect(read(response.body)).rejects.toThrow();
  });
});

describe('a failure', () => {
  test('to connect is upstream-unreachable, with its cause', async () => {
    const upstream = await startUpstream(() => {});
    await upstream.close();
    const sent = transport.send(outgoing(upstream.url), { signal: never });
    await expect(sent).rejects.toMatchObject({
      code: 'upstream-unreachable',
      cause: { code: 'ECONNREFUSED' },
    });
  });

  test.each(['POST', 'GET', 'DELETE'] as const)(
    'before the answer to a %s is one, and not tried again',
    async (method) => {
      const upstream = closing(await startRawUpstream('', { after: 'reset' }));
      const { origin, pathname: path } = new URL(upstream.url);
      const sent = transport.send({ method, origin, path, headers: [] }, { signal: never });
      await expect(sent).rejects.toMatchObject({ code: 'upstream-unreachable' });
      expect(upstream.requests).toHaveLength(1);
    },
  );

  test('that is the signal’s own reason stays what it is, any other abort is upstream-unreachable', () => {
    const timeout = new GatewayError('upstream-timeout');
    expect(toGatewayError(new Error('x'), AbortSignal.abort(timeout))).toBe(timeout);
    expect(toGatewayError(timeout, never)).toBe(timeout);
    const cause = new Error('left');
    expect(toGatewayError(cause, AbortSignal.abort(cause))).toMatchObject({
      code: 'upstream-unreachable',
      cause,
    });
  });
});

describe('an abort ends the exchange at the upstream', () => {
  /** An upstream that begins an answer, if at all, and holds it. */
  async function holding(onAsked: (res: ServerResponse) => void) {
    const left = createGate();
    const upstream = await startUpstream((_request, res) => {
      res.on('close', () => left.open());
      onAsked(res);
    });
    closing(upstream);
    return { url: upstream.url, left: () => left.pass() };
  }
  const begin = (res: ServerResponse) => res.write('first');

  test('before the head of the answer', async () => {
    const abort = new AbortController();
    const { url, left } = await holding(() => abort.abort());
    const sent = transport.send(outgoing(url), { signal: abort.signal });
    await expect(sent).rejects.toThrow(GatewayError);
    await left();
  });

  test('in the middle of its body', async () => {
    const abort = new AbortController();
    const { url, left } = await holding(begin);
    const { body } = await transport.send(outgoing(url), { signal: abort.signal });
    const reading = read(body);
    abort.abort();
    await expect(reading).rejects.toThrow();
    await left();
  });

  test('and so does an end to the reading', async () => {
    const { url, left } = await holding(begin);
    const { body } = await transport.send(outgoing(url), { signal: never });
    body.destroy();
    await left();
  });

  test('and so does the end of the transport', async () => {
    const { url, left } = await holding(begin);
    const own = createTransport();
    const reading = read((await own.send(outgoing(url), { signal: never })).body);
    await own.close();
    await expect(reading).rejects.toThrow();
    await left();
  });
});
