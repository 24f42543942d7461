/**
 * Answers of an upstream cut after every byte, over a running gateway: the client sees that they are not whole, nothing
 * of them is stored, and no socket is left (laws 4, 10 and 23).
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rpcRequest } from '../support/client.js';
import { type RunningGateway, startGateway } from '../support/gateway.js';
import { wireText } from '../support/raw.js';
import { parseJson } from './reference.js';
import { countInputs, TIMEOUT_MS } from './runs.js';
import { expectSame } from './same.js';
import {
  exchange,
  expectClosed,
  responsesIn,
  type Say,
  socketsOpen,
  startWireUpstream,
  type WireUpstream,
} from './wire.js';

let upstream: WireUpstream;
let gateway: RunningGateway;
let socketsBefore: number;

beforeAll(async () => {
  socketsBefore = socketsOpen();
  upstream = await startWireUpstream(() => ({ bytes: Buffer.alloc(0), after: 'reset' }));
  gateway = await startGateway({ upstreams: { u: upstream.url }, env: { LOG_LEVEL: 'silent' } });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
  await expectClosed(socketsBefore);
});

const HINTS = '"ttlMs":60000,"cacheScope":"public"';
const METHODS = {
  'tools/list': { result: `{"tools":[{"name":"é"}],${HINTS}}`, params: {} },
  'resources/read': { result: `{"contents":[{"uri":"x:y"}],${HINTS}}`, params: { uri: 'x:y' } },
} as const;
type Method = keyof typeof METHODS;

const chunked = (...parts: readonly string[]) =>
  `${parts.map((part) => `${Buffer.byteLength(part).toString(16)}\r\n${part}\r\n`).join('')}0\r\n\r\n`;
const head = (type: string, framing: string) => `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\n${framing}\r\n`;
const JSON_HEAD = (framing: string) => head('application/json', framing);
const EVENT_HEAD = (framing: string) => head('text/event-stream', framing);

interface Form {
  /** The whole answer with a message in it. */
  readonly wire: (message: string) => string;
  /** Without a length only the end of the connection ends the body: a cut cannot be told from an end. */
  readonly isFramed: boolean;
  /** The piece of the wire that, once it has come, lets an event be known as a whole; absent for JSON. */
  readonly knownAt?: string;
}

const EVENTS = (message: string, eol: string) => [
  `: ping${eol}${eol}event: message${eol}data: `,
  `${message}${eol}`,
  eol,
];

const FORMS: Readonly<Record<string, Form>> = {
  'JSON with a length': {
    wire: (m) => `${JSON_HEAD(`Content-Length: ${Buffer.byteLength(m)}\r\n`)}${m}`,
    isFramed: true,
  },
  'JSON in chunks': {
    wire: (m) => `${JSON_HEAD('Transfer-Encoding: chunked\r\n')}${chunked(m.slice(0, 30), m.slice(30))}`,
    isFramed: true,
  },
  'JSON up to the end': { wire: (m) => `${JSON_HEAD('')}${m}`, isFramed: false },
  'events in chunks': {
    wire: (m) => `${EVENT_HEAD('Transfer-Encoding: chunked\r\n')}${chunked(...EVENTS(m, '\n'))}`,
    isFramed: true,
    knownAt: '}}\n',
  },
  'events up to the end': {
    wire: (m) => `${EVENT_HEAD('')}${EVENTS(m, '\r\n').join('')}`,
    isFramed: false,
    knownAt: '}}\r',
  },
};

/** Each request of its own kind has a key of its own: nothing is known of it. */
let count = 0;

interface Request {
  readonly wire: Buffer;
  readonly message: string;
}

function newRequest(method: Method): Request {
  count += 1;
  const { headers, body } = rpcRequest(method, {
    id: count,
    params: METHODS[method].params,
    meta: { 'x/n': count },
  });
  const message = `{"jsonrpc":"2.0","id":${count},"result":${METHODS[method].result}}`;
  return {
    wire: Buffer.from(wireText(gateway.endpoint('u'), { ...headers, connection: 'close' }, body)),
    message,
  };
}

/** What the client gets: one answer, whole or not. */
async function ask(request: Request) {
  const responses = responsesIn(await exchange(gateway.url, request.wire));
  const [response] = responses;
  if (responses.length !== 1 || response === undefined) throw new Error(`${responses.length} answers`);
  return response;
}

/** The JSON of an answer, whichever form it has; undefined where none has come as a whole. */
function messageOf(body: Buffer): unknown {
  const event = /^data: (.*)\r?\n/m.exec(body.toString('utf8'))?.[1];
  return parseJson(event === undefined ? body : Buffer.from(event));
}

