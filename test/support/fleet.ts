/** Several replicas on one Redis, in this process or as processes of their own. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { until } from './gate.js';
import { type RunningGateway, startGateway } from './gateway.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

export interface ReplicaOptions {
  readonly redisUrl: string;
  readonly upstreamUrl: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** A replica in this process, for the upstream `u`. */
export function startReplica({ redisUrl, upstreamUrl, env }: ReplicaOptions): Promise<RunningGateway> {
  return startGateway({ upstreams: { u: upstreamUrl }, env: { REDIS_URL: redisUrl, ...env } });
}

export function isRedisUsed(replica: { readonly logs: RunningGateway['logs'] }): boolean {
  const last = replica.logs.filter(({ msg }) => String(msg).startsWith('redis is')).at(-1);
  return last?.msg === 'redis is in use';
}

/** How often Redis was taken into use and put away, in order. */
export function redisStates(replica: { readonly logs: RunningGateway['logs'] }): string[] {
  return replica.logs.flatMap(({ msg, reason }) => {
    if (msg === 'redis is in use') return ['up'];
    return String(msg).startsWith('redis is away') ? [`away: ${reason}`] : [];
  });
}

export interface ReplicaProcess {
  readonly endpoint: string;
  readonly logs: RunningGateway['logs'];
  /** Ends the process at once, as a crash would. */
  kill(): Promise<void>;
  /** Asks the process to end, and resolves with its exit status. */
  terminate(): Promise<number | null>;
  close(): Promise<void>;
}

/** Makes `dist/` what `src/` says. */
export async function buildDist(): Promise<void> {
  await promisify(execFile)('npm', ['run', '--silent', 'build'], { cwd: ROOT });
}

export async function startProcess({ redisUrl, upstreamUrl, env }: ReplicaOptions): Promise<ReplicaProcess> {
  const child: ChildProcess = spawn(process.execPath, ['dist/main.js'], {
    cwd: ROOT,
    env: {
      PATH: process.env.PATH,
      UPSTREAMS: `u=${upstreamUrl}`,
      PORT: '0',
      ADMIN_PORT: '0',
      SHUTDOWN_GRACE_MS: '100',
      LOG_LEVEL: 'debug',
      REDIS_URL: redisUrl,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const logs: RunningGateway['logs'] = [];
  if (child.stdout !== null) createInterface(child.stdout).on('line', (line) => logs.push(JSON.parse(line)));
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const isAlive = () => child.exitCode === null && child.signalCode === null;
  const end = (signal: NodeJS.Signals) => {
    if (isAlive()) child.kill(signal);
    return exited;
  };
  const listening = () => logs.find(({ msg }) => msg === 'listening');
  await until(() => listening() !== undefined || !isAlive(), 15_000);
  return {
    endpoint: `${listening()?.url}/mcp/u`,
    logs,
    kill: async () => void (await end('SIGKILL')),
    terminate: () => end('SIGTERM'),
    close: async () => void (await end('SIGKILL')),
  };
}
