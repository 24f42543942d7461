/** A real redis-server on a free port, without files, for one test file. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';

export interface RedisServer {
  readonly port: number;
  readonly url: string;
  /** A plain client, to look at and to spoil what is there. */
  readonly client: Redis;
  /** Stops the process in its tracks: it keeps its connections and answers nothing. */
  pause(): void;
  resume(): void;
  /** Ends the process; what it held is gone. */
  kill(): Promise<void>;
  /** Starts it again on the same port, empty. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}

export async function startRedis(args: readonly string[] = []): Promise<RedisServer> {
  const port = await freePort();
  const dir = mkdtempSync(join(tmpdir(), 'mcg-redis-'));
  let child = launch();
  const client = new Redis({
    port,
    host: '127.0.0.1',
    lazyConnect: true,
    retryStrategy: () => 50,
    maxRetriesPerRequest: null,
  });
  client.on('error', () => {});
  await client.connect().catch(() => {});
  await ready();

  function launch(): ChildProcess {
    const given = [
      '--port',
      String(port),
      '--bind',
      '127.0.0.1',
      '--save',
      '',
      '--appendonly',
      'no',
      '--dir',
      dir,
    ];
    return spawn('redis-server', [...given, ...args], { stdio: 'ignore' });
  }

  async function ready(): Promise<void> {
    const end = performance.now() + 10_000;
    for (;;) {
      const probe = new Redis({ port, host: '127.0.0.1', lazyConnect: true, retryStrategy: () => null });
      probe.on('error', () => {});
      try {
        await probe.connect();
        await probe.ping();
        return;
      } catch (error) {
        if (error instanceof Error && /NOAUTH|LOADING/.test(error.message)) return;
        if (performance.now() > end) throw error;
      } finally {
        probe.disconnect();
      }
    }
  }

  async function kill(): Promise<void> {
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.kill('SIGKILL');
    await ended;
  }

  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    client,
    pause: () => child.kill('SIGSTOP'),
    resume: () => child.kill('SIGCONT'),
    kill,
    async restart() {
      child = launch();
      await ready();
    },
    async close() {
      client.disconnect();
      child.kill('SIGCONT');
      if (child.exitCode === null && child.signalCode === null) await kill();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