function resultOf(value: unknown): object | undefined {
  const result = typeof value === 'object' && value !== null && 'result' in value ? value.result : undefined;
  return typeof result === 'object' && result !== null ? result : undefined;
}

/** The request again, before an upstream that is well: its answer is right, and was asked for where it had to be. */
async function expectWell(request: Request, mayBeStored: boolean): Promise<void> {
  const before = upstream.requests.length;
  const whole = FORMS['JSON with a length']?.wire(request.message) ?? '';
  upstream.say = () => ({ bytes: Buffer.from(whole), after: 'end' });
  const { status, body, isWhole } = await ask(request);
  const wanted = resultOf(JSON.parse(request.message)) ?? {};
  expectSame([status, isWhole], [200, true]);
  const told = parseJson(body);
  expectSame({ ...resultOf(told), ttlMs: 60_000 }, { ...wanted });
  if (!mayBeStored && upstream.requests.length === before) throw new Error('it was stored');
}

const CASES = Object.keys(FORMS).flatMap((form) =>
  (
    [
      ['tools/list', 'end'],
      ['tools/list', 'reset'],
      ['resources/read', 'end'],
    ] as const
  ).map(([method, after]) => ({ form, method, after })),
);

describe('an answer cut after every byte', { timeout: TIMEOUT_MS }, () => {
  test.each(CASES)('of $form, to $method, and then $after', async ({ form: name, method, after }) => {
    const form = FORMS[name];
    if (form === undefined) throw new Error('no such form');
    const length = Buffer.byteLength(form.wire(newRequest(method).message));
    for (let cut = 0; cut <= length; cut += 1) {
      countInputs();
      const request = newRequest(method);
      const wire = Buffer.from(form.wire(request.message));
      const bytes = wire.subarray(0, cut);
      upstream.say = (): Say => ({ bytes, after });
      const { status, body, isWhole } = await ask(request);
      const known =
        form.knownAt === undefined ? wire.length : wire.indexOf(form.knownAt) + form.knownAt.length;
      const isKnown = cut >= known || (!form.isFramed && form.knownAt === undefined && cut === wire.length);
      const found = messageOf(body);
      if (resultOf(found) !== undefined && isWhole) {
        if (!isKnown) throw new Error(`a whole answer after ${cut} bytes: ${body}`);
        expectSame({ ...resultOf(found), ttlMs: 60_000 }, { ...resultOf(JSON.parse(request.message)) });
      } else if (isWhole && status !== 502 && form.isFramed) {
        throw new Error(`${status} after ${cut} bytes: ${body}`);
      }
      await expectWell(request, isKnown);
    }
    await expectClosed(socketsBefore + 2);
  });
});

describe('a later page cut after every byte', { timeout: TIMEOUT_MS }, () => {
  test.each(['JSON with a length', 'events in chunks'])(
    '%s: the first page is relayed, and nothing stored',
    async (name) => {
      const form = FORMS[name];
      const wireOf = (message: string) => form?.wire(message) ?? '';
      const first = (id: number) =>
        `{"jsonrpc":"2.0","id":${id},"result":{"tools":[1],${HINTS},"nextCursor":"c"}}`;
      const second = (request: string) =>
        `{"jsonrpc":"2.0","id":${/"id":("[^"]*")/.exec(request)?.[1]},"result":{"tools":[2],${HINTS}}}`;
      const length = wireOf(second(`"id":"mcp-cache-gateway-${'0'.repeat(36)}"`)).length;
      for (let cut = 0; cut < length; cut += 1) {
        countInputs();
        const request = newRequest('tools/list');
        const id = count;
        let isKnown = false;
        upstream.say = (asked) => {
          if (!asked.includes('"cursor":"c"')) return { bytes: Buffer.from(wireOf(first(id))), after: 'end' };
          const wire = Buffer.from(wireOf(second(asked)));
          isKnown = form?.knownAt !== undefined && cut >= wire.indexOf(form.knownAt) + form.knownAt.length;
          return { bytes: wire.subarray(0, cut), after: 'reset' };
        };
        const { body } = await ask(request);
        const found = resultOf(messageOf(body));
        expect(found).toMatchObject(isKnown ? { tools: [1, 2] } : { tools: [1], nextCursor: 'c' });
        if (!isKnown) await expectWell(request, false);
      }
      await expectClosed(socketsBefore + 2);
    },
  );
});
