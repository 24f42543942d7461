/**
 * The gateway's own code from the request to the store and back, without a socket: what serves, classifies, fetches,
 * reads, keeps and splices is the real thing; the transport alone is the origin's wire.
 */
import { setMaxListeners } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable, Writable } from 'node:stream';
import { createCache } from '../../src/cache/compose.js';
import { createEndedSessions } from '../../src/cache/ended-sessions.js';
import { createMemoryStore } from '../../src/cache/memory-store.js';
import { createVerified } from '../../src/cache/verified.js';
import { changesIn } from '../../src/core/change.js';
import { GatewayError } from '../../src/errors.js';
import { createAtOnce } from '../../src/http/at-once.js';
import { createServe } from '../../src/http/serve.js';
import type { ServeDeps, UpstreamRoute } from '../../src/http/task.js';
import { createLogger } from '../../src/telemetry.js';
import { createPageSource } from '../../src/upstream/page-source.js';
import { type Transport, toGatewayError } from '../../src/upstream/transport.js';
import type { TestClock } from '../support/clock.js';
import { notification, type Origin, type Wire } from './origin.js';
import {
  type Notice,
  type Settings,
  TIMEOUT_MS,
  UPSTREAMS,
  type UpstreamName,
  VERIFIED_TTL_MS,
} from './program.js';

/** A request of a client on its way into a gateway. */
export interface Sent {
  readonly upstream: UpstreamName;
  readonly query: string;
  readonly headers: readonly string[];
  readonly body: string;
  /** Requests over one connection have the same. */
  readonly connection: string;
  /** Told of each part of the answer as it comes. */
  readonly onText: (text: string) => void;
}

/** What a client got. */
export interface Got {
  readonly status: number;
  readonly headers: readonly string[];
  readonly complete: boolean;
}

/** A gateway before an origin. */
export interface Rig {
  /** Sends a request; `leave` ends it on the client's side. */
  send(request: Sent, onEnd: (got: Got) => void): { leave(): void };
  /** A change that the watch tells of; resolved when it has taken effect. */
  change(upstream: UpstreamName, notice: Notice): Promise<void>;
  flush(upstream: UpstreamName): Promise<void>;
  /** Resolves when everything that follows from what was done has happened. */
  settle(): Promise<void>;
  close(): Promise<void>;
}

export interface RigDeps {
  readonly origin: Origin;
  readonly settings: Settings;
  readonly clock: TestClock;
  /** Told of each entry that went for room. */
  readonly onEvict: () => void;
}

const SILENT = createLogger('silent');

