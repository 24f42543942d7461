import { describe, expect, test } from 'vitest';
import { type RpcAnswer, rpc } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { startGateway } from '../support/gateway.js';
import { bearer, namesIn, type Pair, startPair, toolsResult } from '../support/pair.js';
import { beginEvents, sendEvent, sendResult, startUpstream } from '../support/upstream.js';

const closing = useClosers();

const at = (cursor: string, options = {}) => ({ params: { cursor }, ...options });
const names = (count: number) => Array.from({ length: count }, (_, i) => `t${i}`);
const INVALID = { code: -32602, message: 'Invalid cursor' };

/** A list of one page of five tools, served in pages of two. */
function startFive(fields: Record<string, unknown> = {}, env: Record<string, string> = {}): Promise<Pair> {
  return startPair((req, res) => sendResult(res, req, toolsResult(names(5), fields)), {
    PAGE_SIZE: '2',
    ...env,
  });
}

async function expectInvalid(pair: Pair, ask: () => Promise<RpcAnswer>): Promise<void> {
  const asked = pair.upstream.count();
  const answer = await ask();
  expect(answer.status).toBe(200);
  expect(answer.json).toEqual({ jsonrpc: '2.0', id: 1, error: INVALID });
  expect(answer.cacheStatus).toBe('mcp-cache-gateway; detail=invalid-cursor');
  expect(pair.upstream.count()).toBe(asked);
}

describe('law 13: pages out of a snapshot', () => {
  test('one walk of the upstream serves a walk of pages, each under its own request’s id', async () => {
    const pair = closing(
      await startPair(
        (req, res) => {
          const n = Number(req.json.params.cursor ?? 0);
          sendResult(res, req, toolsResult([`t${n}`], n < 4 ? { nextCursor: String(n + 1) } : {}));
        },
        { PAGE_SIZE: '2' },
      ),
    );
    const first = await pair.list({ id: 'one' });
    expect(first.json.id).toBe('one');
    expect(namesIn(first)).toEqual(['t0', 't1']);
    expect(first.cacheStatus).toBe('mcp-cache-gateway; fwd=miss; stored; ttl=60');
    expect(pair.upstream.count()).toBe(5);
    pair.clock.advance(1_000);
    const second = await pair.list(at(first.json.result.nextCursor, { id: 'two' }));
    expect(second.json.id).toBe('two');
    expect(second.json.result).toMatchObject({ ttlMs: 59_000, cacheScope: 'public' });
    expect(second.cacheStatus).toBe('mcp-cache-gateway; hit; ttl=59');
    const third = await pair.list(at(second.json.result.nextCursor));
    expect([...namesIn(second), ...namesIn(third)]).toEqual(['t2', 't3', 't4']);
    expect(third.json.result).not.toHaveProperty('nextCursor');
    expect(pair.upstream.count()).toBe(5);
  });

  test('a single page of the upstream that is longer than PAGE_SIZE is cut as well', async () => {
    const pair = closing(await startFive());
    const first = await pair.list();
    expect(namesIn(first)).toEqual(['t0', 't1']);
    expect(namesIn(await pair.list())).toEqual(['t0', 't1']);
    expect(namesIn(await pair.list(at(first.json.result.nextCursor)))).toEqual(['t2', 't3']);
    expect(pair.upstream.count()).toBe(1);
  });

  test.each([1, 2])('a list of %i is one page without a cursor, as it came', async (count) => {
    const pair = closing(
      await startPair((req, res) => sendResult(res, req, toolsResult(names(count))), { PAGE_SIZE: '2' }),
    );
    for (const answer of [await pair.list(), await pair.list()]) {
      expect(namesIn(answer)).toEqual(names(count));
      expect(answer.json.result).not.toHaveProperty('nextCursor');
    }
  });

  test('an answer that comes as an event stream is cut as well, interim messages before it', async () => {
    const pair = closing(
      await startPair(
        (req, res) => {
          beginEvents(res);
          const note = {
            jsonrpc: '2.0',
            method: 'notifications/message',
            params: { level: 'info', data: 'x' },
          };
          if (req.json.id === 'chatty') sendEvent(res, note);
          sendEvent(res, { jsonrpc: '2.0', id: req.json.id, result: toolsResult(names(3)) });
          res.end();
        },
        { PAGE_SIZE: '2' },
      ),
    );
    const chatty = await pair.list({ id: 'chatty' });
    expect(chatty.headers.get('content-type')).toBe('text/event-stream');
    const messages = [...chatty.text.matchAll(/^data: (.*)$/gm)].map((match) => JSON.parse(match[1] ?? ''));
    expect(messages[0]?.method).toBe('notifications/message');
    expect(messages[1]?.result.tools).toHaveLength(2);
    const { nextCursor } = messages[1].result;
    expect(namesIn(await pair.list(at(nextCursor)))).toEqual(['t2']);
    await pair.flush();
    const plain = await pair.list({ id: 'plain' });
    expect(namesIn(plain)).toEqual(['t0', 't1']);
    expect(namesIn(await pair.list(at(plain.json.result.nextCursor)))).toEqual(['t2']);
  });

  test('a walk that began on a snapshot ends on it, though it expires and another takes its place', async () => {
    let version = 1;
    const pair = closing(
      await startPair(
        (req, res) => sendResult(res, req, toolsResult(names(5).map((name) => `${name}.v${version}`))),
        { PAGE_SIZE: '2' },
      ),
    );
    const first = await pair.list();
    pair.clock.advance(60_000);
    version = 2;
    const newer = await pair.list();
    expect(namesIn(newer)).toEqual(['t0.v2', 't1.v2']);
    const second = await pair.list(at(first.json.result.nextCursor));
    expect(namesIn(second)).toEqual(['t2.v1', 't3.v1']);
    expect(second.json.result.ttlMs).toBe(0);
    expect(second.cacheStatus).toContain('detail=walk-past-expiry');
    expect(namesIn(await pair.list(at(second.json.result.nextCursor)))).toEqual(['t4.v1']);
    expect(namesIn(await pair.list(at(newer.json.result.nextCursor)))).toEqual(['t2.v2', 't3.v2']);
    expect(pair.upstream.count()).toBe(2);
  });

  test('a stale snapshot that answers for a failed upstream can be walked to its end', async () => {
    const pair = closing(await startFive({}, { STALE_IF_ERROR_MS: '7200000' }));
    await pair.list();
    pair.clock.advance(7_000_000);
    await pair.upstream.close();
    const first = await pair.list();
    expect(first.cacheStatus).toContain('fwd=stale');
    const second = await pair.list(at(first.json.result.nextCursor));
    expect(namesIn(second)).toEqual(['t2', 't3']);
    expect(namesIn(await pair.list(at(second.json.result.nextCursor)))).toEqual(['t4']);
  });

  test('a private snapshot is walked by its own context', async () => {
    const pair = closing(await startFive({ cacheScope: 'private' }));
    const first = await pair.list(bearer('a'));
    const second = await pair.list(at(first.json.result.nextCursor, bearer('a')));
    expect(namesIn(second)).toEqual(['t2', 't3']);
    expect(second.json.result.cacheScope).toBe('private');
  });
});

