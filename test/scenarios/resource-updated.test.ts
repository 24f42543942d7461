/** What the update of one resource drops, and what it leaves: design, laws 18–20; case C23. */
import { describe, expect, test } from 'vitest';
import { useClosers } from '../support/closers.js';
import { flushes } from '../support/flushes.js';
import { createGate, until } from '../support/gate.js';
import { heldStream } from '../support/held-stream.js';
import { catalogue, namesOf, paged, sendResultAsEvents, sixNames, threePages } from '../support/lists.js';
import { type Scenario, useScenario } from '../support/scenario.js';
import { listen } from '../support/stream.js';
import { goodResult, heldWatch, type Respond, sendResult } from '../support/upstream.js';

const start = useScenario();
const closing = useClosers();

const UPDATED = 'notifications/resources/updated';
const A = 'file:///a';

/** Resources by their uri; `dir` shows `a` and one more. */
function resources(text: () => string, fields: object = {}): Respond {
  return (request, res) => {
    const { uri } = request.json.params;
    if (request.json.method !== 'resources/read') catalogue(text)(request, res);
    else {
      const uris = uri === 'file:///dir' ? ['file:///dir/x', A] : [uri];
      const contents = uris.map((one) => ({ uri: one, text: text() }));
      sendResult(res, request, { ...goodResult({ contents }), ...fields });
    }
  };
}

const read = ({ ask, gateway }: Scenario, uri: string, name = 'u', headers: Record<string, string> = {}) =>
  ask('resources/read', { params: { uri }, headers, endpoint: gateway.endpoint(name) });

/** Waits until all that was sent on the watch before has been read: a marker resource is updated behind it. */
async function settled(scenario: Scenario, notify: (uri: string) => void): Promise<void> {
  await read(scenario, 'file:///marker');
  expect((await read(scenario, 'file:///marker')).asked).toBe(0);
  notify('file:///marker');
  await until(async () => (await read(scenario, 'file:///marker')).asked === 1);
}

describe('resources/updated (law 18)', () => {
  test('drops the reads of its uri and those whose contents name it, and nothing else', async () => {
    const watch = heldWatch();
    let text = 'old';
    const scenario = await start(
      resources(() => text),
      { watch: watch.respond, second: resources(() => text) },
    );
    const kept = [
      'file:///b',
      'file:///A',
      'FILE:///a',
      'file:///a/',
      'file:///a#',
      'file://a',
      'file:///%61',
    ];
    for (const uri of [A, 'file:///dir', ...kept]) await read(scenario, uri);
    await read(scenario, A, 'u2');
    for (const method of ['resources/list', 'resources/templates/list', 'tools/list'])
      await scenario.ask(method);
    text = 'new';
    watch.notify(UPDATED, { uri: A });
    await until(async () => (await read(scenario, A)).asked === 1);
    const dir = await read(scenario, 'file:///dir');
    expect([dir.asked, dir.json.result.contents[1].text]).toEqual([1, 'new']);
    for (const uri of kept) expect((await read(scenario, uri)).asked, uri).toBe(0);
    expect((await read(scenario, A, 'u2')).asked).toBe(0);
    for (const method of ['resources/list', 'resources/templates/list', 'tools/list']) {
      expect((await scenario.ask(method)).asked, method).toBe(0);
    }
    expect(flushes(scenario.gateway, 'watch')).toBe(0);
  });

  test('drops them for every caller', async () => {
    const watch = heldWatch();
    const scenario = await start(
      resources(() => 't', { cacheScope: 'private' }),
      { watch: watch.respond },
    );
    const callers = ['Bearer a', 'Bearer b'];
    for (const asked of [1, 0]) {
      for (const authorization of callers) {
        expect((await read(scenario, A, 'u', { authorization })).asked).toBe(asked);
      }
    }
    watch.notify(UPDATED, { uri: A });
    await settled(scenario, (uri) => watch.notify(UPDATED, { uri }));
    for (const authorization of callers) {
      expect((await read(scenario, A, 'u', { authorization })).asked).toBe(1);
    }
  });

  test('of one upstream stays there with LIST_CHANGED_FLUSH=all', async () => {
    const watch = heldWatch();
    const scenario = await start(
      resources(() => 't'),
      {
        watch: watch.respond,
        second: resources(() => 't'),
        env: { LIST_CHANGED_FLUSH: 'all' },
      },
    );
    await read(scenario, A);
    await read(scenario, A, 'u2');
    watch.notify(UPDATED, { uri: A });
    await until(async () => (await read(scenario, A)).asked === 1);
    expect((await read(scenario, A, 'u2')).asked).toBe(0);
  });

  test.each([{}, { uri: 7 }, { uri: null }, { uris: [A] }])(
    'with params %o changes nothing',
    async (params) => {
      const watch = heldWatch();
      const scenario = await start(
        resources(() => 't'),
        { watch: watch.respond },
      );
      await read(scenario, A);
      watch.notify(UPDATED, params);
      await settled(scenario, (uri) => watch.notify(UPDATED, { uri }));
      expect((await read(scenario, A)).asked).toBe(0);
    },
  );

  test('on a client’s stream has taken effect when the client hears of it (law 19)', async () => {
    const stream = heldStream();
    let text = 'old';
    const respond = resources(() => text);
    const scenario = await start(
      (request, res) =>
        (request.json.method === 'subscriptions/listen' ? stream.respond : respond)(request, res),
      { env: { UPSTREAM_U_WATCH: 'off' } },
    );
    await read(scenario, A);
    await read(scenario, 'file:///b');
    const client = closing(await listen(scenario.gateway.endpoint('u'), { resourceSubscriptions: [A] }));
    text = 'new';
    await stream.send({ jsonrpc: '2.0', method: UPDATED, params: { uri: A } });
    expect((await client.next()).params).toEqual({ uri: A });
    const again = await read(scenario, A);
    expect([again.asked, again.json.result.contents[0].text]).toEqual([1, 'new']);
    expect((await read(scenario, 'file:///b')).asked).toBe(0);
  });
});

