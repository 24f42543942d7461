/** HTTP as it is on the wire: fields in their order and case, bytes as they are, sockets that break. */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { until } from './gate.js';

export interface WireAnswer {
  readonly status: number;
  readonly reason: string;
  /** Names and values in turn, as they came. */
  readonly headers: readonly string[];
  readonly body: Buffer;
  readonly text: string;
  /** Whether the body came to its proper end. */
  readonly isWhole: boolean;
}

export interface WireOptions {
  readonly method?: string;
  /** Names and values in turn; `Host` and the body's length are added. */
  readonly headers?: readonly string[];
  readonly body?: string | Buffer;
  /** Asked with the connection of its own that the request has. */
  readonly onSocket?: (socket: Socket) => void;
}

/** Sends one request on a connection of its own, and reads its answer as far as it comes. */
export function send(url: string, options: WireOptions = {}): Promise<WireAnswer> {
  const { host } = new URL(url);
  const { method = 'POST', headers = [], body } = options;
  const length = body === undefined ? [] : ['Content-Length', String(Buffer.byteLength(body))];
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, {
      method,
      agent: false,
      headers: ['Host', host, ...headers, ...length],
    });
    request.on('response', (response) => resolve(readAnswer(response)));
    request.on('error', reject);
    if (options.onSocket !== undefined) request.on('socket', options.onSocket);
    // A head before a string would be written as UTF-8.
    request.end(body === undefined ? body : Buffer.from(body));
  });
}

async function readAnswer(response: IncomingMessage): Promise<WireAnswer> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of response) chunks.push(chunk);
  } catch {
    // What came is told, and that it is not whole.
  }
  const body = Buffer.concat(chunks);
  return {
    status: response.statusCode ?? 0,
    reason: response.statusMessage ?? '',
    headers: response.rawHeaders,
    body,
    text: body.toString('utf8'),
    isWhole: response.complete,
  };
}

/** Fields as `rpcRequest` gives them, in the raw form. */
export function rawFields(fields: Readonly<Record<string, string>>): string[] {
  return Object.entries(fields).flat();
}

export interface Wire {
  readonly socket: Socket;
  write(bytes: string | Buffer): void;
  /** All that came so far. */
  received(): string;
  /** Waits until `text` has come. */
  sees(text: string): Promise<void>;
  /** Resolves when the other end has closed the connection. */
  readonly closed: Promise<void>;
  close(): Promise<void>;
}

/** A connection on which a test says what it likes; bytes are shown as latin1. */
export async function openWire(url: string): Promise<Wire> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
  });
  socket.on('error', () => {});
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
  return {
    socket,
    write: (bytes) => socket.write(bytes),
    received: () => received,
    sees: (text) => until(() => received.includes(text)),
    closed,
    close: async () => {
      socket.destroy();
    },
  };
}

/** The head and the body of one request, to be written on a wire. */
export function wireText(url: string, headers: Readonly<Record<string, string>>, body: string): string {
  const { host, pathname, search } = new URL(url);
  const fields = { host, ...headers, 'content-length': String(Buffer.byteLength(body)) };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}`);
  return [`POST ${pathname}${search} HTTP/1.1`, ...lines, '', body].join('\r\n');
}

export interface RawUpstream {
  readonly url: string;
  /** Each request as it stood on the wire. */
  readonly requests: string[];
  close(): Promise<void>;
}

/** An upstream that answers every request with the same bytes, and then, if asked to, hangs up. */
export async function startRawUpstream(
  answer: string | Buffer,
  options: { readonly after?: 'keep' | 'end' | 'reset' } = {},
): Promise<RawUpstream> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    let text = '';
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      const request = wholeRequest(text);
      if (request === undefined) return;
      requests.push(request);
      text = text.slice(request.length);
      socket.write(answer, () => {
        if (options.after === 'end') socket.end();
        if (options.after === 'reset') socket.resetAndDestroy();
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    requests,
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}

function wholeRequest(text: string): string | undefined {
  const head = text.indexOf('\r\n\r\n');
  if (head === -1) return undefined;
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(text.slice(0, head))?.[1] ?? 0);
  const end = head + 4 + length;
  return text.length < end ? undefined : text.slice(0, end);
}
