/** Redis fails in every way while clients ask on: none of them notices (law 25; C62). */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { COMMAND_MS } from '../../src/cache/redis-link.js';
import { rpc } from '../support/client.js';
import { closeAfterEach } from '../support/closing.js';
import { isRedisUsed, redisStates, startReplica } from '../support/fleet.js';
import { until } from '../support/gate.js';
import { type RunningGateway, startGateway } from '../support/gateway.js';
import { emptyLoad, putLoad, summary } from '../support/load.js';
import { type RedisServer, startRedis } from '../support/redis.js';
import { type RedisProxy, startRedisProxy } from '../support/redis-proxy.js';
import {
  goodResult,
  type HeldWatch,
  heldWatch,
  type ScriptedUpstream,
  sendResult,
  startUpstream,
} from '../support/upstream.js';

const closing = closeAfterEach();
let upstream: ScriptedUpstream;
let watch: HeldWatch;
let redis: RedisServer;
let proxy: RedisProxy;
let edition: number;
const troubles: unknown[] = [];
const onTrouble = (error: unknown) => troubles.push(error);

beforeEach(async () => {
  edition = 1;
  troubles.length = 0;
  process.on('unhandledRejection', onTrouble);
  redis = closing(await startRedis());
  proxy = closing(await startRedisProxy(redis.port));
  upstream = closing(
    await startUpstream((req, res) => {
      const contents = [{ uri: req.json.params.uri, text: '', edition }];
      const isRead = req.json.method === 'resources/read';
      sendResult(res, req, goodResult(isRead ? { contents } : { tools: [{ name: 'a', edition }] }));
    }),
  );
  watch = heldWatch();
  upstream.respondToWatch = watch.respond;
});
afterEach(() => {
  process.off('unhandledRejection', onTrouble);
});

interface Fault {
  readonly name: string;
  readonly begin: () => unknown;
  readonly end: () => unknown;
  /** Why Redis is put away; absent: it stays in use. */
  readonly reason?: RegExp;
}

const withMode = (mode: RedisProxy['mode']): Pick<Fault, 'begin' | 'end'> => ({
  begin: () => {
    proxy.mode = mode;
  },
  end: () => {
    proxy.mode = { kind: 'pass' };
  },
});

const FAULTS: readonly Fault[] = [
  {
    name: 'killed, and started again empty',
    begin: () => redis.kill(),
    end: () => redis.restart(),
    reason: /./,
  },
  { name: 'paused', begin: () => redis.pause(), end: () => redis.resume(), reason: /timed out/ },
  { name: 'slow', ...withMode({ kind: 'slow', ms: 150 }), reason: /timed out/ },
  { name: 'gone', ...withMode({ kind: 'gone' }), reason: /./ },
  {
    name: 'loading',
    ...withMode({ kind: 'error', message: 'LOADING Redis is loading the dataset in memory' }),
    reason: /LOADING/,
  },
  {
    name: 'unable to save',
    ...withMode({ kind: 'error', message: 'MISCONF Redis is configured to save RDB snapshots' }),
    reason: /MISCONF/,
  },
  {
    name: 'out of memory',
    begin: () => redis.client.config('SET', 'maxmemory', '1'),
    end: () => redis.client.config('SET', 'maxmemory', '0'),
  },
  {
    name: 'read-only',
    begin: () => redis.client.replicaof('127.0.0.1', '1'),
    end: () => redis.client.replicaof('no', 'one'),
    reason: /READONLY/,
  },
  {
    name: 'asking for a password',
    async begin() {
      await redis.client.config('SET', 'requirepass', 'secret');
      await redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    },
    end: () => redis.client.config('SET', 'requirepass', ''),
    reason: /./,
  },
];

async function startTwo(url: string): Promise<RunningGateway[]> {
  const start = async () => closing(await startReplica({ redisUrl: url, upstreamUrl: upstream.url }));
  return [await start(), await start()];
}

/** A change of the upstream, told on every stream, that each replica has taken note of when this resolves. */
async function change(replicas: readonly RunningGateway[]): Promise<void> {
  edition += 1;
  watch.notify('notifications/tools/list_changed');
  for (const replica of replicas) {
    await until(async () => {
      const { json } = await rpc(replica.endpoint('u'), 'tools/list');
      return json.result.tools[0].edition === edition;
    });
  }
}

test('memory alone takes the same load, for comparison', async () => {
  const replicas = [closing(await startGateway({ upstreams: { u: upstream.url } }))];
  await putLoad({ replicas, count: 420, edition });
  const load = await putLoad({ replicas, count: 420, edition });
  process.stdout.write(`memory alone: ${summary(load)}\n`);
  expect(load).toMatchObject({ failures: [], outdated: [] });
});

