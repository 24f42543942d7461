/**
 * The origin behind the gateway: answers as its plans say, holds back what it is told to, and stamps every page, so that
 * each item in any answer tells when and for whom it was sent. Knows no sockets: it writes to a wire.
 */
import { valuesOf } from '../../src/core/headers.js';
import type { Asked, Exchange, Flush, Journal, Moment, Page } from './journal.js';
import { GOOD, type Notice, type Plan, type Settings, UPSTREAMS, type UpstreamName } from './program.js';

/** Where an answer is written to. */
export interface Wire {
  head(status: number, contentType: string): void;
  write(text: string): void;
  end(): void;
  /** Breaks the connection. */
  cut(): void;
}

export interface Received {
  readonly upstream: UpstreamName;
  /** With its query. */
  readonly path: string;
  readonly headers: readonly string[];
  readonly body: string;
}

export interface Origin {
  /** Takes a request; the function given back is to be called when the other side ends it. */
  receive(received: Received, wire: Wire): (why: 'timeout' | 'left') => void;
  /** Lets go of one exchange that is held; false where there is none. */
  release(which: number): boolean;
  readonly held: number;
}

const ITEMS_FIELD: Readonly<Record<string, string>> = {
  'tools/list': 'tools',
  'resources/list': 'resources',
  'resources/read': 'contents',
  'server/discover': 'supportedVersions',
};

const NOTIFICATION: Readonly<Record<Notice, object>> = {
  tools: { method: 'notifications/tools/list_changed' },
  prompts: { method: 'notifications/prompts/list_changed' },
  resources: { method: 'notifications/resources/list_changed' },
  'updated-a': { method: 'notifications/resources/updated', params: { uri: 'file:///a' } },
  'updated-b': { method: 'notifications/resources/updated', params: { uri: 'file:///b' } },
  other: { method: 'notifications/message', params: { level: 'info', data: 'list_changed' } },
};

export function notification(notice: Notice): string {
  return JSON.stringify({ jsonrpc: '2.0', ...NOTIFICATION[notice] });
}

/** What a change makes untrue (law 18); undefined where nothing. */
export function flushOf(
  upstream: UpstreamName,
  notice: Notice,
  settings: Settings,
): Pick<Flush, 'upstreams' | 'uri' | 'context'> | undefined {
  if (notice === 'other') return undefined;
  if (notice.startsWith('updated'))
    return { upstreams: [upstream], uri: `file:///${notice.slice(-1)}`, context: undefined };
  return { upstreams: settings.flushesAll ? UPSTREAMS : [upstream], uri: undefined, context: undefined };
}

/** What law 3 and law 8 say of a request, read off what is sent. */
export function askedOf({ upstream, path, headers, body }: Received): Asked {
  const { id, method, params = {} } = JSON.parse(body);
  const { _meta: meta = {}, cursor, uri } = params;
  const field = (name: string) => valuesOf(headers, name).join();
  const version = field('mcp-protocol-version');
  const legacy = version < '2026-07-28';
  const session = field('mcp-session-id');
  const query = path.split('?')[1] ?? '';
  const capabilities = meta['io.modelcontextprotocol/clientCapabilities'];
  const told = [
    upstream,
    query,
    method,
    version,
    uri,
    capabilities,
    field('x-vary'),
    legacy && session !== '',
  ];
  const credentials = field('authorization');
  return {
    upstream,
    key: JSON.stringify(told),
    context: JSON.stringify([credentials, legacy ? session : '']),
    credentials,
    legacy,
    id,
    method,
    uri,
    cursor,
  };
}

interface Pending {
  readonly exchange: Exchange;
  readonly plan: Plan;
  readonly wire: Wire;
  readonly of: Moment | undefined;
}

