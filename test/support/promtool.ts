/** Prometheus's own tool: its parser and its lints, for what is scraped and for the files under docker/. */
import { spawn } from 'node:child_process';

export interface Verdict {
  readonly status: number | null;
  /** Every line that it wrote, to either stream. */
  readonly lines: readonly string[];
}

export function promtool(args: readonly string[], input = ''): Promise<Verdict> {
  const child = spawn('promtool', args, { stdio: ['pipe', 'pipe', 'pipe'] });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  }
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (status) =>
      resolve({ status, lines: text.split('\n').filter((line) => line !== '') }),
    );
  });
}
