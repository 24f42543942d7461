/** The official conformance suite, as a process of its own, against the server at one address. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

const MAIN = createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/dist/index.js');
const LOADER = fileURLToPath(new URL('conformance-loader.mjs', import.meta.url));
const TIME_LIMIT_MS = 60_000;

/** By scenario, its verdicts in their order: what was checked, and how it went. */
export type Verdicts = Readonly<Record<string, readonly string[]>>;

interface Check {
  readonly id: string;
  readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO';
  readonly errorMessage?: string;
}

/** Every scenario that the suite has for servers of this revision. */
export async function runSuite(url: string, revision: string): Promise<Verdicts> {
  const directory = mkdtempSync(join(tmpdir(), 'conformance-'));
  try {
    await run(['server', '--url', url, '--suite', 'all', '--spec-version', revision, '-o', directory]);
    return Object.fromEntries(
      readdirSync(directory).map((name) => [scenarioOf(name), verdictsIn(join(directory, name))]),
    );
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** The scenarios that a server of this revision has to pass, as they were fixed when it was published. */
export function requiredScenarios(revision: string): readonly string[] {
  const path = join(dirname(MAIN), '..', 'requirements', `${revision}.yaml`);
  return parse(readFileSync(path, 'utf8')).server;
}

/** Its exit status says whether all passed, and the verdicts say more: only a run that broke off is an error here. */
async function run(args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, ['--import', LOADER, MAIN, ...args], {
    env: {},
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: TIME_LIMIT_MS,
    killSignal: 'SIGKILL',
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  const [status, signal] = await once(child, 'close');
  if (status !== 0 && status !== 1) throw new Error(`the suite ended with ${status ?? signal}: ${stderr}`);
}

/** Results are in directories such as `server-tools-list-2026-07-28T12-00-00-000Z`. */
function scenarioOf(directory: string): string {
  const [, scenario] = /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(directory) ?? [];
  if (scenario === undefined) throw new Error(`${directory} is of no scenario`);
  return scenario;
}

/** INFO is what the suite tells of itself, and no verdict. */
function verdictsIn(directory: string): string[] {
  const checks: Check[] = JSON.parse(readFileSync(join(directory, 'checks.json'), 'utf8'));
  return checks
    .filter(({ status }) => status !== 'INFO')
    .map(({ id, status, errorMessage }) => [id, status, ...(errorMessage ? [errorMessage] : [])].join(' '));
}
