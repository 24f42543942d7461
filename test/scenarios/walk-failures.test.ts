import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { useClosers } from '../support/closers.js';
import { logged, namesIn, startPair, toolsResult } from '../support/pair.js';
import { type SeenRequest, sendError, sendJson, sendResult } from '../support/upstream.js';

const closing = useClosers();

type Later = (req: SeenRequest, res: ServerResponse) => void;
const toPage =
  (nextCursor: string): Later =>
  (req, res) =>
    sendResult(res, req, toolsResult(['later'], { nextCursor }));

const CASES: [string, string, Later][] = [
  ['the cursor stays the same (case C02 a)', 'cursor-loop', toPage('8')],
  ['the cursor is always empty (case C02 d)', 'cursor-loop', toPage('')],
  [
    'two cursors alternate (case C02 b)',
    'cursor-loop',
    (req, res) => toPage(req.json.params.cursor === '8' ? 'b' : '8')(req, res),
  ],
  [
    'one cursor comes in two spellings',
    'cursor-loop',
    (req, res) =>
      sendJson(
        res,
        `{"jsonrpc":"2.0","id":${JSON.stringify(req.json.id)},"result":{"tools":[],"ttlMs":60000,"cacheScope":"public","nextCursor":"\\u0038"}}`,
      ),
  ],
  [
    'a later page is immediately stale',
    'page-stale',
    (req, res) => sendResult(res, req, toolsResult(['later'], { ttlMs: 0 })),
  ],
  [
    'a later page has no lifetime',
    'page-stale',
    (req, res) => sendResult(res, req, { resultType: 'complete', tools: [], cacheScope: 'public' }),
  ],
  ['a later page is answered 500', 'page-failed', (_req, res) => sendJson(res, '{}', 500)],
  ['a later page is an error', 'page-failed', (req, res) => sendError(res, req, -32603)],
  ['a later page breaks off', 'page-failed', (_req, res) => void res.destroy()],
  ['a later page is no list', 'page-failed', (req, res) => sendResult(res, req, { resultType: 'complete' })],
  ['a cursor is invalid twice', 'page-failed', (req, res) => sendError(res, req, -32602)],
];

describe('law 10: a list that is unsound is relayed and not cached at all', () => {
  test.each(CASES)('%s: %s', async (_what, reason, later) => {
    const pair = closing(
      await startPair((req, res) => {
        const { cursor } = req.json.params;
        if (cursor === undefined) sendResult(res, req, toolsResult(['first'], { nextCursor: '8' }));
        else later(req, res);
      }),
    );
    const first = await pair.list({ id: 'x' });
    expect(first.text).toBe(
      JSON.stringify({ jsonrpc: '2.0', id: 'x', result: toolsResult(['first'], { nextCursor: '8' }) }),
    );
    expect(first.cacheStatus).toBe(`mcp-cache-gateway; fwd=miss; detail=${reason}`);
    expect(logged(pair.gateway, 'not stored')).toMatchObject([{ method: 'tools/list', reason }]);
    const walked = pair.upstream.count();
    expect(walked).toBeLessThanOrEqual(4);
    // Not walked again: one request each, and nothing of it is kept, neither first page nor later ones.
    for (const n of [1, 2]) {
      const again = await pair.list();
      expect(namesIn(again)).toEqual(['first']);
      expect(again.json.result.nextCursor).toBe('8');
      expect(again.cacheStatus).toBe('mcp-cache-gateway; fwd=miss; detail=uncacheable');
      expect(pair.upstream.count()).toBe(walked + n);
    }
    for (const n of [3, 4]) {
      const next = await pair.list({ params: { cursor: '8' } });
      const told =
        next.status === 502 ? 'fwd=miss; detail=upstream-unreachable' : 'fwd=bypass; detail=has-cursor';
      expect(next.cacheStatus).toBe(`mcp-cache-gateway; ${told}`);
      expect(pair.upstream.count()).toBe(walked + n);
    }
  });

  test('after a while it is walked again', async () => {
    let isSound = false;
    const pair = closing(
      await startPair((req, res) => {
        const { cursor } = req.json.params;
        if (cursor === undefined) sendResult(res, req, toolsResult(['t1'], { nextCursor: '2' }));
        else if (isSound) sendResult(res, req, toolsResult(['t2']));
        else sendError(res, req, -32603);
      }),
    );
    await pair.list();
    isSound = true;
    pair.clock.advance(60_000);
    expect(namesIn(await pair.list())).toEqual(['t1', 't2']);
    expect((await pair.list()).cacheStatus).toContain('; hit;');
  });

  test('a list that is short again is kept even before that', async () => {
    let isLong = true;
    const pair = closing(
      await startPair((req, res) => {
        const { cursor } = req.json.params;
        if (cursor !== undefined) sendError(res, req, -32603);
        else sendResult(res, req, toolsResult(['t1'], isLong ? { nextCursor: '2' } : {}));
      }),
    );
    await pair.list();
    isLong = false;
    expect((await pair.list()).cacheStatus).toContain('; stored');
    expect((await pair.list()).cacheStatus).toContain('; hit;');
  });
});

describe('law 10: a cursor that has become invalid', () => {
  test('restarts the walk once', async () => {
    let refused = 0;
    const pair = closing(
      await startPair((req, res) => {
        const { cursor } = req.json.params;
        if (cursor === undefined) {
          sendResult(res, req, toolsResult([`first-${refused}`], { nextCursor: `c${refused}` }));
        } else if (cursor === 'c0') {
          refused += 1;
          sendError(res, req, -32602);
        } else sendResult(res, req, toolsResult(['last']));
      }),
    );
    const answer = await pair.list();
    expect(namesIn(answer)).toEqual(['first-1', 'last']);
    expect(answer.cacheStatus).toContain('; stored');
    expect(pair.upstream.count()).toBe(4);
    expect(logged(pair.gateway, 'not stored')).toEqual([]);
  });
});
