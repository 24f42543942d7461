/** Which era an upstream speaks is told by the body of its refusal: law 21, case C56; basic/versioning. */
import { describe, expect, test } from 'vitest';
import { useClosers } from '../support/closers.js';
import { until } from '../support/gate.js';
import { heldWatch, type SeenRequest, sendJson, startUpstream } from '../support/upstream.js';
import { startWatch } from '../support/watch-driver.js';

const closing = useClosers();

interface Refusal {
  readonly status: number;
  readonly body?: string | object;
  readonly type?: string;
}

const error = (code: number, data?: object) => ({
  jsonrpc: '2.0',
  id: null,
  error: { code, message: 'no', data },
});

/** An upstream that answers every `subscriptions/listen` with this, and an `initialize` with status 405. */
async function watching(refusal: Refusal) {
  const upstream = closing(await startUpstream((_request, res) => void res.writeHead(500).end()));
  const { status, body = '', type = 'application/json' } = refusal;
  upstream.respondToWatch = (request, res) => {
    if (request.json?.method === 'initialize') res.writeHead(405, { allow: 'GET' }).end();
    else sendJson(res, body, status, { 'content-type': type });
  };
  const driver = closing(startWatch(upstream));
  await driver.asleep();
  return { upstream, ...driver };
}

const methodsOf = (requests: readonly SeenRequest[]) => requests.map(({ json }) => json?.method);

describe('a modern upstream never sees a message of the older era', () => {
  const REFUSALS: [string, Refusal, 'waiting' | 'refused'][] = [
    ['404 and method not found', { status: 404, body: error(-32601) }, 'refused'],
    ['400 and header mismatch', { status: 400, body: error(-32020) }, 'refused'],
    ['400 and a missing capability', { status: 400, body: error(-32021) }, 'refused'],
    [
      '400 and a later version only',
      { status: 400, body: error(-32022, { supported: ['2027-01-01'] }) },
      'refused',
    ],
    [
      '400 and both eras',
      { status: 400, body: error(-32022, { supported: ['2027-01-01', '2025-11-25'] }) },
      'refused',
    ],
    ['400 and no word of versions', { status: 400, body: error(-32022) }, 'refused'],
    ['401', { status: 401, body: 'login first', type: 'text/plain' }, 'refused'],
    ['403', { status: 403 }, 'refused'],
    ['500', { status: 500, body: 'oops', type: 'text/html' }, 'waiting'],
    ['502', { status: 502 }, 'waiting'],
    ['429', { status: 429 }, 'waiting'],
  ];

  test.each(REFUSALS)('where it refuses with %s', async (_title, refusal, state) => {
    const { upstream, states, untilAwake } = await watching(refusal);
    expect(states).toEqual([state]);
    const waitedMs = await untilAwake();
    if (state === 'refused') expect(waitedMs).toBeGreaterThanOrEqual(120_000);
    else expect(waitedMs).toBeLessThanOrEqual(1_250);
    await until(() => upstream.watchRequests.length === 2);
    expect(methodsOf(upstream.watchRequests)).toEqual(['subscriptions/listen', 'subscriptions/listen']);
    expect(upstream.requests).toEqual([]);
  });
});

describe('an upstream of the older era is asked to initialize', () => {
  const REFUSALS: [string, Refusal][] = [
    ['400 and plain text', { status: 400, body: 'Bad Request', type: 'text/plain' }],
    ['400 and nothing', { status: 400, body: '' }],
    ['400 and an error of its own', { status: 400, body: error(-32000) }],
    ['400 and broken JSON', { status: 400, body: '{"jsonrpc":"2.0",' }],
    [
      '400 and its versions, none of them modern',
      { status: 400, body: error(-32022, { supported: ['2025-11-25'] }) },
    ],
    ['404 and plain text', { status: 404, body: 'Not Found', type: 'text/plain' }],
    ['405 and nothing', { status: 405 }],
    ['406 and nothing', { status: 406 }],
  ];

  test.each(REFUSALS)('where it refuses with %s', async (_title, refusal) => {
    const { upstream, states } = await watching(refusal);
    expect(methodsOf(upstream.watchRequests)).toEqual(['subscriptions/listen', 'initialize']);
    expect(states, 'and left alone for minutes where it refuses that too').toEqual(['refused']);
  });

  test('and is taken for a modern one once it has become one', async () => {
    const { upstream, untilAwake, connections } = await watching({ status: 400, body: '' });
    upstream.respondToWatch = heldWatch().respond;
    await untilAwake();
    await until(() => connections.length === 1);
    expect(methodsOf(upstream.watchRequests)).toEqual([
      'subscriptions/listen',
      'initialize',
      'subscriptions/listen',
    ]);
  });
});
