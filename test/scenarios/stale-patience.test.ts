import { describe, expect, test } from 'vitest';
import { useClosers } from '../support/closers.js';
import { createGate, until } from '../support/gate.js';
import { logged, moreSleepers, namesIn, startPair, toolsResult } from '../support/pair.js';
import { beginEvents, sendEvent, sendResult } from '../support/upstream.js';

const closing = useClosers();

const SLOW = 'mcp-cache-gateway; fwd=stale; detail=upstream-slow';

/** A list that is stale, and an upstream that holds its next answer at a gate. */
async function startHeld(env: Record<string, string> = {}) {
  const gate = createGate();
  let isClosed = false;
  const pair = closing(
    await startPair(async (req, res) => {
      const isFirst = pair.upstream.count() === 1;
      if (!isFirst) {
        res.on('close', () => {
          isClosed = true;
        });
        await gate.pass();
      }
      sendResult(res, req, toolsResult([isFirst ? 'old' : 'new']));
    }, env),
  );
  await pair.list();
  pair.clock.advance(60_000);
  return { pair, gate, isClosed: () => isClosed };
}

describe('law 17: a refetch waits 2 s for the head of the answer while a stale entry is at hand', () => {
  test('then the stale entry goes out, and the slow fetch still refreshes it', async () => {
    const { pair, gate, isClosed } = await startHeld();
    const more = moreSleepers(pair.clock);
    const asked = pair.list({ id: 'slow' });
    await more(2);
    pair.clock.advance(1_999);
    await gate.arrivals(1);
    expect(logged(pair.gateway, 'request')).toHaveLength(1);
    pair.clock.advance(1);
    const answer = await asked;
    expect(answer.json.id).toBe('slow');
    expect(namesIn(answer)).toEqual(['old']);
    expect(answer.json.result.ttlMs).toBe(0);
    expect(answer.cacheStatus).toBe(SLOW);
    expect(isClosed()).toBe(false);
    gate.open();
    await until(async () => namesIn(await pair.list())[0] === 'new');
    const fresh = await pair.list();
    expect(fresh.cacheStatus).toContain('; hit;');
    expect(pair.upstream.count()).toBe(2);
  });

  test('who joins later is freed with the first, and asks the upstream no second time', async () => {
    const { pair, gate } = await startHeld();
    const more = moreSleepers(pair.clock);
    const first = pair.list();
    await more(2);
    pair.clock.advance(1_500);
    const second = pair.list();
    await more(3);
    pair.clock.advance(500);
    for (const answer of await Promise.all([first, second])) {
      expect(namesIn(answer)).toEqual(['old']);
      expect(answer.cacheStatus).toBe(SLOW);
    }
    // While the fetch still hangs, nobody waits for it again.
    expect(namesIn(await pair.list())).toEqual(['old']);
    pair.clock.advance(1_000);
    expect(namesIn(await pair.list())).toEqual(['old']);
    expect(pair.upstream.count()).toBe(2);
    gate.open();
    await until(async () => namesIn(await pair.list())[0] === 'new');
  });

  test('a flush in these 2 s leaves only the upstream to answer', async () => {
    const { pair, gate } = await startHeld();
    const more = moreSleepers(pair.clock);
    const asked = pair.list();
    await more(2);
    await pair.flush();
    pair.clock.advance(2_000);
    await gate.arrivals(1);
    expect(logged(pair.gateway, 'request')).toHaveLength(1);
    gate.open();
    expect(namesIn(await asked)).toEqual(['new']);
  });

  test('a client that leaves in them ends the upstream request', async () => {
    const { pair, gate, isClosed } = await startHeld();
    const leaving = new AbortController();
    const asked = expect(pair.list({ signal: leaving.signal })).rejects.toThrow();
    await gate.arrivals(1);
    leaving.abort();
    await asked;
    await until(isClosed);
  });

  test('the fetch that goes on alone ends with UPSTREAM_TIMEOUT_MS, even if its stream begins', async () => {
    let isClosed = false;
    const gate = createGate();
    const pair = closing(
      await startPair(
        async (req, res) => {
          if (pair.upstream.count() === 1) {
            sendResult(res, req, toolsResult(['old']));
            return;
          }
          res.on('close', () => {
            isClosed = true;
          });
          await gate.pass();
          beginEvents(res);
          sendEvent(res, {
            jsonrpc: '2.0',
            method: 'notifications/message',
            params: { level: 'info', data: 1 },
          });
          sendEvent(res, { jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
        },
        { UPSTREAM_TIMEOUT_MS: '10000' },
      ),
    );
    await pair.list();
    pair.clock.advance(60_000);
    const more = moreSleepers(pair.clock);
    const asked = pair.list();
    await more(2);
    pair.clock.advance(2_000);
    expect((await asked).cacheStatus).toBe(SLOW);
    gate.open();
    // The flush shows that the messages have been read.
    await until(() => logged(pair.gateway, 'flushed').some((line) => line.reason === 'tap'));
    expect(isClosed).toBe(false);
    pair.clock.advance(8_000);
    await until(() => isClosed);
  });
});
