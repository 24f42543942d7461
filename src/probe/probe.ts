/**
 * Owns: trying the upstreams of a configuration: a gateway of that configuration is run on this machine alone, with
 * an empty memory and without Redis, and asked as a client would ask it. So what it is said to cache is what it cached.
 */
import { createGateway } from '../app.js';
import type { Clock } from '../clock.js';
import type { Config, UpstreamConfig } from '../config.js';
import { isObject } from '../core/change.js';
import { type CacheableMethod, ERROR_CODE } from '../core/protocol.js';
import { ERRORS } from '../errors.js';
import { createLogger } from '../telemetry.js';
import {
  ask,
  type Caller,
  type Dialect,
  type Fields,
  greet,
  leave,
  measureList,
  type ProbeAnswer,
} from './client.js';
import { adviceFor, LATE, type ProbedList, type ProbedUpstream, type Report } from './report.js';

/** How long the gateway's own error may take to arrive, and the watch to come to stand, in milliseconds. */
const MARGIN_MS = 1_000;
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
  readonly sharing: Config['publicSharing'];
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
        probeOne(
          { ...deps, ...addresses, maxPages: config.snapshotMaxPages, sharing: config.publicSharing },
          upstream,
        ),
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
  const caller = callerOf(probe, upstream, {});
  try {
    const found = await greet(endpoint, caller);
    if (found.dialect === undefined)
      return { name, ok: false, ...problemOf(found.answer), ...(await watchOf(probe, name)), lists: [] };
    const { dialect } = found;
    const { era, server, capabilities } = dialect;
    const declared = LISTS.filter(([capability]) => capabilities.includes(capability));
    // All at once: one that does not answer costs its time once, and the others nothing.
    const lists = await Promise.all(
      declared.map(([, method]) => probeList(probe, upstream, { dialect, method })),
    );
    await leave(endpoint, dialect, callerOf(probe, upstream, {})).catch(() => {});
    const refused = lists.filter((list) => list.refused !== undefined);
    const problem = refused.map(({ method, reason }) => `${method}: ${reason}`).join('; ');
    const verdict = refused.length === 0 ? { ok: true } : { ok: false, problem };
    return { name, ...verdict, era, server, capabilities, ...(await watchOf(probe, name)), lists };
  } catch {
    const problem = caller.signal.aborted ? LATE : 'it broke off its answer';
    return { name, ok: false, problem, watch: 'waiting', lists: [] };
  }
}

/** Who asks next, for as long as the gateway waits for this upstream. */
function callerOf(probe: Probe, { timeoutMs }: UpstreamConfig, headers: Caller['headers']): Caller {
  const clientInfo = { name: 'mcp-cache-gateway', version: probe.version };
  return { clientInfo, headers, signal: AbortSignal.timeout(timeoutMs + MARGIN_MS) };
}

/** In words what came in place of an MCP server's answer; the gateway's own errors are none that the server gave. */
function problemOf({ status, error, errorCode }: ProbeAnswer): {
  readonly problem: string;
  readonly status?: number;
} {
  if (errorCode === ERRORS['upstream-unreachable'].rpcCode) return { problem: 'it could not be reached' };
  if (errorCode === ERRORS['upstream-timeout'].rpcCode) return { problem: LATE };
  const problem = `it answered with status ${status}, not as an MCP server does`;
  return { problem: error === undefined ? problem : `it answered with status ${status}: ${error}`, status };
}

/** Asks the gateway for the list, and the server itself for what it says about it. */
async function probeList(
  probe: Probe,
  upstream: UpstreamConfig,
  { dialect, method }: { readonly dialect: Dialect; readonly method: CacheableMethod },
): Promise<ProbedList> {
  const startedAt = probe.clock.now();
  const endpoint = `${probe.url}/mcp/${upstream.name}`;
  const answer = await ask(endpoint, method, dialect, callerOf(probe, upstream, {})).catch(() => undefined);
  const durationMs = Math.round(probe.clock.now() - startedAt);
  const unknown = { method, ttlMs: null, cacheScope: null, durationMs, pages: 0, items: 0 };
  if (answer === undefined) return { ...unknown, reason: 'it broke off its answer', refused: {} };
  if (answer.result === undefined) {
    const { problem, status } = problemOf(answer);
    // Not every server that declares resources has templates.
    const isMissing = answer.errorCode === ERROR_CODE.methodNotFound;
    return {
      ...unknown,
      reason: problem,
      ...(!isMissing && { refused: status === undefined ? {} : { status } }),
    };
  }
  const { authorization, headers } = upstream;
  const itself = callerOf(probe, upstream, {
    ...headers,
    ...(authorization !== undefined && { authorization }),
  });
  const askItself = (params?: Fields) => ask(upstream.url, method, dialect, itself, params);
  const direct = await askItself().catch(() => answer);
  const said = { ttlMs: direct.result?.ttlMs ?? null, cacheScope: direct.result?.cacheScope ?? null };
  const entry = await keptEntry(probe, upstream.name, method);
  if (entry !== undefined) return { method, ...said, durationMs, ...entry };
  const detail = /detail=([\w-]+)/.exec(answer.headers.get('cache-status') ?? '')?.[1];
  // The gateway walks no list that it does not keep: the server itself tells how long this one is.
  const size = await measureList(direct, method, probe.maxPages, (cursor) => askItself({ cursor }));
  return { method, ...said, durationMs, ...size, reason: detail ?? 'not cacheable' };
}

async function keptEntry(
  { adminUrl, sharing }: Probe,
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
  const kept = { lifetimeMs, scope: String(scope), sharing, bytes: Number(bytes) };
  return { pages: Number(pages), items: Number(items), kept };
}

async function watchOf(
  { adminUrl, clock }: Probe,
  name: string,
): Promise<Pick<ProbedUpstream, 'watch' | 'watchReason'>> {
  for (const until = clock.now() + WATCH_MS; ; await clock.sleep(POLL_MS)) {
    const { watch } = await shownUpstream(adminUrl, name);
    const { state, reason } = isObject(watch) ? watch : {};
    if (state !== 'connecting' || clock.now() > until)
      return { watch: String(state), ...(typeof reason === 'string' && { watchReason: reason }) };
  }
}

async function shownUpstream(adminUrl: string, name: string): Promise<Readonly<Record<string, unknown>>> {
  const shown: unknown = await (await fetch(`${adminUrl}/cache?upstream=${name}`)).json();
  const [upstream]: unknown[] = isObject(shown) && Array.isArray(shown.upstreams) ? shown.upstreams : [];
  return isObject(upstream) ? upstream : {};
}
