/** The gateway as a process of its own, as it was built: `npm test` builds first. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

export interface GatewayProcess {
  /** Every line of its log so far, parsed. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects to find
  readonly lines: any[];
  /** All that it wrote to stdout so far. */
  text(): string;
  /** The addresses, once it listens. */
  readonly listening: Promise<{ readonly url: string; readonly adminUrl: string }>;
  /** Its exit status, or the signal that killed it. */
  readonly exited: Promise<number | NodeJS.Signals | null>;
  kill(signal: NodeJS.Signals): void;
  close(): Promise<void>;
}

/** Starts it on free ports with nothing but `env` in its environment; what it writes is JSON, or `text` to be read as it is. */
export function startProcess(
  env: Readonly<Record<string, string>>,
  output: 'json' | 'text' = 'json',
): GatewayProcess {
  const child = spawn(process.execPath, [MAIN], {
    env: { PORT: '0', ADMIN_PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: GatewayProcess['lines'] = [];
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  const exited = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.once('exit', (status, signal) => resolve(status ?? signal));
  });
  const listening = new Promise<{ url: string; adminUrl: string }>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (output === 'text') return;
      const parsed = JSON.parse(line);
      lines.push(parsed);
      if (parsed.msg === 'listening') resolve(parsed);
    });
    exited.then((status) => reject(new Error(`it ended with ${status} before it listened`)));
  });
  listening.catch(() => {});
  return {
    lines,
    text: () => text,
    listening,
    exited,
    kill: (signal) => void child.kill(signal),
    async close() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
