/** Load by wrk, which costs the machine less than what it measures. */
import { execFile } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'mcg-bench-'));
let scripts = 0;

const quoted = (text) => `[==[${text}]==]`;

/** A script for wrk: the same request but for its id, which counts up. */
function scriptFor({ headers, body }) {
  const [before, after] = body.split('ID');
  const fields = Object.entries(headers).map(
    ([name, value]) => `wrk.headers[ ${quoted(name)} ] = ${quoted(value)}`,
  );
  const text = [
    'wrk.method = "POST"',
    ...fields,
    'local id = 0',
    'request = function()',
    '  id = id + 1',
    `  return wrk.format(nil, nil, nil, ${quoted(before)} .. id .. ${quoted(after)})`,
    'end',
    'done = function(summary, latency)',
    '  local e = summary.errors',
    '  io.write(string.format("\\nRESULT %d %d %d %d\\n", summary.requests, summary.duration, latency:percentile(99), e.status + e.read + e.write + e.timeout + e.connect))',
    'end',
  ].join('\n');
  scripts += 1;
  const path = join(folder, `${scripts}.lua`);
  writeFileSync(path, text);
  return path;
}

/** Requests per second, and the 99th percentile of the latency in milliseconds. Throws where an answer was no 2xx. */
export async function measure({ url, request, connections, seconds, cpu }) {
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', scriptFor(request), url];
  const { stdout } = await run('taskset', ['-c', String(cpu), 'wrk', ...args]);
  const [, requests, duration, p99, errors] = /RESULT (\d+) (\d+) (\d+) (\d+)/.exec(stdout) ?? [];
  if (requests === undefined || Number(errors) > 0)
    throw new Error(`${url}: ${errors} failed requests\n${stdout}`);
  return { perSecond: Number(requests) / (Number(duration) / 1e6), p99Ms: Number(p99) / 1000 };
}
