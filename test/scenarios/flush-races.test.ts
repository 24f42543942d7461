/** A flush that meets a fetch under way: design, laws 11 and 20; case C24. */
import { describe, expect, test } from 'vitest';
import { flushes } from '../support/flushes.js';
import { createGate, until } from '../support/gate.js';
import {
  catalogue,
  cursorOf,
  cursors,
  namesOf,
  page,
  paged,
  sendResultAsEvents,
  sixNames,
  threePages,
  tools,
} from '../support/lists.js';
import { type Scenario, useScenario } from '../support/scenario.js';
import { messagesIn } from '../support/stream.js';
import { beginEvents, heldWatch, sendEvent, sendResult } from '../support/upstream.js';

const start = useScenario();

const METHOD = 'notifications/tools/list_changed';
const ALWAYS = Number.POSITIVE_INFINITY;

interface Shouting {
  /** The cursor whose request a change overtakes, and how often. */
  readonly at: string;
  readonly times: number;
  /** The pages of the n-th time that the list is asked for without a cursor. */
  readonly pages: (round: number) => Readonly<Record<string, object>>;
}

/** An upstream that tells of a change, and waits until it has taken effect, before it answers. */
async function shouting({ at, times, pages }: Shouting): Promise<Scenario & { quiet(): void }> {
  const watch = heldWatch();
  let rounds = 0;
  let shouts = 0;
  let left = times;
  const scenario: Scenario = await start(
    async (request, res) => {
      if (cursorOf(request) === '-') rounds += 1;
      const answer = paged(pages(rounds));
      if (cursorOf(request) === at && left > 0) {
        left -= 1;
        shouts += 1;
        watch.notify(METHOD);
        await until(() => flushes(scenario.gateway, 'watch') === shouts);
      }
      await answer(request, res);
    },
    { watch: watch.respond },
  );
  return {
    ...scenario,
    quiet() {
      left = 0;
    },
  };
}

const walked = (round: number) => threePages(`w${round}-`);
const single = (round: number) => ({ '-': page([`w${round}`]) });

describe('a flush during a walk (law 11)', () => {
  test.each([
    ['-', ['-', '-', 'c1', 'c2']],
    ['c1', ['-', 'c1', '-', 'c1', 'c2']],
    ['c2', ['-', 'c1', 'c2', '-', 'c1', 'c2']],
  ])('on page %s discards it and starts again from no cursor', async (at, asked) => {
    const { list, upstream } = await shouting({ at, times: 1, pages: walked });
    const answer = await list();
    expect(cursors(upstream)).toEqual(asked);
    expect(namesOf(answer), 'nothing from before the flush').toEqual(sixNames('w2-'));
    expect(answer.cacheStatus).toBe('mcp-cache-gateway; fwd=miss; stored; ttl=60');
    const hit = await list();
    expect(hit.asked).toBe(0);
    expect(namesOf(hit)).toEqual(sixNames('w2-'));
  });

  test('starts again three times at most; the last result is whole, of no lifetime, and not stored', async () => {
    const { list, upstream, clock, gateway, quiet } = await shouting({
      at: 'c1',
      times: ALWAYS,
      pages: walked,
    });
    const answer = await list();
    expect(cursors(upstream)).toEqual(['-', 'c1', '-', 'c1', '-', 'c1', '-', 'c1', 'c2']);
    expect(namesOf(answer)).toEqual(sixNames('w4-'));
    expect(answer.json.result).toMatchObject({ ttlMs: 0, cacheScope: 'public' });
    expect(answer.json.result).not.toHaveProperty('nextCursor');
    expect(answer.cacheStatus).toBe('mcp-cache-gateway; fwd=miss; detail=superseded');
    expect(gateway.logs.filter((l) => l.level === 40)).toMatchObject([{ reason: 'superseded' }]);
    quiet();
    const next = await list();
    expect([next.asked, next.json.result.nextCursor], 'its pages pass through').toEqual([1, 'c1']);
    expect(next.cacheStatus).toBe('mcp-cache-gateway; fwd=miss; detail=uncacheable');
    clock.advance(3_600_000);
    expect((await list()).asked, 'for a while').toBe(3);
    expect((await list()).asked).toBe(0);
  });

  test('three in a row are borne', async () => {
    const { list } = await shouting({ at: 'c2', times: 3, pages: walked });
    expect(namesOf(await list())).toEqual(sixNames('w4-'));
    expect((await list()).asked).toBe(0);
  });
});

