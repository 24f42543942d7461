/** What is unknown after a gap is not served, and a watch never hammers: design, law 21; cases C27, C54. */
import { describe, expect, test } from 'vitest';
import { flushes, watching } from '../support/flushes.js';
import { createGate, until } from '../support/gate.js';
import { heldLegacyWatch } from '../support/legacy-watch.js';
import { catalogue, namesOf } from '../support/lists.js';
import { type Scenario, useScenario } from '../support/scenario.js';
import {
  beginEvents,
  type HeldWatch,
  heldWatch,
  type Respond,
  sendAcknowledgement,
  sendEvent,
  sendJson,
} from '../support/upstream.js';

const start = useScenario();

const refuse: Respond = (_request, res) => sendJson(res, '{}', 503);
const connected = ({ gateway }: Scenario) => flushes(gateway, 'watch-connected');
/** Waits until the watch sleeps before its next attempt. */
const asleep = ({ gateway }: Scenario, times = 1) =>
  until(
    () => gateway.logs.filter(({ state }) => state === 'waiting' || state === 'refused').length === times,
  );
/** Listening waits this long for the watches at most: from then on nobody sleeps but they. */
const HEAD_START_MS = 250;

describe('a watch that comes to stand (law 21, C27)', () => {
  test('flushes what was cached before it did', async () => {
    let version = 'before';
    const scenario = await start(
      catalogue(() => version),
      { watch: refuse },
    );
    const { list, clock, upstream } = scenario;
    await list();
    expect((await list()).asked, 'without a watch the list lives by its ttlMs').toBe(0);
    const watch = heldWatch();
    const gate = createGate();
    upstream.respondToWatch = async (request, res) => {
      await gate.pass();
      await watch.respond(request, res);
    };
    await asleep(scenario);
    clock.advance(1_000);
    await gate.arrivals(1);
    version = 'after';
    gate.open();
    await watching(scenario.gateway);
    expect(namesOf(await list())).toEqual(['after']);
  });

  test.each([
    ['cut off', (watch: HeldWatch) => watch.cut()],
    [
      'ended with a result',
      ({ streams }: HeldWatch) => {
        for (const res of streams) {
          sendEvent(res, {
            jsonrpc: '2.0',
            id: 'mcp-cache-gateway-watch-1',
            result: { resultType: 'complete' },
          });
          res.end();
        }
      },
    ],
  ])('flushes again after it was %s', async (_title, end) => {
    let version = 'before';
    const watch = heldWatch();
    const scenario = await start(
      catalogue(() => version),
      { watch: watch.respond },
    );
    const { list, clock } = scenario;
    expect(connected(scenario)).toBe(1);
    await list();
    end(watch);
    await asleep(scenario);
    await until(() => watch.streams.size === 0);
    version = 'after';
    clock.advance(1_250);
    await until(() => connected(scenario) === 2);
    expect(namesOf(await list())).toEqual(['after']);
    watch.notify('notifications/tools/list_changed');
    await until(() => flushes(scenario.gateway, 'watch') === 1);
    expect((await list()).asked, 'the new stream is read').toBe(1);
  });

  test('flushes again after a gap of a legacy stream, within its own session', async () => {
    const watch = heldLegacyWatch();
    const scenario = await start(catalogue(), { watch: watch.respond });
    await watching(scenario.gateway);
    await scenario.list();
    watch.cut();
    await asleep(scenario);
    scenario.clock.advance(1_250);
    await until(() => connected(scenario) === 2);
    expect((await scenario.list()).asked).toBe(1);
    const { requests, watchRequests } = scenario.upstream;
    expect(requests.every((request) => request.headers['mcp-session-id'] === undefined)).toBe(true);
    expect(watchRequests.filter((request) => request.httpMethod === 'GET')).toHaveLength(2);
  });

  test('reads a notification that comes before the acknowledgement', async () => {
    const scenario = await start(catalogue(), { watch: refuse });
    const { list, clock, upstream, gateway } = scenario;
    await list();
    const gate = createGate();
    upstream.respondToWatch = async (request, res) => {
      beginEvents(res);
      sendEvent(res, { jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
      await gate.pass();
      sendAcknowledgement(res, request);
    };
    await asleep(scenario);
    clock.advance(1_000);
    await until(() => flushes(gateway, 'watch') === 1);
    expect((await list()).asked).toBe(1);
    gate.open();
    await watching(gateway);
    expect((await list()).asked).toBe(1);
  });

  test('but was promised nothing, leaves the list to its ttlMs', async () => {
    const scenario = await start(catalogue(), {
      watch: (request, res) => {
        beginEvents(res);
        sendAcknowledgement(res, request, { promptsListChanged: true });
      },
    });
    const { list, clock, gateway } = scenario;
    await watching(gateway);
    const told = gateway.logs.find((line) => line.msg === 'watch acknowledged');
    expect(told.watched).toEqual(['promptsListChanged']);
    await list();
    clock.advance(59_999);
    expect((await list()).asked).toBe(0);
    clock.advance(1);
    expect((await list()).asked).toBe(1);
  });
});

describe('a watch that does not come to stand (law 21, C54)', () => {
  test('is tried again after waits that double from 1 s to 30 s, for ever', async () => {
    const scenario = await start(catalogue(), { watch: refuse });
    const { clock, upstream } = scenario;
    await asleep(scenario);
    clock.advance(HEAD_START_MS);
    const seconds = [1 - HEAD_START_MS / 1_000, 2, 4, 8, 16, 30, 30, 30];
    for (const [i, wait] of seconds.entries()) {
      await asleep(scenario, i + 1);
      expect(upstream.watchRequests).toHaveLength(i + 1);
      clock.advance(wait * 1_000 - 1);
      expect(clock.sleepers, `it still waits just before ${wait} s`).toBe(1);
      clock.advance(1);
      await until(() => upstream.watchRequests.length === i + 2);
    }
  });

  test.each([
    ['404 and method not found', 404, { code: -32601, message: 'no' }],
    ['401', 401, { code: 1, message: 'no' }],
  ])(
    'refused with %s is asked again after minutes, and lists are cached meanwhile',
    async (_title, status, error) => {
      const scenario = await start(catalogue(), {
        watch: (request, res) => sendJson(res, { jsonrpc: '2.0', id: request.json.id, error }, status),
      });
      const { clock, list, upstream } = scenario;
      await asleep(scenario);
      expect((await list()).asked).toBe(1);
      expect((await list()).asked).toBe(0);
      clock.advance(119_999);
      expect(clock.sleepers, 'not asked again within two minutes').toBe(1);
      expect(upstream.watchRequests).toHaveLength(1);
      clock.advance(600_000);
      await until(() => upstream.watchRequests.length === 2);
      expect(upstream.watchRequests.map((request) => request.json.method)).toEqual([
        'subscriptions/listen',
        'subscriptions/listen',
      ]);
    },
  );

  test('does not exist where it is turned off', async () => {
    const { list, upstream, clock } = await start(catalogue(), { env: { UPSTREAM_U_WATCH: 'off' } });
    await list();
    expect((await list()).asked).toBe(0);
    clock.advance(HEAD_START_MS);
    expect(clock.sleepers).toBe(0);
    expect(upstream.watchRequests).toEqual([]);
  });

  test('bears the operator’s credentials, and none of a client’s', async () => {
    const watch = heldWatch();
    const { list, upstream } = await start(catalogue(), {
      watch: watch.respond,
      env: {
        UPSTREAM_U_AUTHORIZATION: 'Bearer ours',
        UPSTREAM_U_HEADERS: JSON.stringify({ 'X-Api-Key': 'key' }),
      },
    });
    await list({ headers: { authorization: 'Bearer theirs', cookie: 'sid=1' } });
    const [request] = upstream.watchRequests;
    expect(request?.headers).toMatchObject({ authorization: 'Bearer ours', 'x-api-key': 'key' });
    expect(request?.headers).not.toHaveProperty('cookie');
    expect(upstream.watchRequests).toHaveLength(1);
  });
});