test("a request waits for four commands at most, which stay below 250 ms together, and the fifth is nobody's wait", async () => {
  const env = { UPSTREAM_U_WATCH: 'off' };
  const gateway = closing(await startReplica({ redisUrl: redis.url, upstreamUrl: upstream.url, env }));
  await until(() => isRedisUsed(gateway));
  const evals = async () =>
    Number(/cmdstat_eval:calls=(\d+)/.exec(await redis.client.info('commandstats'))?.[1] ?? 0);
  const before = await evals();
  await rpc(gateway.endpoint('u'), 'tools/list');
  await until(async () => (await evals()) === before + 5);
  await rpc(gateway.endpoint('u'), 'tools/list');
  expect(await evals()).toBe(before + 5);
  expect(4 * (COMMAND_MS + 1)).toBeLessThan(250);
});

/** Whether each line tells of a change: up and away take turns. */
function changesOnly(states: readonly string[]): boolean {
  return states.every((state, i) => i === 0 || (state === 'up') !== (states[i - 1] === 'up'));
}

describe.each(FAULTS)('Redis that is $name', ({ name, begin, end, reason }) => {
  test('costs no request, and nothing flushed comes back', { timeout: 60_000 }, async () => {
    const replicas = await startTwo(proxy.url);
    await until(() => replicas.every(isRedisUsed));
    const load = emptyLoad();
    await putLoad({ replicas, count: 60, edition, load });
    const loading = putLoad({ replicas, count: 120, edition, load });
    await begin();
    await loading;
    if (reason !== undefined) {
      await until(() => !replicas.some(isRedisUsed) && watch.streams.size === 2, 15_000);
    }
    await change(replicas);
    await putLoad({ replicas, count: 60, edition, load });
    const recovering = putLoad({ replicas, count: 120, edition, load });
    await end();
    await recovering;
    await until(() => replicas.every(isRedisUsed), 15_000);
    await putLoad({ replicas, count: 60, edition, load });
    process.stdout.write(`${name}: ${summary(load)}\n`);
    expect(load.failures).toEqual([]);
    expect(load.outdated).toEqual([]);
    expect(load.times).toHaveLength(420);
    expect(troubles).toEqual([]);
    for (const replica of replicas) {
      const states = redisStates(replica);
      expect(changesOnly(states)).toBe(true);
      if (reason === undefined) expect(states.join()).not.toContain('OOM');
      else expect(states.filter((state) => state !== 'up').join()).toMatch(reason);
    }
    // Sharing works again: one stream, a change for both, and what one fetched is there for the other.
    await until(() => replicas.every(isRedisUsed) && watch.streams.size === 1, 15_000);
    await change(replicas);
    let tries = 0;
    await until(async () => {
      tries += 1;
      const params = { uri: `x:after-${tries}` };
      const answers = [];
      for (const replica of replicas) {
        answers.push(await rpc(replica.endpoint('u'), 'resources/read', { params }));
      }
      return answers[1]?.cacheStatus.includes('hit') === true;
    });
  });
});

describe('Redis that is not there at the start', () => {
  test('is used once it is there', { timeout: 60_000 }, async () => {
    proxy.mode = { kind: 'gone' };
    const replicas = await startTwo(proxy.url);
    const load = await putLoad({ replicas, count: 120, edition });
    await change(replicas);
    proxy.mode = { kind: 'pass' };
    await putLoad({ replicas, count: 120, edition, load });
    await until(() => replicas.every(isRedisUsed), 15_000);
    await putLoad({ replicas, count: 60, edition, load });
    process.stdout.write(`refused at the start: ${summary(load)}\n`);
    expect(load).toMatchObject({ failures: [], outdated: [] });
    for (const replica of replicas) {
      expect(redisStates(replica)[0]).toMatch(/^away/);
      expect(changesOnly(redisStates(replica))).toBe(true);
    }
  });

  test('is used once it answers, if it was paused', { timeout: 60_000 }, async () => {
    redis.pause();
    const replicas = await startTwo(redis.url);
    const load = await putLoad({ replicas, count: 120, edition });
    redis.resume();
    await until(() => replicas.every(isRedisUsed), 20_000);
    expect(load).toMatchObject({ failures: [], outdated: [] });
    for (const replica of replicas) expect(changesOnly(redisStates(replica))).toBe(true);
  });

  test('nor its name, costs nothing but one line', { timeout: 60_000 }, async () => {
    const replicas = await startTwo('redis://no-such-host.invalid');
    const load = await putLoad({ replicas, count: 120, edition });
    await change(replicas);
    await putLoad({ replicas, count: 120, edition, load });
    process.stdout.write(`no such name: ${summary(load)}\n`);
    expect(load).toMatchObject({ failures: [], outdated: [] });
    for (const replica of replicas) {
      await until(() => redisStates(replica).length > 0, 10_000);
      expect(redisStates(replica)).toEqual([expect.stringMatching(/^away: (ENOTFOUND|EAI_AGAIN)/)]);
    }
  });
});
