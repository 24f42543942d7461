/** The watch as part of a whole gateway: law 21; cases C27, C33, C54; 2025-11-25 basic/transports. */
import { describe, expect, test } from 'vitest';
import { createTestClock } from '../support/clock.js';
import { useClosers } from '../support/closers.js';
import { flushes, watching } from '../support/flushes.js';
import { createGate, until } from '../support/gate.js';
import { startGateway } from '../support/gateway.js';
import { heldLegacyWatch } from '../support/legacy-watch.js';
import { catalogue, namesOf } from '../support/lists.js';
import { type Scenario, useScenario } from '../support/scenario.js';
import { heldWatch, type Respond, sendError, startUpstream } from '../support/upstream.js';

const start = useScenario();
const closing = useClosers();

const connected = ({ gateway }: Scenario) => flushes(gateway, 'watch-connected');
const label = ({ httpMethod, json }: Scenario['upstream']['requests'][number]) => json?.method ?? httpMethod;

/** Moves the clock second by second until so many watches have come to stand. */
async function untilConnected(scenario: Scenario, times: number): Promise<void> {
  await until(() => {
    scenario.clock.advance(1_000);
    return connected(scenario) === times;
  });
}

describe('a watch that stands again flushes what was cached meanwhile', () => {
  test('in a new session of the older era, where the old one is dead', async () => {
    let version = 'v1';
    const watch = heldLegacyWatch();
    const scenario = await start(
      catalogue(() => version),
      { watch: watch.respond },
    );
    await watching(scenario.gateway);
    await scenario.list();
    const { upstream } = scenario;
    upstream.respondToWatch = (request, res) => {
      if (request.httpMethod !== 'GET') return watch.respond(request, res);
      upstream.respondToWatch = watch.respond;
      res.writeHead(404).end();
    };
    watch.cut();
    await until(() => watch.streams.size === 0);
    version = 'v2';
    await untilConnected(scenario, 2);
    const answer = await scenario.list();
    expect([namesOf(answer), answer.cacheStatus]).toEqual([['v2'], expect.stringContaining('fwd=miss')]);
    expect(upstream.watchRequests.slice(-4).map(label)).toEqual([
      'GET',
      'initialize',
      'notifications/initialized',
      'GET',
    ]);
    watch.notify('notifications/tools/list_changed');
    await until(() => flushes(scenario.gateway, 'watch') === 1);
  });

  test('of the newer era, where the upstream was of the older one before', async () => {
    let version = 'legacy';
    const legacy = heldLegacyWatch();
    const scenario = await start(
      catalogue(() => version),
      { watch: legacy.respond },
    );
    await watching(scenario.gateway);
    await scenario.list();
    const modern = heldWatch();
    scenario.upstream.respondToWatch = (request, res) => {
      if (request.json?.method === 'subscriptions/listen') return modern.respond(request, res);
      if (request.httpMethod === 'POST') return sendError(res, request, -32601, 404);
      res.writeHead(404).end();
    };
    legacy.cut();
    version = 'modern';
    await untilConnected(scenario, 2);
    const answer = await scenario.list();
    expect([namesOf(answer), answer.cacheStatus]).toEqual([['modern'], expect.stringContaining('fwd=miss')]);
    expect(modern.streams.size).toBe(1);
  });
});

describe('the watches of several upstreams', () => {
  test('know nothing of each other', async () => {
    const watch = heldWatch();
    const scenario = await start(catalogue(), { watch: watch.respond, second: catalogue() });
    await watching(scenario.gateway);
    const endpoint = scenario.gateway.endpoint('u2');
    await scenario.list();
    await scenario.list({ endpoint });
    watch.notify('notifications/tools/list_changed');
    await until(() => flushes(scenario.gateway, 'watch') === 1);
    expect([(await scenario.list()).asked, (await scenario.list({ endpoint })).asked]).toEqual([1, 0]);
  });
});

describe('the start of a gateway', () => {
  test('does not wait long for an upstream that takes the watch and says nothing', async () => {
    const clock = createTestClock();
    const asked = createGate();
    const upstream = closing(await startUpstream(catalogue()));
    upstream.respondToWatch = () => void asked.pass();
    const starting = startGateway({ upstreams: { u: upstream.url }, clock });
    await asked.arrivals(1);
    clock.advance(1_000);
    const gateway = await starting;
    expect((await fetch(`${gateway.adminUrl}/readyz`)).status).toBe(200);
    const closed = gateway.close();
    clock.advance(1_000);
    await closed;
  });

  test('has the first watch stand before it takes requests, where that is quick', async () => {
    const watch = heldWatch();
    const scenario = await start(catalogue(), { watch: watch.respond });
    expect(connected(scenario)).toBe(1);
    await scenario.list();
    expect((await scenario.list()).asked, 'no late flush').toBe(0);
  });
});

describe('the end of a gateway', () => {
  const ENDS: [string, () => { respond: Respond; streams: Set<unknown> }, string[]][] = [
    ['modern', heldWatch, ['subscriptions/listen']],
    [
      'legacy',
      heldLegacyWatch,
      ['subscriptions/listen', 'initialize', 'notifications/initialized', 'GET', 'DELETE'],
    ],
  ];

  test.each(ENDS)(
    'ends its own %s stream, and the session with it, and nothing else',
    async (_era, hold, expected) => {
      const watch = hold();
      const clock = createTestClock();
      const upstream = closing(await startUpstream(catalogue()));
      upstream.respondToWatch = watch.respond;
      const gateway = await startGateway({ upstreams: { u: upstream.url }, clock });
      await watching(gateway);
      const closed = gateway.close();
      clock.advance(1_000);
      await closed;
      await until(() => watch.streams.size === 0);
      expect(upstream.watchRequests.map(label)).toEqual(expected);
      expect(upstream.requests).toEqual([]);
      const last = upstream.watchRequests.at(-1);
      if (expected.includes('DELETE')) expect(last?.headers['mcp-session-id']).toBe('watch-session');
    },
  );
});
