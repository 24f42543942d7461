import { describe, expect, test } from 'vitest';
import { useClosers } from '../support/closers.js';
import { createGate, until } from '../support/gate.js';
import { bearer, logged, moreSleepers, namesIn, type Pair, startPair, toolsResult } from '../support/pair.js';
import { type SeenRequest, sendError, sendResult } from '../support/upstream.js';

const closing = useClosers();

const pageOf = (req: SeenRequest) => Number(req.json.params.cursor ?? 1);

/** A list of `pages` pages with two tools each; `fields` may change the result of one page. */
function startPages(
  pages: number,
  env: Record<string, string>,
  fields: (page: number) => Record<string, unknown> = () => ({}),
): Promise<Pair> {
  return startPair((req, res) => {
    const page = pageOf(req);
    const more = page < pages ? { nextCursor: String(page + 1) } : {};
    sendResult(res, req, toolsResult([`a${page}`, `b${page}`], { ...more, ...fields(page) }));
  }, env);
}

const page = (pair: Pair, cursor: string, options = {}) => pair.list({ params: { cursor }, ...options });
const firstPage = JSON.stringify({
  jsonrpc: '2.0',
  id: 7,
  result: toolsResult(['a1', 'b1'], { nextCursor: '2' }),
});
/** What a walk asked for before it met its limit. */
const LIMITS = [
  ['max-pages', { SNAPSHOT_MAX_PAGES: '2' }, 2],
  ['max-items', { SNAPSHOT_MAX_ITEMS: '3' }, 2],
  ['too-large', { CACHE_MAX_ENTRY_BYTES: '600' }, 3],
] as const;