export function createOrigin(journal: Journal, settings: Settings, plans: readonly Plan[]): Origin {
  const held: Pending[] = [];
  let asked = 0;

  function changed(upstream: UpstreamName, notice: Notice, certain: boolean): void {
    const flush = flushOf(upstream, notice, settings);
    if (flush === undefined) return;
    journal.flushes.push({ ...journal.moment(), ...flush, certain });
    for (const name of flush.upstreams) journal.void(name);
  }

  function pageOf({ exchange, plan, of }: Pending): { readonly page: Page; readonly message: string } {
    const { asked } = exchange;
    const serial = journal.pages.length;
    const itemsField = ITEMS_FIELD[asked.method] ?? 'items';
    const isPaged = asked.method.endsWith('/list');
    const next = isPaged ? nextCursor(plan.next, serial, asked.cursor) : undefined;
    const items = Array.from({ length: plan.items }, (_, n) => itemOf(serial, n, asked));
    const lead = `"resultType":"complete","stamp":${serial},"z" : {"b":1.10,"a":9007199254740993},`;
    const capabilities = asked.method === 'server/discover' ? ',"capabilities":{"x":1E2}' : '';
    const hints =
      (plan.ttlMs === undefined ? '' : `,"ttlMs":${plan.ttlMs}`) +
      (plan.scope === undefined ? '' : `,"cacheScope":${plan.scope}`);
    const cursor =
      next !== undefined
        ? `,"nextCursor":${JSON.stringify(next)}`
        : plan.next === 'null'
          ? ',"nextCursor":null'
          : '';
    const result = `{${lead}"${itemsField}":[${items.join(',')}]${capabilities}${hints}${isPaged ? cursor : ''}}`;
    const received = journal.moment();
    const page: Page = {
      ...{ serial, asked, lead, itemsField, items, next, received },
      of: of ?? received,
      ttlMs: plan.ttlMs,
      scope: plan.scope,
    };
    journal.pages.push(page);
    return { page, message: `{"jsonrpc":"2.0","id":${JSON.stringify(asked.id)},"result":${result}}` };
  }

  /** Sends the whole answer. */
  function answer(pending: Pending): void {
    const { exchange, plan, wire } = pending;
    if (exchange.gone) return;
    const { asked } = exchange;
    const id = JSON.stringify(asked.id);
    const error = (code: number) => `{"jsonrpc":"2.0","id":${id},"error":{"code":${code},"message":"né"}}`;
    const isUnknownCursor = asked.cursor?.startsWith('bogus') === true;
    const kind = isUnknownCursor ? 'invalid-params' : plan.kind;
    if (!['page', 'failed', 'reset', 'cut'].includes(kind)) journal.troubled.add(asked.key);
    switch (kind) {
      case 'page':
        sendPage(pending);
        return;
      case 'rpc-error':
        send(pending, 200, error(-32603));
        return;
      case 'invalid-params':
        send(pending, 200, error(-32602));
        return;
      case 'input-required':
        send(pending, 200, `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"input_required"}}`);
        return;
      case 'unexpected':
        send(pending, 200, `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete"}}`);
        return;
      case 'refused':
        send(pending, 401, error(-32001));
        return;
      case 'not-found':
        send(pending, 404, error(-32602));
        return;
      case 'failed':
        failed(exchange);
        send(pending, 503, error(-32000));
        return;
      case 'reset':
      case 'cut':
        failed(exchange);
        if (kind === 'cut') {
          head(pending, 200, 'application/json');
          wire.write('{"jsonrpc":"2.0",');
        }
        exchange.ended = journal.moment();
        wire.cut();
        return;
      default:
        kind satisfies never;
    }
  }

  function failed(exchange: Exchange): void {
    exchange.failed = true;
    const { now } = journal.moment();
    journal.failures.push({ key: exchange.asked.key, at: now, until: now + 30_000 });
  }

  function head({ exchange, wire }: Pending, status: number, type: string): void {
    if (exchange.headed !== undefined) return;
    exchange.headed = journal.moment();
    const { upstream, credentials } = exchange.asked;
    if (status === 200) journal.accepted.set(`${upstream} ${credentials}`, exchange.headed.now);
    if (status === 401) journal.accepted.delete(`${upstream} ${credentials}`);
    wire.head(status, type);
  }

  function send(pending: Pending, status: number, message: string): void {
    const { exchange, plan, wire } = pending;
    const { asked } = exchange;
    const asEvents = status === 200 && isStream(pending);
    head(pending, status, asEvents ? 'text/event-stream' : 'application/json');
    exchange.sent = message;
    exchange.ended = journal.moment();
    if (status === 401) {
      const moment = journal.moment();
      journal.flushes.push({
        ...moment,
        upstreams: [asked.upstream],
        uri: undefined,
        context: asked.context,
        certain: true,
      });
    }
    if (!exchange.failed) journal.void(asked.upstream, exchange.page === undefined ? undefined : asked.key);
    if (!asEvents) {
      wire.write(message.slice(0, 20));
      wire.write(message.slice(20));
      wire.end();
      return;
    }
    const event = `: é\r\nevent: message\r\ndata: ${message}\r\n\r\n`;
    const notice = plan.notice === undefined ? '' : `data: ${notification(plan.notice)}\n\n`;
    if (plan.notice !== undefined && plan.place !== 'before')
      changed(asked.upstream, plan.notice, plan.place === 'after');
    wire.write(plan.place === 'after' ? event + notice : event);
    if (plan.place === 'long-after') wire.write(notice);
    wire.end();
  }

  function sendPage(pending: Pending): void {
    const { exchange, plan } = pending;
    if (isStream(pending) && plan.notice !== undefined && plan.place === 'before') {
      head(pending, 200, 'text/event-stream');
      changed(exchange.asked.upstream, plan.notice, true);
      pending.wire.write(`data: ${notification(plan.notice)}\n\n`);
    }
    const { page, message } = pageOf(
      plan.notice !== undefined && plan.place === 'before' ? { ...pending, of: undefined } : pending,
    );
    exchange.page = page;
    send(pending, 200, message);
  }

  function isStream({ plan, exchange }: Pending): boolean {
    return plan.as === 'events' || exchange.asked.method === 'tools/call';
  }

  return {
    receive(received, wire) {
      const arrived = journal.moment();
      const exchange: Exchange = {
        asked: askedOf(received),
        arrived,
        ...{
          headed: undefined,
          ended: undefined,
          sent: undefined,
          page: undefined,
          failed: false,
          gone: false,
        },
      };
      journal.exchanges.push(exchange);
      const plan = planFor(received, exchange, () => {
        asked += 1;
        return plans[asked - 1] ?? GOOD;
      });
      const pending: Pending = { exchange, plan, wire, of: plan.of === 'arrival' ? arrived : undefined };
      if (plan.holds === 'nothing') {
        answer(pending);
      } else {
        if (plan.holds === 'body' && plan.kind === 'page')
          head(pending, 200, isStream(pending) ? 'text/event-stream' : 'application/json');
        held.push(pending);
      }
      return (why) => {
        if (exchange.ended !== undefined) return;
        exchange.gone = true;
        exchange.ended = journal.moment();
        if (why === 'timeout') failed(exchange);
        const at = held.indexOf(pending);
        if (at !== -1) held.splice(at, 1);
      };
    },
    release(which) {
      const [pending] = held.splice(which % Math.max(1, held.length), 1);
      if (pending !== undefined) answer(pending);
      return pending !== undefined;
    },
    get held() {
      return held.length;
    },
  };
}

/** A call is answered at once, with the notice that it asks for. */
function planFor(received: Received, { asked }: Exchange, next: () => Plan): Plan {
  if (asked.method !== 'tools/call') return next();
  const { notice } = JSON.parse(received.body).params.arguments;
  return { ...GOOD, as: 'events', notice, place: 'before' };
}

/** A cursor names the page that gave it. */
function nextCursor(kind: Plan['next'], serial: number, asked: string | undefined): string | undefined {
  if (kind === 'none' || kind === 'null') return undefined;
  return kind === 'same' && asked !== undefined ? asked : `c${serial} é"\\`;
}

function itemOf(serial: number, n: number, { method, uri }: Asked): string {
  const named = method === 'resources/read' ? `"uri":${JSON.stringify(uri)},` : '';
  return `{ "s":${serial},"n":${n},${named}"x":[1.0,-0,1e400,9007199254740993],"é":"\\u00e9 ]},","a" :{}}`;
}
