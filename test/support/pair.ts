/** A scripted upstream and a gateway before it, on a clock that the test moves; and the list both speak of. */
import type { RpcAnswer, RpcOptions } from './client.js';
import { rpc } from './client.js';
import { createTestClock, type TestClock } from './clock.js';
import { flushes } from './flushes.js';
import { until } from './gate.js';
import { type RunningGateway, startGateway } from './gateway.js';
import { type HeldWatch, heldWatch, type Respond, type ScriptedUpstream, startUpstream } from './upstream.js';

export interface Pair {
  /** A test that starts it again puts the new one here. */
  upstream: ScriptedUpstream;
  readonly gateway: RunningGateway;
  readonly clock: TestClock;
  readonly watch: HeldWatch;
  readonly url: string;
  /** Asks the gateway for `tools/list`. */
  list(options?: RpcOptions): Promise<RpcAnswer>;
  /** Has the upstream announce a change; resolved when it has taken effect. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** Longer than the gateway sleeps when it starts, and than SHUTDOWN_GRACE_MS of a gateway under test. */
const GRACE_MS = 1_000;

export async function startPair(respond: Respond, env: Readonly<Record<string, string>> = {}): Promise<Pair> {
  const upstream = await startUpstream(respond);
  const watch = heldWatch();
  upstream.respondToWatch = watch.respond;
  const clock = createTestClock();
  const gateway = await startGateway({ upstreams: { u: upstream.url }, env, clock });
  // Nobody sleeps any more on the gateway's start.
  clock.advance(GRACE_MS);
  const url = gateway.endpoint('u');
  const pair: Pair = {
    upstream,
    gateway,
    clock,
    watch,
    url,
    list: (options) => rpc(url, 'tools/list', options),
    async flush() {
      const before = flushes(gateway, 'watch');
      watch.notify('notifications/tools/list_changed');
      await until(() => flushes(gateway, 'watch') > before);
    },
    async close() {
      await pair.upstream.close();
      const closed = gateway.close();
      // The grace of the shutdown is over at once.
      clock.advance(GRACE_MS);
      await closed;
    },
  };
  return pair;
}

/** The credentials of one caller. */
export function bearer(token: string): { readonly headers: Record<string, string> } {
  return { headers: { authorization: `Bearer ${token}` } };
}

/**
 * Waits until so many more sleep on the clock than when it was called. In the gateway each request that waits
 * for a fetch sleeps once (the bound of its wait), and each fetch once (its deadline).
 */
export function moreSleepers(clock: TestClock): (count: number) => Promise<void> {
  const before = clock.sleepers;
  return (count) => until(() => clock.sleepers >= before + count);
}

/** A result of `tools/list`: public and fresh for a minute, unless `fields` say otherwise. */
export function toolsResult(
  names: readonly string[],
  fields: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  const tools = names.map((name) => ({ name, inputSchema: { type: 'object' } }));
  return { resultType: 'complete', tools, ttlMs: 60_000, cacheScope: 'public', ...fields };
}

/** The names of the tools in an answer; fails where it is none. */
export function namesIn(answer: RpcAnswer): string[] {
  return answer.json.result.tools.map((tool: { readonly name: string }) => tool.name);
}

/** The lines of the gateway's log that say this. */
export function logged(gateway: RunningGateway, msg: string): Record<string, unknown>[] {
  return gateway.logs.filter((line) => line.msg === msg);
}
