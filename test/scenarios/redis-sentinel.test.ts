/** A Redis behind Sentinel: found by its name, and found again after a failover (law 25). */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { rpc } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { until } from '../support/gate.js';
import { startGateway } from '../support/gateway.js';
import { freePort, startRedis } from '../support/redis.js';
import { goodResult, sendResult, startUpstream } from '../support/upstream.js';

const closing = useClosers();

/** A sentinel that watches the master at this port alone, and replaces it after half a second. */
async function startSentinel(masterPort: number): Promise<{ readonly port: number; close(): Promise<void> }> {
  const port = await freePort();
  const dir = mkdtempSync(join(tmpdir(), 'mcg-sentinel-'));
  const file = join(dir, 'sentinel.conf');
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${dir}`,
    `sentinel monitor shared 127.0.0.1 ${masterPort} 1`,
    'sentinel down-after-milliseconds shared 500',
    'sentinel failover-timeout shared 3000',
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  const child = spawn('redis-server', [file, '--sentinel'], { stdio: 'ignore' });
  return {
    port,
    close: () =>
      new Promise((resolve) => {
        child.once('exit', () => {
          rmSync(dir, { recursive: true, force: true });
          resolve();
        });
        child.kill('SIGKILL');
      }),
  };
}

async function sentinelKnowsReplica(port: number): Promise<boolean> {
  const asked = new Redis({ port, host: '127.0.0.1', lazyConnect: true, retryStrategy: () => null });
  asked.on('error', () => {});
  try {
    await asked.connect();
    const replicas: unknown = await asked.call('sentinel', 'replicas', 'shared');
    return Array.isArray(replicas) && replicas.length === 1;
  } catch {
    return false;
  } finally {
    asked.disconnect();
  }
}

test('two gateways share through the master that Sentinel names, and through the next one after it died', async () => {
  const master = closing(await startRedis());
  const replica = closing(await startRedis(['--replicaof', '127.0.0.1', String(master.port)]));
  const sentinel = closing(await startSentinel(master.port));
  await until(() => sentinelKnowsReplica(sentinel.port), 20_000);
  const upstream = closing(
    await startUpstream((req, res) => sendResult(res, req, goodResult({ tools: [{ name: 't' }] }))),
  );
  const env = { REDIS_URL: `redis-sentinel://127.0.0.1:${sentinel.port}/shared` };
  const [a, b] = [
    closing(await startGateway({ upstreams: { u: upstream.url }, env })),
    closing(await startGateway({ upstreams: { u: upstream.url }, env })),
  ];
  for (const { logs } of [a, b]) await until(() => logs.some((line) => line.msg === 'redis is in use'));
  await rpc(a.endpoint('u'), 'tools/list');
  expect((await rpc(b.endpoint('u'), 'tools/list')).cacheStatus).toContain('hit');
  expect(upstream.count()).toBe(1);

  await master.kill();
  const uses = (logs: readonly { msg: string }[]) =>
    logs.filter((line) => line.msg === 'redis is in use').length;
  await until(async () => {
    expect((await rpc(a.endpoint('u'), 'tools/list')).status).toBe(200);
    return uses(a.logs) === 2 && uses(b.logs) === 2;
  }, 30_000);
  expect((await replica.client.role())[0]).toBe('master');
  const before = upstream.count();
  const params = { fresh: 'after the failover' };
  await rpc(a.endpoint('u'), 'tools/list', { params });
  expect((await rpc(b.endpoint('u'), 'tools/list', { params })).cacheStatus).toContain('hit');
  expect(upstream.count()).toBe(before + 1);
}, 60_000);
