import { afterAll, beforeAll } from 'vitest';
import { type RedisServer, startRedis } from '../support/redis.js';
import { type RedisProxy, startRedisProxy } from '../support/redis-proxy.js';
import { openRedisStore } from '../support/redis-stores.js';
import { storeContract, unavailableContract } from './store-contract.js';

let redis: RedisServer;
let proxy: RedisProxy;
beforeAll(async () => {
  redis = await startRedis();
  proxy = await startRedisProxy(redis.port);
});
afterAll(async () => {
  await proxy.close();
  await redis.close();
});

async function openBehind(mode: RedisProxy['mode']) {
  proxy.mode = { kind: 'pass' };
  const open = await openRedisStore({ url: proxy.url });
  proxy.mode = mode;
  return open;
}

storeContract('the Redis store', () => openRedisStore({ url: redis.url }));
storeContract('the Redis store behind a slow line', () => openBehind({ kind: 'slow', ms: 8 }));
unavailableContract('the Redis store behind a line that is too slow', () =>
  openBehind({ kind: 'slow', ms: 300 }),
);
unavailableContract('the Redis store behind a silent line', () => openBehind({ kind: 'silent' }));
unavailableContract('the Redis store behind a line that is cut', () => openBehind({ kind: 'gone' }));
for (const message of [
  'LOADING Redis is loading the dataset in memory',
  'NOAUTH Authentication required.',
  "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
  "READONLY You can't write against a read only replica.",
  "OOM command not allowed when used memory > 'maxmemory'.",
  'ERR unknown command',
]) {
  unavailableContract(`the Redis store that answers ${message.slice(0, 8)}`, () =>
    openBehind({ kind: 'error', message }),
  );
}
