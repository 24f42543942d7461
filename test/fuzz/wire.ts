/** A gateway with its both ends on bare sockets: an upstream that says any bytes, a client that sends any, all counted. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { until } from '../support/gate.js';

/** What an upstream does with a request: it writes these bytes, and then ends the connection, cuts it, or keeps it. */
export interface Say {
  readonly bytes: Buffer;
  readonly after: 'end' | 'reset' | 'keep';
}

export interface WireUpstream {
  readonly url: string;
  /** Every request that is not a watch's, head and body, as latin1. */
  readonly requests: string[];
  say: (request: string) => Say;
  readonly open: number;
  close(): Promise<void>;
}

const REFUSAL = `HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`;

/** Reads requests as they are framed by `Content-Length`, which is how the gateway sends them. */
export async function startWireUpstream(say: WireUpstream['say']): Promise<WireUpstream> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let text = '';
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      const request = wholeRequest(text);
      if (request === undefined) return;
      text = text.slice(request.length);
      const isWatch = /"mcp-cache-gateway-watch|"method":"initialize"/.test(request);
      if (!isWatch) upstream.requests.push(request);
      const said: Say = isWatch ? { bytes: Buffer.from(REFUSAL), after: 'end' } : upstream.say(request);
      socket.write(said.bytes, () => {
        if (said.after === 'end') socket.end();
        if (said.after === 'reset') socket.resetAndDestroy();
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const upstream: WireUpstream = {
    url: `http://127.0.0.1:${port}/mcp`,
    requests: [],
    say,
    get open() {
      return sockets.size;
    },
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
  return upstream;
}

function wholeRequest(text: string): string | undefined {
  const head = text.indexOf('\r\n\r\n');
  if (head === -1) return undefined;
  const end = head + 4 + Number(/\r\ncontent-length: *(\d+)/i.exec(text.slice(0, head))?.[1] ?? 0);
  return text.length < end ? undefined : text.slice(0, end);
}

/** How long a silence is taken for the end of what the other end has to say, in milliseconds. */
const SILENCE_MS = 15;

/**
 * Sends the bytes; resolves with all that came back once the other end has closed the connection. `hangUp`: after a
 * silence this end is closed, since what was sent may be the beginning of a request that never ends.
 */
export function exchange(url: string, bytes: Buffer, hangUp = false): Promise<Buffer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect({ host: hostname, port: Number(port) });
    const limit = setTimeout(() => {
      socket.destroy();
      reject(new Error(`no end, but ${JSON.stringify(Buffer.concat(chunks).toString('latin1'))}`));
    }, 10_000);
    let silence: NodeJS.Timeout | undefined;
    const listen = () => {
      clearTimeout(silence);
      if (hangUp) silence = setTimeout(() => socket.end(), SILENCE_MS);
    };
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      listen();
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      clearTimeout(limit);
      clearTimeout(silence);
      resolve(Buffer.concat(chunks));
    });
    socket.write(bytes, listen);
  });
}

export interface WireResponse {
  readonly status: number;
  readonly fields: string;
  readonly body: Buffer;
  /** Whether the body came to its proper end. */
  readonly isWhole: boolean;
}

/** The responses in what came back, read strictly: what is left over, or is none, is a fault. */
export function responsesIn(bytes: Buffer): WireResponse[] {
  const found: WireResponse[] = [];
  for (let rest = bytes; rest.length > 0; ) {
    const end = rest.indexOf('\r\n\r\n');
    const head = rest.toString('latin1', 0, end);
    const status = /^HTTP\/1\.1 (\d{3}) [^\r\n]*\r\n(?:[!#$%&'*+.^_`|~\w-]+: ?[^\r\n]*(?:\r\n|$))*$/.exec(
      `${head}\r\n`,
    )?.[1];
    if (end === -1 || status === undefined)
      throw new Error(`no response: ${rest.toString('latin1').slice(0, 300)}`);
    rest = rest.subarray(end + 4);
    const taken = takeBody(rest, head, Number(status));
    found.push({ status: Number(status), fields: head, body: taken.body, isWhole: taken.isWhole });
    rest = rest.subarray(taken.length);
  }
  return found;
}

interface Taken {
  readonly body: Buffer;
  readonly length: number;
  readonly isWhole: boolean;
}

function takeBody(rest: Buffer, head: string, status: number): Taken {
  if (status < 200 || status === 204 || status === 304)
    return { body: Buffer.alloc(0), length: 0, isWhole: true };
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length !== undefined) {
    const body = rest.subarray(0, Number(length));
    return { body, length: body.length, isWhole: body.length === Number(length) };
  }
  if (!/\r\ntransfer-encoding: *chunked/i.test(head))
    return { body: rest, length: rest.length, isWhole: true };
  return takeChunks(rest);
}

function takeChunks(rest: Buffer): Taken {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const line = rest.indexOf('\r\n', at);
    const size = line === -1 ? undefined : /^[0-9a-f]+$/i.exec(rest.toString('latin1', at, line))?.[0];
    const start = line + 2;
    const end = start + Number.parseInt(size ?? '', 16);
    const body = Buffer.concat(parts);
    if (size === undefined || end + 2 > rest.length) return { body, length: rest.length, isWhole: false };
    if (end === start) return { body, length: end + 2, isWhole: true };
    parts.push(rest.subarray(start, end));
    at = end + 2;
  }
}

/** The sockets of this process, those of the gateway and both its ends. */
export function socketsOpen(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
}

/** Fails where more sockets stay open than there were. */
export async function expectClosed(before: number): Promise<void> {
  await until(() => socketsOpen() <= before);
}
