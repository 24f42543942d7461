/**
 * Owns: trying the upstreams of a configuration: a gateway of that configuration is run on this machine alone, with
 * an empty memory and without Redis, and asked as a client would ask it. So what it is said to cache is what it cached.
 */
import { createGateway } from '../app.js';
import type { Clock } from '../clock.js';
import type { Config, UpstreamConfig } from '../config.js';
import { isObject } from '../core/change.js';
import type { CacheableMethod } from '../core/protocol.js';
import { ERRORS } from '../errors.js';
import { createLogger } from '../telemetry.js';
import { ask, type Caller, type Dialect, greet, leave, measureList, type ProbeAnswer } from './client.js';
import { adviceFor, type ProbedList, type ProbedUpstream, type Report } from './report.js';

/** How long one upstream may take, and the watch to come to stand, in milliseconds. */
const PROBE_MS = 30_000;
const WATCH_MS = 3_000;
const POLL_MS = 50;

const LISTS: readonly (readonly [capability: string, method: CacheableMethod])[] = [
  ['tools', 'tools/list'],
  ['prompts', 'prompts/list'],
  ['resources', 'resources/list'],
  ['resources', 'resources/templates/list'],
];

export interface ProbeDeps {
  readonly config: Config;
  readonly clock: Clock;
  readonly version: string;
  readonly random: () => number;
}

interface Probe extends Pick<ProbeDeps, 'clock' | 'version'> {
  readonly maxPages: number;
  readonly url: string;
  readonly adminUrl: string;
}

/** Tries all upstreams at once. Rejects only where no gateway can be started here. */
export async function probe({ config, ...deps }: ProbeDeps): Promise<Report> {
  const gateway = createGateway({ config: inQuiet(config), log: createLogger('silent'), ...deps });
  const addresses = await gateway.listen();
  try {
    const probed = await Promise.all(
      config.upstreams.map((upstream) =>
        probeOne({ ...deps, ...addresses, maxPages: config.snapshotMaxPages }, upstream),
      ),
    );
    return probed.map((one) => ({ ...one, advice: adviceFor(one) }));
  } finally {
    await gateway.close();
  }
}

/** The same configuration, but for itself alone. */
function inQuiet(config: Config): Config {
  const here = { host: '127.0.0.1', port: 0, adminHost: '127.0.0.1', adminPort: 0 };
  const open = { adminToken: undefined, redis: undefined, allowedHosts: undefined };
  return { ...config, ...here, ...open, publicSharing: 'any', pageSize: 0, shutdownGraceMs: 0 };
}

async function probeOne(probe: Probe, upstream: UpstreamConfig): Promise<ProbedUpstream> {
  const { name } = upstream;
  const endpoint = `${probe.url}/mcp/${name}`;
  const clientInfo = { name: 'mcp-cache-gateway', version: probe.version };
  const caller: Caller = { clientInfo, headers: {}, signal: AbortSignal.timeout(PROBE_MS) };
  try {
    const found = await greet(endpoint, caller);
    if (found.dialect === undefined)
      return { name, ok: false, ...problemOf(found.answer), watch: await watchState(probe, name), lists: [] };
    const { dialect } = found;
    const { era, server, capabilities } = dialect;
    const lists: ProbedList[] = [];
    for (const [capability, method] of LISTS)
      if (capabilities.includes(capability))
        lists.push(await probeList(probe, upstream, { dialect, method, caller }));
    await leave(endpoint, dialect, caller).catch(() => {});
    return { name, ok: true, era, server, capabilities, watch: await watchState(probe, name), lists };
  } catch {
    const problem = caller.signal.aborted ? 'it was not done in time' : 'it broke off its answer';
    return { name, ok: false, problem, watch: 'waiting', lists: [] };
  }
}

/** In words what came in place of an MCP server's answer; the gateway's own errors are none that the server gave. */
function problemOf({ status, error, errorCode }: ProbeAnswer): Pick<ProbedUpstream, 'problem' | 'status'> {
  if (errorCode === ERRORS['upstream-unreachable'].rpcCode) return { problem: 'it could not be reached' };
  if (errorCode === ERRORS['upstream-timeout'].rpcCode) return { problem: 'it did not answer in time' };
  const problem = `it answered with status ${status}, not as an MCP server does`;
  return { problem: error === undefined ? problem : `it answered with status ${status}: ${error}`, status };
}

/** Asks the server itself for what it says, and the gateway for what it makes of it. */
async function probeList(
  probe: Probe,
  upstream: UpstreamConfig,
  asked: { readonly dialect: Dialect; readonly method: CacheableMethod; readonly caller: Caller },
): Promise<ProbedList> {
  const { dialect, method, caller } = asked;
  const { authorization, headers } = upstream;
  const own = { ...headers, ...(authorization !== undefined && { authorization }) };
  const itself: Caller = { ...caller, headers: own };
  const direct = await ask(upstream.url, method, dialect, itself);
  const startedAt = probe.clock.now();
  const answer = await ask(`${probe.url}/mcp/${upstream.name}`, method, dialect, caller);
  const durationMs = Math.round(probe.clock.now() - startedAt);
  const said = { ttlMs: direct.result?.ttlMs ?? null, cacheScope: direct.result?.cacheScope ?? null };
  const entry = await keptEntry(probe, upstream.name, method);
  if (entry !== undefined) return { method, ...said, durationMs, ...entry };
  const detail = /detail=([\w-]+)/.exec(answer.headers.get('cache-status') ?? '')?.[1];
  const reason = answer.error ?? detail ?? `status ${answer.status}`;
  // The gateway walks no list that it does not keep: the server itself tells how long this one is.
  const size = await measureList(direct, method, probe.maxPages, (cursor) =>
    ask(upstream.url, method, dialect, itself, { cursor }),
  );
  return { method, ...said, durationMs, ...size, reason };
}

async function keptEntry(
  { adminUrl }: Probe,
  name: string,
  method: string,
): Promise<Pick<ProbedList, 'pages' | 'items' | 'kept'> | undefined> {
  const { list } = await shownUpstream(adminUrl, name);
  const entry: unknown = Array.isArray(list)
    ? list.find((one) => isObject(one) && one.method === method)
    : undefined;
  if (!isObject(entry)) return undefined;
  const { scope, ageMs, remainingMs, items, pages, bytes } = entry;
  const lifetimeMs = Number(ageMs) + Number(remainingMs);
  const kept = { lifetimeMs, scope: String(scope), bytes: Number(bytes) };
  return { pages: Number(pages), items: Number(items), kept };
}

async function watchState({ adminUrl, clock }: Probe, name: string): Promise<string> {
  for (const until = clock.now() + WATCH_MS; ; await clock.sleep(POLL_MS)) {
    const { watch } = await shownUpstream(adminUrl, name);
    const state = isObject(watch) ? String(watch.state) : 'off';
    if (state !== 'connecting' || clock.now() > until) return state;
  }
}

async function shownUpstream(adminUrl: string, name: string): Promise<Readonly<Record<string, unknown>>> {
  const shown: unknown = await (await fetch(`${adminUrl}/cache?upstream=${name}`)).json();
  const [upstream]: unknown[] = isObject(shown) && Array.isArray(shown.upstreams) ? shown.upstreams : [];
  return isObject(upstream) ? upstream : {};
}