describe('law 10: a list that is too long', () => {
  test.each(LIMITS)('%s: the first page goes out as it came, and the reason is told', async (...limit) => {
    const [reason, env, asked] = limit;
    const pair = closing(await startPages(5, env));
    const answer = await pair.list({ id: 7 });
    expect(answer.text).toBe(firstPage);
    expect(answer.cacheStatus).toBe(`mcp-cache-gateway; fwd=miss; detail=${reason}`);
    expect(pair.upstream.count()).toBe(asked);
    expect(logged(pair.gateway, 'not stored')).toMatchObject([
      { upstream: 'u', method: 'tools/list', reason, level: 40 },
    ]);
    expect(logged(pair.gateway, 'request')).toMatchObject([{ outcome: 'miss', reason }]);
  });

  test('deadline: the first page goes out when UPSTREAM_TIMEOUT_MS is over', async () => {
    const gate = createGate();
    const pair = closing(
      await startPair(
        async (req, res) => {
          if (pageOf(req) === 2) await gate.pass();
          else sendResult(res, req, toolsResult(['a1', 'b1'], { nextCursor: '2' }));
        },
        { UPSTREAM_TIMEOUT_MS: '10000' },
      ),
    );
    const asked = pair.list({ id: 7 });
    await gate.arrivals(1);
    pair.clock.advance(10_000);
    const answer = await asked;
    expect(answer.text).toBe(firstPage);
    expect(answer.cacheStatus).toBe('mcp-cache-gateway; fwd=miss; detail=deadline');
    expect(logged(pair.gateway, 'not stored')).toMatchObject([{ reason: 'deadline' }]);
    const again = await pair.list();
    expect(again.json.result.nextCursor).toBe('2');
    expect(pair.upstream.count()).toBe(2);
  });

  test('a fresh cursor for ever, each page empty, ends with SNAPSHOT_MAX_PAGES (case C02)', async () => {
    let cursors = 0;
    const pair = closing(
      await startPair(
        (req, res) => {
          cursors += 1;
          sendResult(res, req, toolsResult([], { nextCursor: `c${cursors}` }));
        },
        { SNAPSHOT_MAX_PAGES: '50' },
      ),
    );
    const answer = await pair.list();
    expect(answer.json.result.nextCursor).toBe('c1');
    expect(answer.cacheStatus).toContain('detail=max-pages');
    expect(pair.upstream.count()).toBe(50);
  });

  test('it is not walked again for a while, and then it is', async () => {
    let pages = 5;
    const pair = closing(
      await startPair(
        (req, res) => {
          const n = pageOf(req);
          sendResult(res, req, toolsResult([`t${n}`], n < pages ? { nextCursor: String(n + 1) } : {}));
        },
        { SNAPSHOT_MAX_PAGES: '2' },
      ),
    );
    await pair.list();
    expect(pair.upstream.count()).toBe(2);
    pair.clock.advance(60_000);
    // The first page has expired: it alone is asked for.
    const again = await pair.list();
    expect(again.json.result.nextCursor).toBe('2');
    expect(pair.upstream.count()).toBe(3);
    pair.clock.advance(600_000);
    pages = 2;
    expect(namesIn(await pair.list())).toEqual(['t1', 't2']);
    expect((await pair.list()).cacheStatus).toContain('; hit;');
    expect(pair.upstream.count()).toBe(5);
  });

  test('nor is it walked again by those who waited for the walk: they get the page', async () => {
    const gate = createGate();
    const pair = closing(
      await startPair(
        async (req, res) => {
          const n = pageOf(req);
          if (n === 2) await gate.pass();
          sendResult(res, req, toolsResult([`t${n}`], { nextCursor: String(n + 1) }));
        },
        { SNAPSHOT_MAX_PAGES: '3' },
      ),
    );
    const more = moreSleepers(pair.clock);
    const asked = Array.from({ length: 20 }, (_, id) => pair.list({ id }));
    await more(20);
    gate.open();
    const answers = await Promise.all(asked);
    expect(answers.map((answer) => answer.json.id)).toEqual(answers.map((_, id) => id));
    for (const answer of answers) {
      expect(namesIn(answer)).toEqual(['t1']);
      expect(answer.json.result.nextCursor).toBe('2');
    }
    expect(pair.upstream.count()).toBe(3);
  });

  test('those who waited for a walk that ran out of time still have the time for a page', async () => {
    const gates = [createGate(), createGate(), createGate()];
    const pair = closing(
      await startPair(
        async (req, res) => {
          const n = pageOf(req);
          if (n > 1) await gates[n - 2]?.pass();
          // What is kept of the first page is stale when the walk has taken its 10 s.
          sendResult(res, req, toolsResult([`t${n}`], { nextCursor: String(n + 1), ttlMs: 5_000 }));
        },
        { UPSTREAM_TIMEOUT_MS: '10000', STALE_IF_ERROR_MS: '0' },
      ),
    );
    const more = moreSleepers(pair.clock);
    const leader = pair.list();
    await gates[0]?.arrivals(1);
    pair.clock.advance(1);
    const other = pair.list();
    await more(2);
    for (const n of [0, 1]) {
      pair.clock.advance(4_000);
      gates[n]?.open();
      await gates[n + 1]?.arrivals(1);
    }
    pair.clock.advance(1_999);
    expect((await leader).cacheStatus).toContain('detail=deadline');
    expect((await other).json.result.nextCursor).toBe('2');
    expect(pair.upstream.count()).toBe(5);
  });

  test('a public one is the same list for every context', async () => {
    const pair = closing(await startPages(5, { SNAPSHOT_MAX_PAGES: '2' }));
    await pair.list(bearer('a'));
    const other = await pair.list(bearer('b'));
    expect(other.cacheStatus).toContain('; hit;');
    expect(other.json.result.nextCursor).toBe('2');
    await page(pair, '2', bearer('b'));
    expect((await page(pair, '2', bearer('a'))).cacheStatus).toContain('; hit;');
    expect(pair.upstream.count()).toBe(3);
  });
});

