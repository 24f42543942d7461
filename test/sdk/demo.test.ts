import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { post } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { until } from '../support/gate.js';

const closing = useClosers();
const MAIN = fileURLToPath(new URL('../../dist/demo/main.js', import.meta.url));

interface Demo {
  readonly child: ChildProcess;
  output(): string;
  close(): Promise<void>;
}

/** Runs the demo as it was built. */
function startDemo(...args: string[]): Demo {
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk;
    });
  return {
    child,
    output: () => output,
    async close() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

/** What a shell would run: the arguments of each `curl` that stands in the text. */
async function curlCalls(text: string): Promise<string[][]> {
  const lines = text.match(/^curl (?:.*\\\n)*.*$/gm) ?? [];
  const script = `curl() { printf '%s\\0' "$@"; }; ${lines.join('\nprintf "\\n"\n')}`;
  const { stdout } = await promisify(execFile)('sh', ['-c', script]);
  return stdout.split('\n').map((call) => call.split('\0').slice(0, -1));
}

/** Sends what `curl -si <url> -H … -d …` would send. */
function run([silent, url, ...options]: readonly string[]) {
  expect(silent).toBe('-si');
  const headers: Record<string, string> = {};
  let body = '';
  for (let i = 0; i < options.length; i += 2) {
    const [option, value = ''] = options.slice(i, i + 2);
    const cut = value.indexOf(': ');
    if (option === '-H') headers[value.slice(0, cut)] = value.slice(cut + 2);
    else if (option === '-d') body = value;
    else throw new Error(`another option: ${option}`);
  }
  return post(url ?? '', body, headers);
}

describe('the demo', () => {
  test('shows a miss, a hit, a change and the miss after it, and ends', async () => {
    const demo = closing(startDemo('--once'));
    expect(await once(demo.child, 'close')).toEqual([0, null]);
    const told = demo
      .output()
      .replaceAll(/http:[^\s:]+:\d+/g, 'HTTP')
      .replaceAll(/\d+\.\d ms/g, 'T ms')
      .replaceAll(/ttl=\d+/g, 'ttl=N')
      // The walk may be overtaken by the same change, told on the gateway's own watch, and begin again.
      .replace(/(?<=301 resources in T ms, )\d+/, 'P');
    expect(told).toBe(`\
upstream  HTTP/mcp: 300 resources, 25 a page, 40 ms each
gateway   HTTP/mcp/demo

1. A client lists the resources for the first time.
   300 resources in T ms, 12 pages asked of the upstream
   Cache-Status: mcp-cache-gateway; fwd=miss; stored; ttl=N

2. It lists them again.
   300 resources in T ms, 0 pages asked of the upstream
   Cache-Status: mcp-cache-gateway; hit; ttl=N

3. Somebody calls the tool add_resource, and the upstream announces a change.
   The client hears notifications/resources/list_changed, and lists again.
   301 resources in T ms, P pages asked of the upstream
   Cache-Status: mcp-cache-gateway; fwd=miss; stored; ttl=N
   The last of them: "A new resource", example://resource/301

`);
  });

  test('prints lines to paste that do what is said of them, and runs until Ctrl-C', async () => {
    const demo = closing(startDemo());
    await until(() => demo.output().includes('Ctrl-C ends the demo.'), 15_000);
    const [list = [], add = [], ...more] = await curlCalls(demo.output());
    expect(more).toEqual([]);
    const outcomes = [await run(list), await run(list)].map((answer) => answer.cacheStatus);
    expect(outcomes).toEqual([
      expect.stringContaining('; fwd=miss; stored; '),
      expect.stringContaining('; hit; '),
    ]);
    const added = await run(add);
    expect(added.json.result.content).toEqual([{ type: 'text', text: 'Added example://resource/302' }]);
    // The gateway hears of the change on its watch, and the demo's client no more: it comes at any moment.
    await until(async () => (await run(list)).cacheStatus.includes('; fwd=miss; stored; '));
    demo.child.kill('SIGINT');
    expect(await once(demo.child, 'close')).toEqual([0, null]);
  });

  test('an unknown argument is refused', async () => {
    const demo = closing(startDemo('--twice'));
    expect(await once(demo.child, 'close')).toEqual([64, null]);
    expect(demo.output()).toBe('usage: npm run demo [-- --once]\n');
  });
});