describe('an update while the resource is being read (law 20, C23)', () => {
  test.each([A, 'file:///dir'])('leaves %s unstored, and everything else as it was', async (uri) => {
    const watch = heldWatch();
    const gate = createGate();
    let text = 'old';
    const scenario = await start(
      async (request, res) => {
        const answer = resources(
          (
            (now) => () =>
              now
          )(text),
        );
        if (request.json.params.uri === uri) await gate.pass();
        await answer(request, res);
      },
      { watch: watch.respond },
    );
    await read(scenario, 'file:///b');
    await scenario.ask('resources/list');
    const held = read(scenario, uri);
    await gate.arrivals(1);
    watch.notify(UPDATED, { uri: A });
    await settled(scenario, (marker) => watch.notify(UPDATED, { uri: marker }));
    text = 'new';
    gate.open();
    expect((await held).json.result.contents.at(-1).text).toBe('old');
    expect((await held).cacheStatus).toBe('mcp-cache-gateway; fwd=miss; detail=superseded');
    const again = await read(scenario, uri);
    expect([again.asked, again.json.result.contents.at(-1).text]).toEqual([1, 'new']);
    expect((await read(scenario, uri)).asked).toBe(0);
    expect((await read(scenario, 'file:///b')).asked).toBe(0);
    expect((await scenario.ask('resources/list')).asked).toBe(0);
  });

  test('of another resource does not touch the read, nor a walk', async () => {
    const watch = heldWatch();
    const gate = createGate();
    const scenario = await start(
      async (request, res) => {
        const isRead = request.json.method === 'resources/read';
        if (request.json.params.uri !== 'file:///marker') await gate.pass();
        await (isRead ? resources(() => 't') : paged(threePages('t')))(request, res);
      },
      { watch: watch.respond },
    );
    const held = [read(scenario, 'file:///b'), scenario.list()] as const;
    await gate.arrivals(2);
    watch.notify(UPDATED, { uri: A });
    await settled(scenario, (uri) => watch.notify(UPDATED, { uri }));
    const before = scenario.upstream.count();
    gate.open();
    expect((await held[0]).cacheStatus).toContain('stored');
    expect(namesOf(await held[1])).toEqual(sixNames('t'));
    expect(scenario.upstream.count() - before, 'two more pages, and nothing twice').toBe(2);
    expect((await read(scenario, 'file:///b')).asked).toBe(0);
    expect((await scenario.list()).asked).toBe(0);
  });

  test('on the read’s own stream, before its result, does not discard that result (law 11)', async () => {
    const notification = { jsonrpc: '2.0', method: UPDATED, params: { uri: A } };
    const scenario = await start(
      (request, res) =>
        sendResultAsEvents(res, request, goodResult({ contents: [{ uri: A, text: 't' }] }), [notification]),
      { env: { UPSTREAM_U_WATCH: 'off' } },
    );
    expect((await read(scenario, A)).asked).toBe(1);
    expect((await read(scenario, A)).asked).toBe(0);
  });
});
