/**
 * Owns: one request of a cacheable method to an upstream, and what its answer is: a page, or anything else to
 * be relayed as it came (design, law 4). Reads JSON and event streams; while an event stream brings other
 * messages before its answer, they go on to the client at once.
 */
import type { Clock } from '../clock.js';
import { changesIn } from '../core/change.js';
import type { Fetched, FetchOptions, RelayResponse } from '../core/exchange.js';
import {
  contentCodings,
  contentTypeOf,
  EVENT_STREAM_TYPE,
  endToEnd,
  filterHeaders,
  JSON_TYPE,
} from '../core/headers.js';
import { type ReadReply, readReply } from '../core/page.js';
import type { CacheableMethod } from '../core/protocol.js';
import type { NotStoredReason } from '../core/reasons.js';
import { canDecode, decodeWhole } from './decode.js';
import { MAX_NOTIFICATION_BYTES, type Tap, tap } from './tap.js';
import { type Outgoing, type Transport, toGatewayError, type UpstreamResponse } from './transport.js';

export interface PageCall {
  readonly outgoing: Outgoing;
  readonly method: CacheableMethod;
  /** The id that the request bears. */
  readonly id: string | number;
}

export interface PageSourceDeps {
  readonly transport: Transport;
  readonly clock: Clock;
  /** A larger answer is relayed unread, in bytes. */
  readonly maxBytes: number;
}

export type PageSource = (call: PageCall, options: FetchOptions) => Promise<Fetched>;

/** What a call and its answer have in common, on the way through this file. */
interface Exchange {
  readonly call: PageCall;
  readonly options: FetchOptions;
  readonly response: UpstreamResponse;
  readonly headers: readonly string[];
  readonly codings: readonly string[];
}

/** The returned function throws GatewayError where the upstream cannot be reached or breaks off its answer. */
export function createPageSource(deps: PageSourceDeps): PageSource {
  return async (call, options) => {
    const response = await deps.transport.send(call.outgoing, { signal: options.signal });
    options.onHead?.();
    const headers = endToEnd(response.headers);
    const exchange = { call, options, response, headers, codings: contentCodings(headers) };
    const type = contentTypeOf(headers);
    const reason = response.status === 200 ? 'unexpected' : 'status';
    const isReadable = response.status === 200 && canDecode(exchange.codings);
    if (isReadable && type === JSON_TYPE) return guarded(exchange, () => fromJson(deps, exchange));
    if (isLaterPage(options) && canDecode(exchange.codings) && type === JSON_TYPE) {
      return guarded(exchange, () => fromRefusal(deps, exchange));
    }
    if (type !== EVENT_STREAM_TYPE) return other(reason, relayOf(exchange, [], response.body));
    if (!isReadable)
      return other(reason, relayOf(exchange, [], tapped(exchange, openTap(deps, exchange), 'raw')));
    return guarded(exchange, () => fromEvents(deps, exchange));
  };
}

/** A body that breaks off before anything of it went out is a failure of the upstream. */
async function guarded(exchange: Exchange, read: () => Promise<Fetched>): Promise<Fetched> {
  try {
    return await read();
  } catch (error) {
    exchange.response.body.destroy();
    throw toGatewayError(error, exchange.options.signal);
  }
}

async function fromJson(deps: PageSourceDeps, exchange: Exchange): Promise<Fetched> {
  const { call, response } = exchange;
  const chunks: Buffer[] = [];
  const iterator: AsyncIterator<Buffer> = response.body[Symbol.asyncIterator]();
  let length = 0;
  for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) {
    chunks.push(next.value);
    length += next.value.length;
    if (length > deps.maxBytes) return other('too-large', relayOf(exchange, chunks, remainder(iterator)));
  }
  const receivedAt = deps.clock.now();
  const relay = relayOf(exchange, chunks, nothing());
  const bytes = await decodeWhole(Buffer.concat(chunks), exchange.codings, deps.maxBytes);
  if (bytes === 'too-large') return other('too-large', relay);
  if (bytes === 'broken') return other('unexpected', relay);
  return fetched(readReply(bytes, call.method, call.id), receivedAt, relay);
}

/** A later page is not relayed: it may be read whole for its error code, whatever its status (law 10). */
async function fromRefusal(deps: PageSourceDeps, exchange: Exchange): Promise<Fetched> {
  const read = await fromJson(deps, exchange);
  return read.kind === 'page' ? other('status', read.response) : { ...read, reason: 'status' };
}

function isLaterPage(options: FetchOptions): boolean {
  return options.interim === undefined;
}

/** All looks at an event that has not ended cost at most so many bytes, and so many times what has come. */
const FREE_LOOK_BYTES = 1_048_576;
const LOOKS = 8;