describe('law 13: a cursor that leads nowhere is -32602, never data, and the upstream is not asked', () => {
  test('after a flush', async () => {
    const pair = closing(await startFive());
    const { nextCursor } = (await pair.list()).json.result;
    await pair.flush();
    await expectInvalid(pair, () => pair.list(at(nextCursor)));
    // The client begins again, and what it began before stays invalid.
    expect(namesIn(await pair.list())).toEqual(['t0', 't1']);
    await expectInvalid(pair, () => pair.list(at(nextCursor)));
  });

  test.each(['public', 'private'])('of another context (%s snapshot)', async (cacheScope) => {
    const pair = closing(await startFive({ cacheScope }));
    const { nextCursor } = (await pair.list(bearer('a'))).json.result;
    await pair.list(bearer('b'));
    await expectInvalid(pair, () => pair.list(at(nextCursor, bearer('b'))));
    await expectInvalid(pair, () => pair.list(at(nextCursor)));
    expect(namesIn(await pair.list(at(nextCursor, bearer('a'))))).toEqual(['t2', 't3']);
  });

  test('of another list', async () => {
    const pair = closing(await startFive());
    const { nextCursor } = (await pair.list()).json.result;
    await expectInvalid(pair, () => rpc(pair.url, 'prompts/list', at(nextCursor)));
    await expectInvalid(pair, () => rpc(`${pair.url}?tenant=2`, 'tools/list', at(nextCursor)));
    await expectInvalid(pair, () => rpc(pair.url, 'tools/list', at(nextCursor, { era: 'legacy' })));
  });

  test('of another upstream', async () => {
    const upstream = closing(await startUpstream((req, res) => sendResult(res, req, toolsResult(names(5)))));
    const env = { PAGE_SIZE: '2', UPSTREAM_A_WATCH: 'off', UPSTREAM_B_WATCH: 'off' };
    const gateway = closing(await startGateway({ upstreams: { a: upstream.url, b: upstream.url }, env }));
    const first = await rpc(gateway.endpoint('a'), 'tools/list');
    await rpc(gateway.endpoint('b'), 'tools/list');
    const { nextCursor } = first.json.result;
    const crossed = await rpc(gateway.endpoint('b'), 'tools/list', at(nextCursor));
    expect(crossed.json.error).toEqual(INVALID);
    expect(upstream.count()).toBe(2);
    expect(namesIn(await rpc(gateway.endpoint('a'), 'tools/list', at(nextCursor)))).toEqual(['t2', 't3']);
  });

  test('an altered one, wherever it was altered behind its tag', async () => {
    const pair = closing(await startFive());
    const cursor: string = (await pair.list()).json.result.nextCursor;
    const tagEnd = cursor.indexOf('.', 4);
    for (let i = tagEnd + 1; i < cursor.length; i += 1) {
      if (cursor[i] === '.') continue;
      const changed = cursor[i] === '4' ? '0' : '4';
      const altered = cursor.slice(0, i) + changed + cursor.slice(i + 1);
      await expectInvalid(pair, () => pair.list(at(altered)));
    }
    for (const altered of [`${cursor}A`, cursor.slice(0, -1), cursor.replace(/\.2\./, '.02.')]) {
      await expectInvalid(pair, () => pair.list(at(altered)));
    }
  });
});

describe('law 13, case C05: a cursor that is not the gateway’s goes to the upstream', () => {
  test('byte for byte, with and without PAGE_SIZE, and is not cached', async () => {
    for (const PAGE_SIZE of ['0', '2']) {
      const pair = closing(
        await startPair((req, res) => sendResult(res, req, toolsResult([`for ${req.json.params.cursor}`])), {
          PAGE_SIZE,
        }),
      );
      await pair.list();
      for (const cursor of ['a+b/c==é', '', 'mcg.', 'mcg.AAAAAAAA.x', 'x']) {
        for (const _time of [1, 2]) {
          const asked = pair.upstream.count();
          const answer = await pair.list(at(cursor));
          expect(namesIn(answer)).toEqual([`for ${cursor}`]);
          expect(answer.cacheStatus).toBe('mcp-cache-gateway; fwd=bypass; detail=has-cursor');
          expect(pair.upstream.count()).toBe(asked + 1);
        }
      }
    }
  });
});