describe('a flush during the fetch of a single page (laws 11 and 20)', () => {
  test('discards it and asks once more', async () => {
    const { list, upstream } = await shouting({ at: '-', times: 1, pages: single });
    expect(namesOf(await list())).toEqual(['w2']);
    expect(upstream.count()).toBe(2);
    const hit = await list();
    expect([hit.asked, namesOf(hit)]).toEqual([0, ['w2']]);
  });

  test('that comes again is borne once: the result has no lifetime and is not stored', async () => {
    const { list, upstream, clock, quiet } = await shouting({ at: '-', times: ALWAYS, pages: single });
    const answer = await list();
    expect(upstream.count()).toBe(2);
    expect(namesOf(answer)).toEqual(['w2']);
    expect(answer.json.result.ttlMs).toBe(0);
    expect(answer.cacheStatus).toBe('mcp-cache-gateway; fwd=miss; detail=superseded');
    quiet();
    for (const next of [await list(), await list()]) {
      expect([next.asked, next.cacheStatus]).toEqual([1, 'mcp-cache-gateway; fwd=miss; detail=uncacheable']);
    }
    clock.advance(3_600_000);
    expect((await list()).asked).toBe(1);
    expect((await list()).asked).toBe(0);
  });

  test('at each list costs one request more than the clients make, not one for each (C24)', async () => {
    const { list, upstream } = await shouting({ at: '-', times: ALWAYS, pages: single });
    for (let i = 0; i < 5; i += 1) await list();
    expect(upstream.count()).toBeLessThanOrEqual(6);
  });

  test.each([
    ['JSON', sendResult],
    ['events', sendResultAsEvents],
  ] as const)(
    'leaves one whole answer to a client that has been sent messages already, though the second is %s',
    async (_form, sendSecond) => {
      const watch = heldWatch();
      const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: { progress: 1 } };
      const { list, gateway, upstream }: Scenario = await start(
        async (request, res) => {
          if (upstream.count() > 1) {
            sendSecond(res, request, page(['w2']));
            return;
          }
          beginEvents(res);
          sendEvent(res, progress);
          watch.notify(METHOD);
          await until(() => flushes(gateway, 'watch') === 1);
          sendEvent(res, { jsonrpc: '2.0', id: request.json.id, result: page(['w1']) });
          res.end();
        },
        { watch: watch.respond },
      );
      const answer = await list({ id: 'x' });
      expect(messagesIn(answer.text)).toMatchObject([progress, { id: 'x', result: { tools: tools('w2') } }]);
      expect(messagesIn(answer.text)).toHaveLength(2);
      expect(upstream.count()).toBe(2);
      expect((await list()).asked).toBe(0);
    },
  );

  test('does not reach what another upstream is asked for', async () => {
    const watch = heldWatch();
    const gate = createGate();
    const { list, upstream, gateway } = await start(catalogue(), {
      watch: watch.respond,
      second: async (request, res) => {
        await gate.pass();
        sendResult(res, request, page(['b']));
      },
    });
    const endpoint = gateway.endpoint('u2');
    const held = list({ endpoint });
    await gate.arrivals(1);
    watch.notify(METHOD);
    await until(() => flushes(gateway, 'watch') === 1);
    gate.open();
    expect((await held).cacheStatus).toContain('stored');
    expect(upstream.count()).toBe(0);
    expect((await list({ endpoint })).asked).toBe(0);
  });

  test('of another upstream reaches it with LIST_CHANGED_FLUSH=all', async () => {
    const watch = heldWatch();
    const gate = createGate();
    const { list, second, gateway } = await start(catalogue(), {
      watch: watch.respond,
      second: async (request, res) => {
        const names = [`r${second.count()}`];
        await gate.pass();
        sendResult(res, request, page(names));
      },
      env: { LIST_CHANGED_FLUSH: 'all' },
    });
    const held = list({ endpoint: gateway.endpoint('u2') });
    await gate.arrivals(1);
    watch.notify(METHOD);
    await until(() => flushes(gateway, 'watch') === 2);
    gate.open();
    expect(namesOf(await held)).toEqual(['r2']);
    expect(second.count()).toBe(2);
  });
});
