import { describe, expect, test } from 'vitest';
import { useClosers } from '../support/closers.js';
import { createGate, until } from '../support/gate.js';
import { logged, moreSleepers, namesIn, startPair, toolsResult } from '../support/pair.js';
import { beginEvents, sendEvent, sendResult } from '../support/upstream.js';

const closing = useClosers();

describe('law 16: the one that fetches leaves', () => {
  test('the fetch goes on for the others', async () => {
    const gate = createGate();
    const pair = closing(
      await startPair(async (req, res) => {
        await gate.pass();
        sendResult(res, req, toolsResult(['t']));
      }),
    );
    const more = moreSleepers(pair.clock);
    const leaving = new AbortController();
    const leader = expect(pair.list({ signal: leaving.signal })).rejects.toThrow();
    await gate.arrivals(1);
    const others = [pair.list({ id: 'b' }), pair.list({ id: 'c' })];
    await more(3);
    leaving.abort();
    await leader;
    await until(() => logged(pair.gateway, 'request').length === 1);
    gate.open();
    const answers = await Promise.all(others);
    expect(answers.map((answer) => answer.json.id)).toEqual(['b', 'c']);
    expect(answers.map(namesIn)).toEqual([['t'], ['t']]);
    expect(pair.upstream.count()).toBe(1);
  });

  test('the upstream request ends when the last one leaves, and not before', async () => {
    const gate = createGate();
    let isClosed = false;
    const pair = closing(
      await startPair(async (_req, res) => {
        res.on('close', () => {
          isClosed = true;
        });
        await gate.pass();
      }),
    );
    const more = moreSleepers(pair.clock);
    const leaving = Array.from({ length: 3 }, () => new AbortController());
    const asked = Promise.allSettled(leaving.map(({ signal }) => pair.list({ signal })));
    await more(3);
    for (const [i, controller] of leaving.entries()) {
      expect(isClosed).toBe(false);
      controller.abort();
      await until(() => logged(pair.gateway, 'request').length === i + 1);
    }
    expect((await asked).map(({ status }) => status)).toEqual(Array(3).fill('rejected'));
    await until(() => isClosed);
  });

  test('one that leaves in mid-walk leaves no trace: the next walk is a whole one', async () => {
    const gate = createGate();
    const pair = closing(
      await startPair(async (req, res) => {
        const isSecond = req.json.params.cursor !== undefined;
        if (pair.upstream.count() === 2) await gate.pass();
        else sendResult(res, req, toolsResult([isSecond ? 't2' : 't1'], isSecond ? {} : { nextCursor: '2' }));
      }),
    );
    const leaving = new AbortController();
    const leader = expect(pair.list({ signal: leaving.signal })).rejects.toThrow();
    await gate.arrivals(1);
    leaving.abort();
    await leader;
    await until(() => logged(pair.gateway, 'request').length === 1);
    const next = await pair.list();
    expect(namesIn(next)).toEqual(['t1', 't2']);
    expect(next.cacheStatus).toContain('; stored');
    expect(logged(pair.gateway, 'not stored')).toEqual([]);
  });

  test('law 23: one that leaves while its own stream goes on behind the answer ends the upstream request', async () => {
    let isClosed = false;
    const pair = closing(
      await startPair((req, res) => {
        res.on('close', () => {
          isClosed = true;
        });
        beginEvents(res);
        sendEvent(res, { jsonrpc: '2.0', id: req.json.id, result: toolsResult(['t']) });
      }),
    );
    const leaving = new AbortController();
    const leader = expect(pair.list({ signal: leaving.signal })).rejects.toThrow();
    await until(() => pair.upstream.count() === 1);
    // Another caller's hit shows that the answer has come.
    await until(async () => (await pair.list()).cacheStatus.includes('; hit;'));
    expect(isClosed).toBe(false);
    leaving.abort();
    await leader;
    await until(() => isClosed);
  });
});

