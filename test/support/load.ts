/** Clients that ask a fleet without a pause, and what became of each request. */
import { rpc } from './client.js';
import type { RunningGateway } from './gateway.js';

export interface Load {
  /** Requests that were not answered with a result. */
  readonly failures: string[];
  /** How long each took, in milliseconds. */
  readonly times: number[];
  /** Answers older than the edition that was asked for at least. */
  readonly outdated: string[];
}

export interface LoadOptions {
  readonly replicas: readonly RunningGateway[];
  readonly count: number;
  readonly clients?: number;
  /** The edition below which an answer is outdated. */
  readonly edition: number;
  readonly load?: Load;
}

/** Every third request lists, the others read one of many resources; `edition` is in each answer. */
export async function putLoad({
  replicas,
  count,
  clients = 8,
  edition,
  load = emptyLoad(),
}: LoadOptions): Promise<Load> {
  let asked = 0;
  const client = async () => {
    while (asked < count) {
      asked += 1;
      const n = asked;
      const replica = replicas[n % replicas.length];
      if (replica === undefined) throw new Error('no replica');
      const startedAt = performance.now();
      const answer = await ask(replica, n).catch((error: unknown) => ({
        status: 0,
        text: String(error),
        json: undefined,
      }));
      load.times.push(performance.now() - startedAt);
      const seen = answer.json?.result?.tools?.[0]?.edition ?? answer.json?.result?.contents?.[0]?.edition;
      if (answer.status !== 200 || seen === undefined) load.failures.push(`${answer.status} ${answer.text}`);
      else if (seen < edition) load.outdated.push(answer.text);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return load;
}

export function emptyLoad(): Load {
  return { failures: [], times: [], outdated: [] };
}

function ask(replica: RunningGateway, n: number) {
  const url = replica.endpoint('u');
  if (n % 3 === 0) return rpc(url, 'tools/list', { id: n });
  return rpc(url, 'resources/read', { id: n, params: { uri: `x:${n % 40}` } });
}

export function summary({ times }: Load): string {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  return `${times.length} requests, ms: median ${at(0.5)}, 99 % ${at(0.99)}, longest ${at(1)}`;
}