/** Reads up to the answer. The rest of the stream, if any, is left to whoever relays it. */
async function fromEvents(deps: PageSourceDeps, exchange: Exchange): Promise<Fetched> {
  const { call, options } = exchange;
  const stream = openTap(deps, exchange);
  const held = createHeld(exchange);
  let lookedAtBytes = 0;
  for (let next = await stream.chunks.next(); next.done !== true; next = await stream.chunks.next()) {
    const { raw, text, events } = next.value;
    if (text === undefined) return other('unexpected', held.relayUnread(raw, stream));
    let sentUpTo = 0;
    for (const [i, { data, end }] of events.entries()) {
      const reply = readReply(data, call.method, call.id);
      if (reply.kind !== 'no-answer') {
        const receivedAt = deps.clock.now();
        held.add(raw, text.subarray(sentUpTo));
        for (const later of events.slice(i + 1)) await announce(later.data, options, 'after');
        return fetched(reply, receivedAt, held.relay(stream));
      }
      await announce(data, options, 'before');
      await held.sendInterim(text.subarray(sentUpTo, end));
      if (held.hasBegun()) sentUpTo = end;
    }
    held.add(raw, text.subarray(sentUpTo));
    // Some servers never close the last event with a blank line: their clients read line by line.
    if (stream.scanner.pendingEnd() === 0x7d && lookedAtBytes <= FREE_LOOK_BYTES + LOOKS * held.size()) {
      const unfinished = stream.scanner.pending() ?? Buffer.alloc(0);
      lookedAtBytes += unfinished.length;
      const reply = readReply(unfinished, call.method, call.id);
      if (reply.kind !== 'no-answer') {
        return fetched(reply, deps.clock.now(), held.relay(stream));
      }
    }
    if (held.size() > deps.maxBytes) return other('too-large', held.relay(stream));
  }
  return other('unexpected', held.relay(stream));
}

function fetched(reply: ReadReply, receivedAt: number, response: RelayResponse): Fetched {
  if (reply.kind === 'page') return { kind: 'page', received: { page: reply.page, receivedAt }, response };
  if (reply.kind === 'no-answer') return other('unexpected', response);
  return other(reply.reason, response, reply.errorCode);
}

/** Has the changes in one message take effect. */
async function announce(data: Buffer, options: FetchOptions, place: 'before' | 'after'): Promise<void> {
  for (const change of changesIn(data)) await options.onChange(change, place);
}

interface Held {
  add(raw: Buffer, text: Buffer): void;
  /** Sends on all that is held, and `text` behind it, if anybody is there to read it. */
  sendInterim(text: Buffer): Promise<void>;
  hasBegun(): boolean;
  size(): number;
  /** All that is held, and what of the stream is still to come. */
  relay(stream: Tap): RelayResponse;
  /** The same behind a chunk that cannot be unpacked. */
  relayUnread(raw: Buffer, stream: Tap): RelayResponse;
}

/**
 * What was read of an event stream and not sent on. Until the client's own answer has begun it is kept as it
 * came; from then on unpacked, since an event may end in the middle of a packed chunk.
 */
function createHeld(exchange: Exchange): Held {
  const { options, response } = exchange;
  const { interim } = options;
  const unpacked = filterHeaders(
    exchange.headers,
    (name) => name !== 'content-encoding' && name !== 'content-length',
  );
  let raws: Buffer[] = [];
  let texts: Buffer[] = [];
  let size = 0;
  const hasBegun = () => interim?.hasBegun() === true;
  function relay(stream: Tap): RelayResponse {
    if (!hasBegun()) return relayOf(exchange, raws, tapped(exchange, stream, 'raw'));
    return { ...relayOf(exchange, texts, tapped(exchange, stream, 'text')), headers: unpacked };
  }
  return {
    add(raw, text) {
      if (!hasBegun()) raws.push(raw);
      texts.push(text);
      size += text.length;
    },
    async sendInterim(text) {
      if (interim === undefined) return;
      interim.begin(response.status, unpacked);
      raws = [];
      const before = texts;
      texts = [];
      size = 0;
      for (const part of [...before, text]) await interim.write(part);
    },
    hasBegun,
    size: () => size,
    relay,
    relayUnread(raw, stream) {
      if (hasBegun()) throw new Error(UNPACKING_FAILED);
      raws.push(raw);
      return relay(stream);
    },
  };
}

const UNPACKING_FAILED = 'a packed event stream cannot be unpacked any further';

function openTap(deps: PageSourceDeps, exchange: Exchange): Tap {
  const isReply = exchange.response.status === 200;
  return tap(exchange.response.body, {
    codings: exchange.codings,
    maxDataBytes: isReply ? deps.maxBytes : MAX_NOTIFICATION_BYTES,
  });
}

/** The chunks still to come, in one form, each given on once the changes in it have taken effect. */
async function* tapped(exchange: Exchange, stream: Tap, form: 'raw' | 'text'): AsyncIterable<Buffer> {
  for await (const chunk of stream.chunks) {
    for (const { data } of chunk.events) await announce(data, exchange.options, 'after');
    const bytes = chunk[form];
    if (bytes === undefined) throw new Error(UNPACKING_FAILED);
    yield bytes;
  }
}

function relayOf(exchange: Exchange, held: readonly Buffer[], rest: AsyncIterable<Buffer>): RelayResponse {
  const { response, headers } = exchange;
  return {
    status: response.status,
    statusText: response.statusText,
    headers,
    held,
    rest,
    discard: () => response.body.destroy(),
  };
}

function other(reason: NotStoredReason, response: RelayResponse, errorCode?: number): Fetched {
  return { kind: 'other', reason, response, ...(errorCode !== undefined && { errorCode }) };
}

async function* remainder(iterator: AsyncIterator<Buffer>): AsyncIterable<Buffer> {
  for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) yield next.value;
}

async function* nothing(): AsyncIterable<Buffer> {
  // An answer that was read to its end has no more to come.
}
