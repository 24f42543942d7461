import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { rpc } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { createGate, until } from '../support/gate.js';
import { bearer, moreSleepers, namesIn, startPair, toolsResult } from '../support/pair.js';
import { type SeenRequest, sendError, sendResult } from '../support/upstream.js';

const closing = useClosers();

const tokenOf = (req: SeenRequest) => String(req.headers.authorization ?? '').replace('Bearer ', '');
const COLLAPSED = /^mcp-cache-gateway; fwd=miss; collapsed; ttl=\d+$/;

describe('law 16: one fetch for all who miss on a key', () => {
  test('a thousand cold callers cost one walk, and each gets the whole list under its own id', async () => {
    const gate = createGate();
    const pair = closing(
      await startPair(async (req, res) => {
        const { cursor } = req.json.params;
        if (cursor === undefined) await gate.pass();
        const page = Number(cursor ?? 1);
        sendResult(res, req, toolsResult([`t${page}`], page < 3 ? { nextCursor: String(page + 1) } : {}));
      }),
    );
    const more = moreSleepers(pair.clock);
    const ids = Array.from({ length: 1_000 }, (_, i) => (i % 2 === 0 ? i : `caller-${i}`));
    const asked = ids.map((id) => pair.list({ id }));
    await more(1_000);
    await until(() => pair.upstream.count() >= 1);
    expect(pair.upstream.count()).toBe(1);
    gate.open();
    const answers = await Promise.all(asked);
    expect(pair.upstream.count()).toBe(3);
    expect(answers.map((answer) => answer.json.id)).toEqual(ids);
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]));
    expect(new Set(answers.map((answer) => namesIn(answer).join()))).toEqual(new Set(['t1,t2,t3']));
    expect(answers.filter((answer) => COLLAPSED.test(answer.cacheStatus))).toHaveLength(999);
    expect(answers.filter((answer) => answer.cacheStatus.includes('; stored'))).toHaveLength(1);
  }, 60_000);

  test('those who wait for a refetch are told that it was one', async () => {
    const gate = createGate();
    const pair = closing(
      await startPair(async (req, res) => {
        if (pair.upstream.count() > 1) await gate.pass();
        sendResult(res, req, toolsResult(['t']));
      }),
    );
    await pair.list();
    pair.clock.advance(60_000);
    const more = moreSleepers(pair.clock);
    const asked = [pair.list(), pair.list(), pair.list()];
    // The fetch's deadline, and the patience of three.
    await more(4);
    gate.open();
    const said = (await Promise.all(asked)).map((answer) => answer.cacheStatus).sort();
    expect(said).toEqual([
      'mcp-cache-gateway; fwd=stale; collapsed; ttl=60',
      'mcp-cache-gateway; fwd=stale; collapsed; ttl=60',
      'mcp-cache-gateway; fwd=stale; stored; ttl=60',
    ]);
    expect(pair.upstream.count()).toBe(2);
  });
});

describe('law 16: authorization contexts', () => {
  test('two tokens at once on a private list make two fetches, and nothing crosses', async () => {
    const gate = createGate();
    const pair = closing(
      await startPair(async (req, res) => {
        await gate.pass();
        sendResult(res, req, toolsResult([`of-${tokenOf(req)}`], { cacheScope: 'private' }));
      }),
    );
    const asked = ['a', 'b'].map((token) => pair.list(bearer(token)));
    await gate.arrivals(2);
    gate.open();
    const answers = await Promise.all(asked);
    expect(answers.map(namesIn)).toEqual([['of-a'], ['of-b']]);
    expect(answers.map((answer) => answer.cacheStatus)).toEqual(
      Array(2).fill('mcp-cache-gateway; fwd=miss; stored; ttl=60'),
    );
    expect(pair.upstream.count()).toBe(2);
  });

  test('contexts wait together where the list was last public', async () => {
    const gate = createGate();
    const pair = closing(
      await startPair(async (req, res) => {
        if (pair.upstream.count() > 1) await gate.pass();
        sendResult(res, req, toolsResult(['t']));
      }),
    );
    await pair.list(bearer('first'));
    await pair.flush();
    const more = moreSleepers(pair.clock);
    const asked = ['a', 'b', 'c'].map((token) => pair.list(bearer(token)));
    await more(3);
    gate.open();
    expect((await Promise.all(asked)).map(namesIn)).toEqual([['t'], ['t'], ['t']]);
    expect(pair.upstream.count()).toBe(2);
  });

  test('a list that turns private while contexts wait together parts them', async () => {
    const gate = createGate();
    const pair = closing(
      await startPair(async (req, res) => {
        const isPublic = pair.upstream.count() === 1;
        if (!isPublic) await gate.pass();
        const scope = isPublic ? 'public' : 'private';
        sendResult(res, req, toolsResult([`of-${tokenOf(req)}`], { cacheScope: scope }));
      }),
    );
    await pair.list(bearer('first'));
    await pair.flush();
    const more = moreSleepers(pair.clock);
    const tokens = ['a', 'a', 'b', 'b', 'b', 'c'];
    const asked = tokens.map((token) => pair.list(bearer(token)));
    await more(tokens.length);
    await until(() => pair.upstream.count() >= 2);
    expect(pair.upstream.count()).toBe(2);
    gate.open();
    expect((await Promise.all(asked)).map(namesIn)).toEqual(tokens.map((token) => [`of-${token}`]));
    // One for all that waited together, and one for each context that it was not for.
    expect(pair.upstream.requests.slice(1).map(tokenOf).sort()).toEqual(['a', 'b', 'c']);
    const again = await Promise.all(tokens.map((token) => pair.list(bearer(token))));
    expect(again.map(namesIn)).toEqual(tokens.map((token) => [`of-${token}`]));
    expect(pair.upstream.count()).toBe(4);
  });
});

