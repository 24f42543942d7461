/** A TCP proxy before a Redis that is slow, silent, gone, or answers every command with an error of a test's choice. */
import { type AddressInfo, createServer, connect as dial, type Socket } from 'node:net';

export type ProxyMode =
  | { readonly kind: 'pass' }
  /** Every answer comes so much later. */
  | { readonly kind: 'slow'; readonly ms: number }
  /** Takes everything and answers nothing until it is over, as a paused server does. */
  | { readonly kind: 'silent' }
  /** Cuts every connection, at once and whenever one is made. */
  | { readonly kind: 'gone' }
  /** Every command is answered by this, such as `OOM command not allowed`. */
  | { readonly kind: 'error'; readonly message: string };

export interface RedisProxy {
  readonly port: number;
  readonly url: string;
  mode: ProxyMode;
  /** How many connections were made so far. */
  readonly connections: number;
  /** Cuts the connections that are there. */
  cut(): void;
  close(): Promise<void>;
}

export async function startRedisProxy(port: number): Promise<RedisProxy> {
  const sockets = new Set<Socket>();
  const releases = new Set<() => void>();
  let mode: ProxyMode = { kind: 'pass' };
  let connections = 0;
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((downstream) => {
    connections += 1;
    if (mode.kind === 'gone') {
      downstream.destroy();
      return;
    }
    const upstream = dial({ port, host: '127.0.0.1' });
    for (const socket of [downstream, upstream]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        downstream.destroy();
        upstream.destroy();
      });
    }
    let held: Buffer[] = [];
    const release = () => {
      for (const bytes of held) upstream.write(bytes);
      held = [];
    };
    releases.add(release);
    downstream.on('close', () => releases.delete(release));
    downstream.on('data', (bytes) => {
      if (mode.kind === 'error') downstream.write(`-${mode.message}\r\n`.repeat(commandsIn(bytes)));
      else if (mode.kind === 'silent') held.push(bytes);
      else upstream.write(bytes);
    });
    upstream.on('data', (bytes) => {
      if (mode.kind === 'slow') setTimeout(() => downstream.write(bytes), mode.ms);
      else downstream.write(bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const own = (server.address() as AddressInfo).port;
  return {
    port: own,
    url: `redis://127.0.0.1:${own}`,
    get mode() {
      return mode;
    },
    set mode(next) {
      mode = next;
      if (next.kind === 'gone') cut();
      if (next.kind !== 'silent') for (const release of releases) release();
    },
    get connections() {
      return connections;
    },
    cut,
    close: () =>
      new Promise((resolve) => {
        cut();
        server.close(() => resolve());
      }),
  };
}

/** How many commands begin in these bytes; a test's commands hold no line that looks like one. */
function commandsIn(bytes: Buffer): number {
  return bytes.toString('latin1').match(/(?:^|\r\n)\*\d+\r\n\$/g)?.length ?? 0;
}
