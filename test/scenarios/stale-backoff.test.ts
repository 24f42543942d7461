import { describe, expect, test } from 'vitest';
import { useClosers } from '../support/closers.js';
import { createGate } from '../support/gate.js';
import { bearer, moreSleepers, namesIn, type Pair, startPair, toolsResult } from '../support/pair.js';
import { type Respond, sendError, sendJson, sendResult } from '../support/upstream.js';

const closing = useClosers();

const BACKOFF = 'mcp-cache-gateway; fwd=stale; detail=backoff';
const FAILED = 'mcp-cache-gateway; fwd=stale; detail=upstream-failed';

/** A cache that holds a list which has just become stale, before an upstream that answers by `respond` from now on. */
async function startStale(respond: Respond, fields: Record<string, unknown> = {}): Promise<Pair> {
  let isFilled = false;
  const pair = closing(
    await startPair((req, res) => {
      if (isFilled) return respond(req, res);
      sendResult(res, req, toolsResult(['kept'], fields));
    }),
  );
  await pair.list(bearer('first'));
  isFilled = true;
  pair.clock.advance(60_000);
  return pair;
}

const unavailable: Respond = (_req, res) => sendJson(res, '{}', 503);

describe('law 17: after a failure the upstream is not asked again before a backoff', () => {
  test.each<[string, Respond]>([
    ['503', unavailable],
    ['broken connections', (_req, res) => void res.destroy()],
  ])('of 1 s doubling to 30 s, jittered, while the stale entry answers at once (%s)', async (_what, fail) => {
    const pair = await startStale(fail);
    let asked = 1;
    for (const seconds of [1, 2, 4, 8, 16, 30, 30]) {
      expect((await pair.list()).cacheStatus).toBe(FAILED);
      asked += 1;
      expect(pair.upstream.count()).toBe(asked);
      expect((await pair.list()).cacheStatus).toBe(BACKOFF);
      // At least half of it, whatever the jitter.
      pair.clock.advance(seconds * 500);
      const during = await pair.list();
      expect(during.cacheStatus).toBe(BACKOFF);
      expect(during.json.result.ttlMs).toBe(0);
      expect(namesIn(during)).toEqual(['kept']);
      expect(pair.upstream.count()).toBe(asked);
      pair.clock.advance(seconds * 500);
    }
  });

  test('failures of fetches that were under way together count as one', async () => {
    const gate = createGate();
    let fails = true;
    const pair = closing(
      await startPair(async (req, res) => {
        if (pair.upstream.count() > 3 && fails) {
          await gate.pass();
          res.destroy();
        } else sendResult(res, req, toolsResult(['kept'], { cacheScope: 'private' }));
      }),
    );
    const tokens = ['a', 'b', 'c'].map(bearer);
    for (const token of tokens) await pair.list(token);
    pair.clock.advance(60_000);
    const asked = tokens.map((token) => pair.list(token));
    await gate.arrivals(3);
    gate.open();
    for (const answer of await Promise.all(asked)) expect(answer.cacheStatus).toBe(FAILED);
    fails = false;
    pair.clock.advance(1_000);
    for (const token of tokens) expect((await pair.list(token)).cacheStatus).toContain('; stored');
  });

  test('one public list is one key, whoever asks', async () => {
    const pair = await startStale((_req, res) => sendJson(res, '{}', 503, { 'retry-after': '5' }));
    expect((await pair.list(bearer('a'))).cacheStatus).toBe(FAILED);
    expect((await pair.list(bearer('b'))).cacheStatus).toBe(BACKOFF);
    expect(pair.upstream.count()).toBe(2);
  });

  test('all contexts that wait together for a public list cost one failing request', async () => {
    const gate = createGate();
    const pair = await startStale(async (req, res) => {
      await gate.pass();
      await unavailable(req, res);
    });
    const more = moreSleepers(pair.clock);
    const asked = Array.from({ length: 30 }, (_, i) => pair.list(bearer(`t${i}`)));
    await more(31);
    gate.open();
    for (const answer of await Promise.all(asked)) expect(namesIn(answer)).toEqual(['kept']);
    expect(pair.upstream.count()).toBe(2);
  });

  test('a caller without a stale entry of its own is not held off', async () => {
    const pair = await startStale(unavailable, { cacheScope: 'private' });
    expect((await pair.list(bearer('first'))).cacheStatus).toBe(FAILED);
    expect((await pair.list(bearer('other'))).status).toBe(503);
    expect((await pair.list(bearer('other'))).status).toBe(503);
    expect(pair.upstream.count()).toBe(4);
  });

  test('a success ends it, and the next failure begins at 1 s again', async () => {
    let fails = true;
    const pair = await startStale((req, res) => {
      if (fails) return unavailable(req, res);
      sendResult(res, req, toolsResult(['new']));
    });
    for (const seconds of [1, 2, 4]) {
      await pair.list();
      pair.clock.advance(seconds * 1_000);
    }
    fails = false;
    expect(namesIn(await pair.list())).toEqual(['new']);
    expect((await pair.list()).cacheStatus).toContain('; hit;');
    pair.clock.advance(60_000);
    fails = true;
    expect((await pair.list()).cacheStatus).toBe(FAILED);
    pair.clock.advance(1_000);
    expect((await pair.list()).cacheStatus).toBe(FAILED);
  });

  test('the upstream’s own word that is no failure ends it as well', async () => {
    let respond: Respond = unavailable;
    const pair = await startStale((req, res) => respond(req, res));
    await pair.list();
    pair.clock.advance(1_000);
    respond = (req, res) => sendError(res, req, -32603);
    expect((await pair.list()).json.error.code).toBe(-32603);
    expect((await pair.list()).json.error.code).toBe(-32603);
  });
});

describe('law 17: Retry-After', () => {
  const DATE = 'Sun, 06 Nov 1994 08:49:37 GMT';
  const LATER = 'Sun, 06 Nov 1994 08:49:57 GMT';

  test.each([
    ['seconds', { 'retry-after': '20' }],
    ['a date, measured by the upstream’s own', { 'retry-after': LATER, date: DATE }],
  ])('is honoured where it asks for more than the backoff (%s)', async (_what, headers) => {
    const pair = await startStale((_req, res) => sendJson(res, '{}', 503, headers));
    expect((await pair.list()).cacheStatus).toBe(FAILED);
    pair.clock.advance(19_999);
    expect((await pair.list()).cacheStatus).toBe(BACKOFF);
    pair.clock.advance(1);
    expect((await pair.list()).cacheStatus).toBe(FAILED);
    expect(pair.upstream.count()).toBe(3);
  });

  test('does not shorten the backoff', async () => {
    const pair = await startStale((_req, res) => sendJson(res, '{}', 503, { 'retry-after': '0' }));
    await pair.list();
    pair.clock.advance(500);
    expect((await pair.list()).cacheStatus).toBe(BACKOFF);
  });
});

describe('law 17: never after a flush', () => {
  test('a flush in the backoff sends the next request to the upstream', async () => {
    const pair = await startStale(unavailable);
    expect((await pair.list()).cacheStatus).toBe(FAILED);
    await pair.flush();
    expect((await pair.list()).status).toBe(503);
    expect(pair.upstream.count()).toBe(3);
  });
});
