/**
 * Owns: `npm run demo`: an example upstream and the gateway before it, in this one process; prints what the
 * cache does. Runs until Ctrl-C; with `--once` it ends by itself. An edge of its own: nothing imports it.
 */
import { once } from 'node:events';
import { createGateway } from '../app.js';
import { createClock } from '../clock.js';
import { parseConfig } from '../config.js';
import { createLogger, type Logger } from '../telemetry.js';
import { changeHeard, listResources } from './demo-client.js';
import { ADD_RESOURCE, type ExampleUpstream, startExampleUpstream } from './example-upstream.js';
import { curlLine, mcpRequest, send } from './mcp-request.js';

/** Of the MCP and the admin listener, in the order in which they are tried. */
const PORTS = [
  [8080, 9090],
  [8080, 0],
  [0, 9090],
  [0, 0],
] as const;
const RESOURCES = 300;
const PAGE_SIZE = 25;
const PAGE_DELAY_MS = 40;
/** Exit status of sysexits.h for a wrong command line. */
const EX_USAGE = 64;

function print(...lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`);
}

interface DemoGateway {
  readonly endpoint: string;
  readonly adminUrl: string;
  close(): Promise<void>;
}

/** Starts the gateway at the ports that it has by default, or at others where those are taken. */
async function startGateway(upstreamUrl: string): Promise<DemoGateway> {
  for (const [port, adminPort] of PORTS) {
    const watch = createWatchSign();
    const { config } = parseConfig({
      UPSTREAMS: `demo=${upstreamUrl}`,
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
      SHUTDOWN_GRACE_MS: '500',
    });
    const { log } = watch;
    const clock = createClock();
    const gateway = createGateway({ config, clock, log, version: 'demo', random: Math.random });
    try {
      const { url, adminUrl } = await gateway.listen();
      await watch.stands;
      return { endpoint: `${url}/mcp/demo`, adminUrl, close: gateway.close };
    } catch (error) {
      await gateway.close();
      if (!isAddressInUse(error)) throw error;
    }
  }
  throw new Error('no port is free');
}

function isAddressInUse(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
}

/**
 * A log that is printed nowhere, but tells when the watch stands: the flush that comes with it would otherwise
 * fall between two listings.
 */
function createWatchSign(): { readonly log: Logger; readonly stands: Promise<void> } {
  let stand: () => void = () => {};
  const stands = new Promise<void>((resolve) => {
    stand = resolve;
  });
  const write = (line: string) => {
    const { state }: { state?: string } = JSON.parse(line);
    if (state === 'connected') stand();
  };
  return { log: createLogger('info', { write }), stands };
}

/** Lists the resources through the gateway and prints how that went; gives the last of them. */
async function showListing(endpoint: string, upstream: ExampleUpstream): Promise<string> {
  const pagesBefore = upstream.pagesSent();
  const startedAt = performance.now();
  const { count, last, cacheStatus } = await listResources(endpoint);
  const durationMs = performance.now() - startedAt;
  const pages = upstream.pagesSent() - pagesBefore;
  print(
    `   ${count} resources in ${durationMs.toFixed(1)} ms, ${pages} pages asked of the upstream`,
    `   Cache-Status: ${cacheStatus}`,
  );
  return last;
}

async function show(endpoint: string, upstream: ExampleUpstream): Promise<void> {
  print('1. A client lists the resources for the first time.');
  await showListing(endpoint, upstream);
  print('', '2. It lists them again.');
  await showListing(endpoint, upstream);
  print('', `3. Somebody calls the tool ${ADD_RESOURCE}, and the upstream announces a change.`);
  const change = await changeHeard(endpoint, async () => {
    const added = { name: 'A new resource', text: 'It was not there before.' };
    const response = await send(endpoint, mcpRequest('tools/call', { name: ADD_RESOURCE, arguments: added }));
    await response.arrayBuffer();
  });
  print(`   The client hears ${change}, and lists again.`);
  const last = await showListing(endpoint, upstream);
  print(`   The last of them: ${last}`, '');
}

function printInvitation(endpoint: string, adminUrl: string): void {
  const added = { name: 'Mine', text: 'Written by hand.' };
  print(
    'Try it: this line is answered by the upstream the first time, from memory from then on.',
    '',
    curlLine(endpoint, mcpRequest('tools/list')),
    '',
    'This one adds a resource, so that all that was cached is forgotten.',
    '',
    curlLine(endpoint, mcpRequest('tools/call', { name: ADD_RESOURCE, arguments: added })),
    '',
    `The dashboard is ${adminUrl}/, the MCP endpoint ${endpoint}.`,
    'Ctrl-C ends the demo.',
  );
}

async function run(isOnce: boolean): Promise<void> {
  const upstream = await startExampleUpstream({
    host: '127.0.0.1',
    port: 0,
    resources: RESOURCES,
    pageSize: PAGE_SIZE,
    pageDelayMs: PAGE_DELAY_MS,
  });
  const { endpoint, adminUrl, close } = await startGateway(upstream.url);
  print(
    `upstream  ${upstream.url}: ${RESOURCES} resources, ${PAGE_SIZE} a page, ${PAGE_DELAY_MS} ms each`,
    `gateway   ${endpoint}`,
    '',
  );
  await show(endpoint, upstream);
  if (!isOnce) {
    printInvitation(endpoint, adminUrl);
    await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  }
  await close();
  await upstream.close();
}

const given = process.argv.slice(2);
if (given.every((argument) => argument === '--once')) await run(given.length > 0);
else {
  process.stderr.write('usage: npm run demo [-- --once]\n');
  process.exitCode = EX_USAGE;
}
