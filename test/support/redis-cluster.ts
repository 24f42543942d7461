/** A real cluster of three masters on this machine. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { until } from './gate.js';
import { freePort, type RedisServer, startRedis } from './redis.js';

export interface RedisCluster {
  readonly url: string;
  readonly nodes: readonly RedisServer[];
  /** Every key on every node. */
  keys(pattern: string): Promise<string[]>;
  close(): Promise<void>;
}

export async function startCluster(): Promise<RedisCluster> {
  const start = async () => {
    const bus = String(await freePort());
    return startRedis(['--cluster-enabled', 'yes', '--cluster-port', bus, '--cluster-node-timeout', '2000']);
  };
  const nodes = [await start(), await start(), await start()];
  const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`);
  await promisify(execFile)('redis-cli', ['--cluster', 'create', ...addresses, '--cluster-yes']);
  const isWhole = async ({ client }: RedisServer) =>
    String(await client.call('CLUSTER', 'INFO')).includes('cluster_state:ok');
  await until(async () => (await Promise.all(nodes.map(isWhole))).every(Boolean), 30_000);
  return {
    url: `redis-cluster://${addresses.join(',')}`,
    nodes,
    keys: async (pattern) => (await Promise.all(nodes.map(({ client }) => client.keys(pattern)))).flat(),
    async close() {
      await Promise.all(nodes.map((node) => node.close()));
    },
  };
}
