/** Whether Redis can be counted on, and what it costs to find out (law 25). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRedisClient } from '../../src/cache/redis-client.js';
import { COMMAND_MS, createRedisLink, type LinkState } from '../../src/cache/redis-link.js';
import { createClock } from '../../src/clock.js';
import { closeAfterEach } from '../support/closing.js';
import { createGate, until } from '../support/gate.js';
import { type RedisServer, startRedis } from '../support/redis.js';
import { type ProxyMode, type RedisProxy, startRedisProxy } from '../support/redis-proxy.js';
import { addressOf } from '../support/redis-stores.js';

const GET = `return redis.call('get', KEYS[1])`;
const SET = `return redis.call('set', KEYS[1], ARGV[1])`;
const ms = COMMAND_MS;
let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.close());
const closing = closeAfterEach();

async function open(url: string, reconcile: () => Promise<void> = async () => {}) {
  const address = addressOf(url);
  const states: LinkState[] = [];
  const messages: string[] = [];
  const link = createRedisLink({
    client: createRedisClient(address, () => 0),
    subscriber: createRedisClient(address, () => 0),
    isCluster: false,
    channel: 'link-test',
    clock: createClock(),
    onMessage: (text) => messages.push(text),
    reconcile,
    onState: (state) => states.push(state),
  });
  link.start();
  await link.settled;
  return closing({ link, states, messages, close: () => link.close() });
}

async function openBehind(mode: ProxyMode) {
  const proxy: RedisProxy = closing(await startRedisProxy(redis.port));
  proxy.mode = mode;
  return { proxy, ...(await open(proxy.url)) };
}

describe('a link that is up', () => {
  test('runs scripts and hears messages', async () => {
    const { link, states, messages } = await open(redis.url);
    expect(await link.run(SET, ['link:a'], ['x'], { ms })).toEqual(Buffer.from('OK'));
    expect(await link.run(GET, ['link:a'], [], { ms })).toEqual(Buffer.from('x'));
    await redis.client.publish('link-test', 'hello');
    await until(() => messages.length > 0);
    expect(messages).toEqual(['hello']);
    expect(states).toEqual([{ isUp: true }]);
  });

  test('goes away when a command takes too long, and nobody waits after that', async () => {
    const { link, states, proxy } = await openBehind({ kind: 'pass' });
    proxy.mode = { kind: 'silent' };
    const startedAt = performance.now();
    expect(await link.run(GET, ['a'], [], { ms })).toBeUndefined();
    expect(performance.now() - startedAt).toBeLessThan(250);
    expect(link.isUp).toBe(false);
    const then = performance.now();
    expect(await link.run(GET, ['a'], [], { ms })).toBeUndefined();
    expect(performance.now() - then).toBeLessThan(ms / 2);
    expect(states).toEqual([{ isUp: true }, { isUp: false, reason: 'timed out' }]);
  });

  test('stays when a large value alone takes too long', async () => {
    const { link, proxy } = await openBehind({ kind: 'pass' });
    proxy.mode = { kind: 'slow', ms: 100 };
    expect(await link.run(GET, ['a'], [], { ms: 20, mayTakeLonger: true })).toBeUndefined();
    expect(link.isUp).toBe(true);
  });

  test('stays when Redis is full and that may be, and goes where it may not', async () => {
    const { link, states, proxy } = await openBehind({ kind: 'pass' });
    proxy.mode = { kind: 'error', message: 'OOM command not allowed' };
    expect(await link.run(SET, ['a'], ['x'], { ms, mayBeRefused: true })).toBeUndefined();
    expect(link.isUp).toBe(true);
    expect(await link.run(SET, ['a'], ['x'], { ms })).toBeUndefined();
    expect(states.at(-1)).toEqual({ isUp: false, reason: 'OOM' });
  });

  test.each(["READONLY You can't write", 'MISCONF no disk', 'NOREPLICAS no', 'NOAUTH no'])(
    'goes upon %s: what cannot be flushed is of no use',
    async (message) => {
      const { link, states, proxy } = await openBehind({ kind: 'pass' });
      proxy.mode = { kind: 'error', message };
      expect(await link.run(SET, ['a'], ['x'], { ms, mayBeRefused: true })).toBeUndefined();
      expect(states.at(-1)).toEqual({ isUp: false, reason: message.split(' ')[0] });
    },
  );

  test('goes and comes with its connections, with one word for each change', async () => {
    const { link, states, proxy } = await openBehind({ kind: 'pass' });
    proxy.cut();
    await until(() => !link.isUp);
    await until(() => link.isUp);
    expect(states.map((state) => state.isUp)).toEqual([true, false, true]);
  });

  test('says nothing more once it is closed', async () => {
    const { link, states } = await open(redis.url);
    await link.close();
    expect(await link.run(GET, ['a'], [], { ms })).toBeUndefined();
    link.distrust('closed');
    expect(states).toEqual([{ isUp: true }]);
  });
});

describe('a link that does not come up', () => {
  const faults: readonly [string, ProxyMode, string][] = [
    ['connections that are cut', { kind: 'gone' }, ''],
    ['a server that answers nothing', { kind: 'silent' }, ''],
    ['a server that is too slow', { kind: 'slow', ms: 120 }, 'timed out'],
    ['LOADING', { kind: 'error', message: 'LOADING Redis is loading the dataset in memory' }, ''],
    ['NOAUTH', { kind: 'error', message: 'NOAUTH Authentication required.' }, 'NOAUTH'],
  ];
  test.each(faults)(
    'because of %s does so when that is over, without a restart',
    async (_what, mode, reason) => {
      const { link, states, proxy } = await openBehind(mode);
      expect(states).toHaveLength(1);
      expect(states[0]?.isUp).toBe(false);
      if (reason !== '') expect(states[0]?.reason).toBe(reason);
      expect(await link.run(GET, ['a'], [], { ms })).toBeUndefined();
      proxy.mode = { kind: 'pass' };
      await until(() => link.isUp, 12_000);
      expect(states).toHaveLength(2);
    },
  );

  test('because its name is unknown says so once', async () => {
    const { states } = await open('redis://no-such-host.invalid:6379');
    expect(states).toHaveLength(1);
    expect(states[0]?.reason).toMatch(/^(ENOTFOUND|EAI_AGAIN)$/);
  });
});

describe('catching up', () => {
  test('is done again before the link comes up if something more was owed meanwhile', async () => {
    const gate = createGate();
    let rounds = 0;
    const { link, states } = await open(redis.url, async () => {
      rounds += 1;
      if (rounds === 2) await gate.pass();
    });
    link.distrust('a flush is owed');
    await gate.arrivals(1);
    link.distrust('another is');
    expect(link.isUp).toBe(false);
    gate.open();
    await until(() => link.isUp);
    expect(rounds).toBe(3);
    expect(states.map((state) => state.isUp)).toEqual([true, false, true]);
  });

  test('that fails keeps the link away until it succeeds', async () => {
    let failures = 1;
    const { link, states } = await open(redis.url, async () => {
      if (failures-- > 0) throw new Error('not yet');
    });
    expect(states).toEqual([{ isUp: false, reason: 'Error' }]);
    await until(() => link.isUp);
    expect(states.map((state) => state.isUp)).toEqual([false, true]);
  });
});
