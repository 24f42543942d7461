/** The reference server `@modelcontextprotocol/server-everything`, as a process of its own, over streamable HTTP. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { type AddressInfo, createServer } from 'node:net';

export interface EverythingServer {
  readonly url: string;
  close(): Promise<void>;
}

export async function startEverything(): Promise<EverythingServer> {
  // It takes a fixed port alone, and one that was free a moment ago may be taken by now.
  for (let attempts = 1; ; attempts += 1) {
    const port = await freePort();
    const child = run(port);
    if (await listens(child)) return { url: `http://127.0.0.1:${port}/mcp`, close: () => end(child) };
    await end(child);
    if (attempts === 3) throw new Error('the server did not come to listen');
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

function run(port: number): ChildProcess {
  const bin = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js');
  return spawn(process.execPath, [bin, 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
}

/** Whether it says that it listens, before it ends. */
async function listens(child: ChildProcess): Promise<boolean> {
  for await (const chunk of child.stderr ?? []) {
    if (String(chunk).includes('listening on port')) {
      child.stderr?.resume();
      return true;
    }
  }
  return false;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}