describe('law 16: what nobody may wait for', () => {
  test('with lifetime 0 nobody gets an answer whose fetch began before the request', async () => {
    const first = createGate();
    const others = createGate();
    let version = 1;
    const pair = closing(
      await startPair(async (req, res) => {
        const seen = `v${version}`;
        if (req.json.method === 'tools/call') {
          version += 1;
          sendResult(res, req, { resultType: 'complete', content: [] });
          return;
        }
        await (pair.upstream.count('tools/list') === 1 ? first : others).pass();
        sendResult(res, req, toolsResult([seen], { ttlMs: 0 }));
      }),
    );
    const more = moreSleepers(pair.clock);
    const before = pair.list();
    await first.arrivals(1);
    await rpc(pair.url, 'tools/call', { params: { name: 'write' } });
    const after = [pair.list(), pair.list()];
    await more(3);
    first.open();
    // At once and in parallel: both are under way before either is answered.
    await others.arrivals(2);
    others.open();
    expect(namesIn(await before)).toEqual(['v1']);
    for (const answer of await Promise.all(after)) {
      expect(namesIn(answer)).toEqual(['v2']);
      expect(answer.json.result.ttlMs).toBe(0);
      expect(answer.cacheStatus).toBe('mcp-cache-gateway; fwd=miss; detail=zero-lifetime');
    }
    expect(pair.upstream.count('tools/list')).toBe(3);
  });

  test.each([
    [
      'immediately stale',
      (req: SeenRequest, res: ServerResponse) => sendResult(res, req, toolsResult(['t'], { ttlMs: 0 })),
    ],
    [
      'too large',
      (req: SeenRequest, res: ServerResponse) => sendResult(res, req, toolsResult(['x'.repeat(5_000)])),
    ],
    ['an error', (req: SeenRequest, res: ServerResponse) => sendError(res, req, -32603)],
    ['refused', (req: SeenRequest, res: ServerResponse) => sendError(res, req, -32600, 400)],
  ])('once a list proved %s, its callers go straight and in parallel', async (_what, respond) => {
    const gate = createGate();
    const pair = closing(
      await startPair(
        async (req, res) => {
          if (pair.upstream.count() > 1) await gate.pass();
          respond(req, res);
        },
        { CACHE_MAX_ENTRY_BYTES: '4000' },
      ),
    );
    await pair.list();
    const asked = [pair.list(), pair.list(), pair.list()];
    await gate.arrivals(3);
    gate.open();
    const answers = await Promise.all(asked);
    expect(answers.filter((answer) => answer.cacheStatus.includes('collapsed'))).toEqual([]);
    expect(pair.upstream.count()).toBe(4);
  });

  test('a list that proves cacheable after all is waited for again', async () => {
    const gate = createGate();
    let ttlMs = 0;
    const pair = closing(
      await startPair(async (req, res) => {
        if (pair.upstream.count() > 2) await gate.pass();
        sendResult(res, req, toolsResult(['t'], { ttlMs }));
      }),
    );
    await pair.list();
    ttlMs = 60_000;
    await pair.list();
    await pair.flush();
    const more = moreSleepers(pair.clock);
    const asked = [pair.list(), pair.list()];
    await more(2);
    await gate.arrivals(1);
    expect(pair.upstream.count()).toBe(3);
    gate.open();
    await Promise.all(asked);
    expect(pair.upstream.count()).toBe(3);
  });
});

describe('laws 16 and 20: waiting across a flush', () => {
  test('who asks after a flush never gets what was walked before it', async () => {
    const gate = createGate();
    let version = 1;
    const pair = closing(
      await startPair(async (req, res) => {
        const seen = `v${version}`;
        const isLast = req.json.params.cursor !== undefined;
        if (isLast && version === 1) await gate.pass();
        sendResult(res, req, toolsResult([seen], isLast ? {} : { nextCursor: '2' }));
      }),
    );
    const more = moreSleepers(pair.clock);
    const before = pair.list();
    await gate.arrivals(1);
    version = 2;
    await pair.flush();
    const after = [pair.list(), pair.list({ id: 'later' })];
    await more(3);
    gate.open();
    for (const answer of await Promise.all(after)) expect(namesIn(answer)).toEqual(['v2', 'v2']);
    // One list is never made of two.
    expect(namesIn(await before)).toEqual(['v2', 'v2']);
    expect((await pair.list()).cacheStatus).toContain('; hit;');
  });

  test('what a flush overtook to the end is given to nobody who waited', async () => {
    const gates = Array.from({ length: 4 }, () => createGate());
    let version = 0;
    const pair = closing(
      await startPair(async (req, res) => {
        const seen = `v${version}`;
        await gates[pair.upstream.count() - 1]?.pass();
        sendResult(res, req, toolsResult([seen]));
      }),
    );
    const more = moreSleepers(pair.clock);
    const before = pair.list();
    await gates[0]?.arrivals(1);
    const during = pair.list();
    await more(2);
    for (const gate of gates.slice(0, 2)) {
      await gate.arrivals(1);
      version += 1;
      await pair.flush();
      gate.open();
    }
    // A single page is fetched anew once (law 11): the second flush leaves the first caller with what it has.
    const overtaken = await before;
    expect(overtaken.json.result.ttlMs).toBe(0);
    expect(overtaken.cacheStatus).toBe('mcp-cache-gateway; fwd=miss; detail=superseded');
    gates[2]?.open();
    gates[3]?.open();
    expect(namesIn(await during)).toEqual(['v2']);
  });
});
