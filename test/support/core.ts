/** Values for tests of the pure core, made as they come off the wire: from text. */
import { type CacheableRequest, type Classified, classify } from '../../src/core/classify.js';
import type { FreshnessPolicy, Hints } from '../../src/core/freshness.js';
import type { RawHeaders } from '../../src/core/headers.js';
import { type RpcRequest, readMessage } from '../../src/core/message.js';
import { type Page, readReply } from '../../src/core/page.js';
import type { CacheableMethod } from '../../src/core/protocol.js';
import type { Entry, ReceivedPage } from '../../src/core/snapshot.js';
import { type RpcOptions, rpcRequest } from './client.js';

/** What an operator has who sets nothing, as design.md section 2 lists it. */
export const DEFAULT_POLICY: FreshnessPolicy = {
  defaultTtlMs: 0,
  minTtlMs: 0,
  maxTtlMs: 86_400_000,
  defaultScope: 'public',
  scope: 'auto',
};

/** Hints as sent: a field that is left out was not sent. */
export function hintsOf(sent: { readonly ttlMs?: unknown; readonly cacheScope?: unknown }): Hints {
  const field = (key: 'ttlMs' | 'cacheScope') =>
    key in sent ? ({ sent: true, value: sent[key] } as const) : ({ sent: false } as const);
  return { ttlMs: field('ttlMs'), cacheScope: field('cacheScope') };
}

/** Fields in the flat form of node:http. */
export function rawHeaders(fields: Readonly<Record<string, string>>): string[] {
  return Object.entries(fields).flat();
}

export function classifyText(body: string | Uint8Array, headers: RawHeaders): Classified {
  return classify(readMessage(Buffer.from(body)), headers);
}

/** What becomes of one request in its correct form, but for what `options` and `change` make of it. */
export function classifyRpc(
  method: string,
  options: RpcOptions = {},
  change: (request: { headers: string[]; body: string }) => {
    headers?: RawHeaders;
    body?: string;
  } = () => ({}),
): Classified {
  const { headers, body } = rpcRequest(method, options);
  const plain = { headers: rawHeaders(headers), body };
  const sent = { ...plain, ...change(plain) };
  return classifyText(sent.body, sent.headers);
}

/** One cacheable request; fails where it is none. */
export function cacheable(method: CacheableMethod, options: RpcOptions = {}): CacheableRequest {
  const classified = classifyRpc(method, options);
  if (classified.kind !== 'cacheable') throw new Error(`not cacheable: ${JSON.stringify(classified)}`);
  return classified;
}

/** One request; fails where the text is none. */
export function requestOf(body: string): RpcRequest {
  const message = readMessage(Buffer.from(body));
  if (message.kind !== 'request') throw new Error(`not a request: ${message.what}`);
  return message;
}

/** One page from the text of its result; fails where it is none. */
export function pageOf(method: CacheableMethod, result: string): Page {
  const reply = readReply(Buffer.from(`{"jsonrpc":"2.0","id":1,"result":${result}}`), method, 1);
  if (reply.kind !== 'page') throw new Error(`not a page: ${JSON.stringify(reply)}`);
  return reply.page;
}

export function receivedPage(method: CacheableMethod, result: string, receivedAt = 0): ReceivedPage {
  return { page: pageOf(method, result), receivedAt };
}

/** An entry of `bytes` bytes, as a store holds it. */
export function entryOf(bytes: number, change: Partial<Entry> = {}): Entry {
  return {
    method: 'tools/list',
    scope: 'public',
    authContext: 'a',
    seed: 's',
    body: Buffer.alloc(bytes, 0x20),
    sentHints: { ttlMs: true, cacheScope: true },
    receivedAt: 0,
    expiresAt: 60_000,
    pages: 1,
    items: 0,
    uris: [],
    ...change,
  };
}