describe('law 10 and MCP caching, Interaction with Pagination: its pages are cached one by one', () => {
  const LIMIT = { SNAPSHOT_MAX_PAGES: '2' };

  test('each by its own cursor, with the cursor behind it', async () => {
    const pair = closing(await startPages(4, LIMIT));
    await pair.list();
    const asked = pair.upstream.count();
    const first = await pair.list();
    expect(first.cacheStatus).toContain('; hit;');
    expect(namesIn(first)).toEqual(['a1', 'b1']);
    for (const n of [2, 3, 4]) {
      const came = await page(pair, String(n));
      expect(came.cacheStatus).toContain('; fwd=miss; stored;');
      const kept = await page(pair, String(n), { id: `again-${n}` });
      expect(kept.cacheStatus).toContain('; hit;');
      expect(kept.json.id).toBe(`again-${n}`);
      expect(namesIn(kept)).toEqual([`a${n}`, `b${n}`]);
      expect(kept.json.result.nextCursor).toBe(n < 4 ? String(n + 1) : undefined);
    }
    expect(pair.upstream.count()).toBe(asked + 3);
  });

  test('the empty string is a cursor of its own, and not the first page', async () => {
    const pair = closing(
      await startPair((req, res) => {
        const { cursor } = req.json.params;
        const next = { '': 'x', x: 'y' }[String(cursor)];
        const more =
          cursor === undefined ? { nextCursor: '' } : next === undefined ? {} : { nextCursor: next };
        sendResult(res, req, toolsResult([`page-${cursor ?? 'first'}`], more));
      }, LIMIT),
    );
    await pair.list();
    expect(namesIn(await page(pair, ''))).toEqual(['page-']);
    expect(namesIn(await page(pair, ''))).toEqual(['page-']);
    expect(namesIn(await pair.list())).toEqual(['page-first']);
  });

  test('each for its own ttlMs, counted from its own receipt', async () => {
    const ttls: Record<number, number> = { 1: 60_000, 2: 10_000, 3: 0 };
    const pair = closing(await startPages(4, LIMIT, (n) => ({ ttlMs: ttls[n] ?? 60_000 })));
    await pair.list();
    pair.clock.advance(5_000);
    await page(pair, '2');
    pair.clock.advance(9_999);
    expect((await page(pair, '2')).json.result.ttlMs).toBe(1);
    const asked = pair.upstream.count();
    pair.clock.advance(1);
    expect((await page(pair, '2')).cacheStatus).toContain('fwd=stale; stored');
    expect((await pair.list()).json.result.ttlMs).toBe(45_000);
    await page(pair, '3');
    expect((await page(pair, '3')).cacheStatus).toContain('detail=zero-lifetime');
    expect(pair.upstream.count()).toBe(asked + 3);
  });

  test('each in its own scope', async () => {
    const pair = closing(await startPages(4, LIMIT, (n) => ({ cacheScope: n === 1 ? 'public' : 'private' })));
    await pair.list(bearer('a'));
    await pair.list(bearer('b'));
    await page(pair, '2', bearer('a'));
    const asked = pair.upstream.count();
    expect((await page(pair, '2', bearer('a'))).cacheStatus).toContain('; hit;');
    expect((await page(pair, '2', bearer('b'))).cacheStatus).toContain('fwd=miss');
    expect(pair.upstream.count()).toBe(asked + 1);
  });

  test('all that lead on are dropped when the upstream does not know their cursors any more', async () => {
    let life = 'a';
    const pair = closing(
      await startPair((req, res) => {
        const [born, n] = String(req.json.params.cursor ?? `${life}1`);
        if (born !== life) sendError(res, req, -32602);
        else sendResult(res, req, toolsResult([`t${n}`], { nextCursor: `${life}${Number(n) + 1}` }));
      }, LIMIT),
    );
    await pair.list();
    await page(pair, 'a2');
    await page(pair, 'a3');
    life = 'b';
    // A client that begins again must not be led there again.
    expect((await page(pair, 'a4')).json.error.code).toBe(-32602);
    expect((await pair.list()).json.result.nextCursor).toBe('b2');
    expect((await page(pair, 'a2')).json.error.code).toBe(-32602);
    expect(namesIn(await page(pair, 'b2'))).toEqual(['t2']);
  });

  test('and all are gone after a flush', async () => {
    const pair = closing(await startPages(4, LIMIT));
    await pair.list();
    await page(pair, '2');
    await pair.flush();
    expect((await page(pair, '2')).cacheStatus).toContain('fwd=miss');
    expect((await pair.list()).cacheStatus).toContain('fwd=miss');
  });

  test('those who ask for one page at once cost one request', async () => {
    const gate = createGate();
    const pair = closing(
      await startPair(async (req, res) => {
        const n = pageOf(req);
        if (n === 3) await gate.pass();
        sendResult(res, req, toolsResult([`t${n}`], { nextCursor: String(n + 1) }));
      }, LIMIT),
    );
    await pair.list();
    const more = moreSleepers(pair.clock);
    const asked = [1, 2, 3].map((id) => page(pair, '3', { id }));
    await more(3);
    gate.open();
    for (const answer of await Promise.all(asked)) expect(namesIn(answer)).toEqual(['t3']);
    expect(pair.upstream.count()).toBe(3);
    await until(() => logged(pair.gateway, 'request').length === 4);
  });
});