export function createRig({ origin, settings, clock, onEvict }: RigDeps): Rig {
  const store = createMemoryStore({ maxBytes: settings.cacheBytes, maxEntryBytes: 100_000, onEvict });
  const upstreams = UPSTREAMS.map((name) => ({ name, url: `http://${name}.example/mcp` }));
  const { listCache, changes } = createCache({
    store,
    clock,
    random: () => 0.5,
    upstreams,
    limits: { maxPages: settings.maxPages, maxItems: settings.maxItems, maxBytes: 100_000 },
    staleIfErrorMs: settings.staleIfErrorMs,
    pageSize: settings.pageSize,
    flushedWith: (upstream) => (settings.flushesAll ? UPSTREAMS : [upstream]),
    events: { flushed() {}, walked() {}, walkEnded() {}, scopeMissing() {} },
  });
  const transport = createWire(origin);
  const never = new AbortController().signal;
  setMaxListeners(0, never);
  const { defaultTtlMs, minTtlMs, maxTtlMs, defaultScope, scope } = settings;
  const routes = new Map<string, UpstreamRoute>(
    upstreams.map(({ name, url }) => [
      name,
      {
        ...{
          name,
          url,
          origin: `http://${name}.example`,
          path: '/mcp',
          timeoutMs: TIMEOUT_MS,
          names: undefined,
        },
        injected: { authorization: undefined, headers: {} },
        policy: { defaultTtlMs, minTtlMs, maxTtlMs, defaultScope, scope },
      },
    ]),
  );
  const deps: ServeDeps = {
    ...{ listCache, changes, transport, clock, log: SILENT, lines: SILENT, tracer: undefined },
    endedSessions: createEndedSessions(),
    verified: createVerified(clock, { sharing: settings.sharing, ttlMs: VERIFIED_TTL_MS }),
    pageSource: createPageSource({ transport, clock, maxBytes: 100_000 }),
    ending: { begun: never, timeUp: never },
    onEnd() {},
    onFetched() {},
    authHeaders: ['authorization'],
    varyHeaders: ['x-vary'],
  };
  const atOnce = createAtOnce({ ...deps, track: () => () => {} });
  const serve = createServe(deps, atOnce);
  const connections = new Map<string, object>();

  function emptied(upstream: UpstreamName): void {
    const { entries } = store.inspect(upstream);
    if (entries !== 0) throw new Error(`law 22: ${entries} entries are left after a flush`);
  }

  return {
    send({ upstream, query, headers, body, connection, onText }, onEnd) {
      const socket = connections.get(connection) ?? {};
      connections.set(connection, socket);
      const bytes = Buffer.from(body);
      const asked = { method: 'POST', url: `/mcp/${upstream}${query}`, rawHeaders: headers, socket };
      const req = Object.assign(Readable.from([bytes]), asked, {
        headers: { 'content-length': String(bytes.length) },
      });
      const res = new MemoryResponse(onText);
      res.once('close', () =>
        onEnd({ status: res.statusCode, headers: res.fields, complete: res.writableFinished }),
      );
      const route = routes.get(upstream);
      if (route === undefined) throw new Error('no such upstream');
      // Of both no more is used than these have.
      const pair = { req: req as unknown as IncomingMessage, res: res as unknown as ServerResponse };
      atOnce.front(pair.req, pair.res, () => void serve.mcp({ ...pair, body: bytes, upstream: route }));
      return { leave: () => void res.destroy() };
    },
    async change(upstream, notice) {
      for (const change of changesIn(Buffer.from(notification(notice)))) {
        await changes.apply(upstream, change, 'watch');
        if (change.kind === 'list-changed') emptied(upstream);
      }
    },
    async flush(upstream) {
      await changes.flush(upstream, 'operator');
      emptied(upstream);
    },
    // All that follows comes in microtasks and ticks; a turn of the loop comes after all of them.
    async settle() {
      for (let i = 0; i < 3; i += 1) await new Promise((resolve) => setImmediate(resolve));
    },
    async close() {
      if (store.bytes > settings.cacheBytes) throw new Error(`case C21: ${store.bytes} bytes are kept`);
    },
  };
}

/** As much of a response as the gateway writes to. */
class MemoryResponse extends Writable {
  statusCode = 0;
  headersSent = false;
  fields: readonly string[] = [];
  shouldKeepAlive = true;
  readonly #onText: (text: string) => void;

  constructor(onText: (text: string) => void) {
    super();
    this.#onText = onText;
    this.on('error', () => {});
  }

  writeHead(status: number, reason: string | readonly string[], fields?: readonly string[]): this {
    if (this.headersSent) throw new Error('the head was written twice');
    this.statusCode = status;
    this.headersSent = true;
    this.fields = typeof reason === 'string' ? (fields ?? []) : reason;
    return this;
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    if (chunk.length > 0) this.#onText(chunk.toString('utf8'));
    done();
  }
}

function createWire(origin: Origin): Transport {
  return {
    send({ path, headers, body, origin: address }, { signal }) {
      return new Promise((resolve, reject) => {
        const stream = new Readable({ read() {} });
        stream.on('error', () => {});
        let headed = false;
        const wire: Wire = {
          head(status, type) {
            headed = true;
            resolve({
              status,
              statusText: '',
              headers: ['content-type', type, 'x-request', 'r'],
              body: stream,
            });
          },
          write: (text) => void stream.push(text),
          end: () => void stream.push(null),
          cut() {
            if (headed) stream.destroy(new Error('cut'));
            else reject(toGatewayError(new Error('reset'), signal));
          },
        };
        if (signal.aborted) {
          reject(toGatewayError(signal.reason, signal));
          return;
        }
        const upstream = UPSTREAMS.find((name) => address === `http://${name}.example`) ?? 'u';
        const gone = origin.receive({ upstream, path, headers, body: body?.toString('utf8') ?? '' }, wire);
        const onAbort = () => {
          gone(signal.reason instanceof GatewayError ? 'timeout' : 'left');
          stream.destroy(new Error('aborted'));
          reject(toGatewayError(signal.reason, signal));
        };
        signal.addEventListener('abort', onAbort, { once: true });
        stream.once('close', () => {
          signal.removeEventListener('abort', onAbort);
          gone('left');
        });
      });
    },
    close: async () => {},
  };
}
