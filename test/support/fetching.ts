/** One request of a cacheable method as the cache has it made, and what came of it. */
import type { Change } from '../../src/core/change.js';
import type { Fetched } from '../../src/core/exchange.js';
import type { CacheableMethod } from '../../src/core/protocol.js';
import { createPageSource } from '../../src/upstream/page-source.js';
import { createTransport } from '../../src/upstream/transport.js';
import { rpcRequest } from './client.js';
import { rawFields } from './raw.js';

export interface FetchSetup {
  readonly method?: CacheableMethod;
  readonly id?: string | number;
  readonly maxBytes?: number;
  /** Whether this is a later page of a walk, whose other messages nobody could read. */
  readonly isLaterPage?: boolean;
  readonly signal?: AbortSignal;
  readonly now?: () => number;
}

export interface Fetching {
  readonly fetched: Promise<Fetched>;
  /** What went on to the client before the answer: the head that it began with, and the bytes. */
  readonly interim: { status?: number; headers?: readonly string[]; text: string };
  readonly changes: (readonly [Change, 'before' | 'after'])[];
}

export function startFetch(url: string, setup: FetchSetup = {}): Fetching {
  const { method = 'tools/list', id = 1, maxBytes = 1_000_000, now = () => 0 } = setup;
  const { origin, pathname: path } = new URL(url);
  const { headers, body } = rpcRequest(method, { id });
  const source = createPageSource({
    transport: createTransport(),
    clock: { now, sleep: () => new Promise(() => {}), timer: () => () => {} },
    maxBytes,
  });
  const interim: Fetching['interim'] = { text: '' };
  const changes: Fetching['changes'] = [];
  const sink = {
    begin(status: number, fields: readonly string[]) {
      if (interim.status === undefined) Object.assign(interim, { status, headers: fields });
    },
    async write(bytes: Buffer) {
      interim.text += bytes.toString('latin1');
    },
    hasBegun: () => interim.status !== undefined,
  };
  const fetched = source(
    {
      outgoing: { method: 'POST', origin, path, headers: rawFields(headers), body: Buffer.from(body) },
      method,
      id,
    },
    {
      signal: setup.signal ?? new AbortController().signal,
      onChange: async (change, place) => {
        changes.push([change, place]);
      },
      ...(setup.isLaterPage !== true && { interim: sink }),
    },
  );
  fetched.catch(() => {});
  return { fetched, interim, changes };
}

/** All that is left to relay, held and still to come, as latin1. */
export async function relayed({ response }: Fetched): Promise<string> {
  const chunks = [...response.held];
  for await (const chunk of response.rest) chunks.push(chunk);
  return Buffer.concat(chunks).toString('latin1');
}