describe('laws 15 and 16: what belongs to the one that fetches', () => {
  test('messages before the answer, and the fields of the answer, go to nobody else', async () => {
    const gate = createGate();
    const pair = closing(
      await startPair(async (req, res) => {
        await gate.pass();
        beginEvents(res, { 'set-cookie': 'a=1', 'mcp-session-id': 's', 'x-request-id': 'r' });
        const params = { progressToken: 'p', progress: 1 };
        sendEvent(res, { jsonrpc: '2.0', method: 'notifications/progress', params });
        sendEvent(res, { jsonrpc: '2.0', id: req.json.id, result: toolsResult(['t']) });
        res.end();
      }),
    );
    const more = moreSleepers(pair.clock);
    const leader = pair.list({ id: 'first' });
    await gate.arrivals(1);
    const other = pair.list({ id: 'second' });
    await more(2);
    gate.open();
    const led = await leader;
    expect(led.headers.get('content-type')).toBe('text/event-stream');
    expect(led.headers.get('set-cookie')).toBe('a=1');
    expect(led.text).toContain('notifications/progress');
    expect(led.text).toContain('"id":"first"');
    const joined = await other;
    expect(joined.json).toEqual({ jsonrpc: '2.0', id: 'second', result: expect.anything() });
    expect(joined.cacheStatus).toContain('; collapsed;');
    for (const name of ['set-cookie', 'mcp-session-id', 'x-request-id']) {
      expect(joined.headers.get(name)).toBeNull();
    }
    expect(pair.upstream.count()).toBe(1);
  });
});

describe('law 16: the fetch fails', () => {
  test('those who waited make their own, at once and in parallel', async () => {
    const gates = [createGate(), createGate()];
    const pair = closing(
      await startPair(async (req, res) => {
        const isFirst = pair.upstream.count() === 1;
        await gates[isFirst ? 0 : 1]?.pass();
        if (isFirst) res.destroy();
        else sendResult(res, req, toolsResult(['t']));
      }),
    );
    const more = moreSleepers(pair.clock);
    const leader = pair.list();
    await gates[0]?.arrivals(1);
    const others = [pair.list(), pair.list(), pair.list()];
    await more(4);
    gates[0]?.open();
    expect((await leader).status).toBe(502);
    await gates[1]?.arrivals(3);
    gates[1]?.open();
    for (const answer of await Promise.all(others)) expect(namesIn(answer)).toEqual(['t']);
    expect(pair.upstream.count()).toBe(4);
  });
});

describe('law 16, case C48: the upstream hangs', () => {
  const TIMEOUT_MS = 10_000;

  const startHanging = async () => {
    let hangs = true;
    const pair = closing(
      await startPair(
        (req, res) => {
          if (!hangs) sendResult(res, req, toolsResult(['t']));
        },
        { UPSTREAM_TIMEOUT_MS: String(TIMEOUT_MS) },
      ),
    );
    const recover = () => {
      hangs = false;
    };
    return { pair, recover };
  };

  test('all who wait are freed after the timeout, and the next request tries anew', async () => {
    const { pair, recover } = await startHanging();
    const more = moreSleepers(pair.clock);
    const asked = [pair.list(), pair.list(), pair.list()];
    await more(3);
    await until(() => pair.upstream.count() >= 1);
    expect(pair.upstream.count()).toBe(1);
    // Half the time without a sign of life is as long as anybody waits for another's fetch.
    pair.clock.advance(TIMEOUT_MS / 2);
    await until(() => pair.upstream.count() === 3);
    pair.clock.advance(TIMEOUT_MS / 2);
    const answers = await Promise.all(asked);
    expect(answers.map((answer) => answer.status)).toEqual([504, 504, 504]);
    expect(answers[0]?.cacheStatus).toBe('mcp-cache-gateway; fwd=miss; detail=upstream-timeout');
    recover();
    const next = await pair.list();
    expect(namesIn(next)).toEqual(['t']);
    expect(next.cacheStatus).toContain('; stored');
  });

  test('one whose own fetch is answered is not held up by the one that hangs', async () => {
    const { pair, recover } = await startHanging();
    const more = moreSleepers(pair.clock);
    const leader = pair.list();
    await more(1);
    const other = pair.list();
    await more(2);
    recover();
    pair.clock.advance(TIMEOUT_MS / 2);
    expect(namesIn(await other)).toEqual(['t']);
    pair.clock.advance(TIMEOUT_MS / 2);
    expect((await leader).status).toBe(504);
  });

  test('one who joins late waits no longer than its own timeout', async () => {
    const { pair } = await startHanging();
    const more = moreSleepers(pair.clock);
    const leader = pair.list();
    await more(1);
    pair.clock.advance(TIMEOUT_MS - 1_000);
    const late = pair.list();
    await more(2);
    pair.clock.advance(1_000);
    expect((await leader).status).toBe(504);
    await until(() => pair.upstream.count() === 2);
    pair.clock.advance(TIMEOUT_MS - 1_000);
    expect((await late).status).toBe(504);
  });
});
