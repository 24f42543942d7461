import { describe, expect, test } from 'vitest';
import { rpc } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { createGate, until } from '../support/gate.js';
import { bearer, moreSleepers, namesIn, type Pair, startPair, toolsResult } from '../support/pair.js';
import { type Respond, type SeenRequest, sendError, sendJson, sendResult } from '../support/upstream.js';

const closing = useClosers();

/** Fills the cache for a minute with the list of one tool, then answers by `fail`. */
async function startFailing(fail: Respond, env: Record<string, string> = {}): Promise<Pair> {
  let isFilled = false;
  const pair = closing(
    await startPair((req, res) => {
      if (isFilled) return fail(req, res);
      sendResult(res, req, toolsResult(['kept']));
    }, env),
  );
  await pair.list();
  isFilled = true;
  return pair;
}

const unavailable: Respond = (_req, res) => sendJson(res, { oops: true }, 503);
const STALE_FAILED = 'mcp-cache-gateway; fwd=stale; detail=upstream-failed';

describe('law 17: the refetch fails and a stale entry is served', () => {
  test.each<[string, Respond]>([
    ['an answer 500', (_req, res) => sendJson(res, '{}', 500)],
    ['an answer 502', (_req, res) => sendJson(res, 'bad gateway', 502, { 'content-type': 'text/plain' })],
    ['an answer 503', unavailable],
    ['a broken connection', (_req, res) => void res.destroy()],
    [
      'an answer that breaks off',
      (_req, res) => {
        res.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
        res.write('{"jsonrpc":"2.0",', () => res.destroy());
      },
    ],
    [
      'a stream that breaks off before the answer',
      (_req, res) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' });
        res.write(':\n\n', () => res.destroy());
      },
    ],
  ])('upon %s', async (_what, fail) => {
    const pair = await startFailing(fail);
    pair.clock.advance(60_000);
    const answer = await pair.list({ id: 'mine' });
    expect(answer.status).toBe(200);
    expect(answer.json.id).toBe('mine');
    expect(namesIn(answer)).toEqual(['kept']);
    expect(answer.json.result).toMatchObject({ ttlMs: 0, cacheScope: 'public', resultType: 'complete' });
    expect(answer.cacheStatus).toBe(STALE_FAILED);
    expect(answer.headers.get('age')).toBe('60');
    expect(pair.upstream.count()).toBe(2);
  });

  test('upon a refused connection', async () => {
    const pair = await startFailing(unavailable);
    await pair.upstream.close();
    pair.clock.advance(60_000);
    const answer = await pair.list();
    expect(namesIn(answer)).toEqual(['kept']);
    expect(answer.cacheStatus).toBe(STALE_FAILED);
  });

  test('upon a timeout behind the head of the answer', async () => {
    const pair = await startFailing(
      (_req, res) => {
        res.writeHead(200, { 'content-type': 'application/json' });
        res.flushHeaders();
      },
      { UPSTREAM_TIMEOUT_MS: '10000' },
    );
    pair.clock.advance(60_000);
    const more = moreSleepers(pair.clock);
    const asked = pair.list();
    await more(2);
    await until(() => pair.upstream.count() === 2);
    pair.clock.advance(10_000);
    const answer = await asked;
    expect(namesIn(answer)).toEqual(['kept']);
    expect(answer.json.result.ttlMs).toBe(0);
  });

  test('to everybody who waited for that refetch', async () => {
    const gate = createGate();
    const pair = await startFailing(async (req, res) => {
      await gate.pass();
      await unavailable(req, res);
    });
    pair.clock.advance(60_000);
    const more = moreSleepers(pair.clock);
    const asked = Array.from({ length: 20 }, () => pair.list());
    await more(21);
    gate.open();
    const answers = await Promise.all(asked);
    expect(answers.map(namesIn)).toEqual(Array(20).fill(['kept']));
    expect(answers.map((answer) => answer.json.result.ttlMs)).toEqual(Array(20).fill(0));
    expect(pair.upstream.count()).toBe(2);
  });
});

describe('law 17: how long', () => {
  test('the window ends STALE_IF_ERROR_MS after the lifetime', async () => {
    const pair = await startFailing(unavailable, { STALE_IF_ERROR_MS: '5000' });
    pair.clock.advance(60_000 + 4_999);
    expect((await pair.list()).cacheStatus).toBe(STALE_FAILED);
    pair.clock.advance(1);
    const late = await pair.list();
    expect([late.status, late.text]).toEqual([503, '{"oops":true}']);
    expect(late.cacheStatus).toBe('mcp-cache-gateway; fwd=stale; detail=status');
  });

  test('with STALE_IF_ERROR_MS=0 every failure reaches the client', async () => {
    const pair = await startFailing(unavailable, { STALE_IF_ERROR_MS: '0' });
    pair.clock.advance(60_000);
    expect((await pair.list()).status).toBe(503);
    await pair.upstream.close();
    expect((await pair.list()).status).toBe(502);
  });
});

describe('law 17: never after a flush', () => {
  test('a flush takes the stale entry away', async () => {
    const pair = await startFailing(unavailable);
    pair.clock.advance(60_000);
    await pair.flush();
    expect((await pair.list()).status).toBe(503);
  });

  test('a flush that comes during the refetch does so too', async () => {
    const gate = createGate();
    const pair = await startFailing(async (req, res) => {
      await gate.pass();
      await unavailable(req, res);
    });
    pair.clock.advance(60_000);
    const more = moreSleepers(pair.clock);
    const asked = [pair.list(), pair.list()];
    await more(3);
    await pair.flush();
    gate.open();
    for (const answer of await Promise.all(asked)) expect(answer.status).toBe(503);
  });
});

const errorOf = (code: number) => `{"jsonrpc":"2.0","id":5,"error":{"code":${code},"message":"no"}}`;

describe('law 17: the upstream’s word is relayed, never papered over', () => {
  test.each<[string, Respond, number, string]>([
    ['400', (req, res) => sendError(res, req, -32600, 400), 400, errorOf(-32600)],
    ['404', (req, res) => sendError(res, req, -32601, 404), 404, errorOf(-32601)],
    [
      '429',
      (_req, res) => sendJson(res, '{"slow":"down"}', 429, { 'retry-after': '7' }),
      429,
      '{"slow":"down"}',
    ],
    ['a JSON-RPC error', (req, res) => sendError(res, req, -32603), 200, errorOf(-32603)],
    ['invalid params', (req, res) => sendError(res, req, -32602), 200, errorOf(-32602)],
  ])('%s', async (_what, respond, status, body) => {
    const pair = await startFailing(respond);
    pair.clock.advance(60_000);
    const answer = await pair.list({ id: 5 });
    expect([answer.status, answer.text]).toEqual([status, body]);
    expect(answer.headers.get('retry-after')).toBe(status === 429 ? '7' : null);
    // Nor does it keep the upstream from being asked again.
    await pair.list();
    expect(pair.upstream.count()).toBe(3);
  });

  const tokenOf = (req: SeenRequest) => String(req.headers.authorization).replace('Bearer ', '');

  test.each([401, 403])(
    '%i, which also drops that context’s private entries, and no others',
    async (status) => {
      let revoked = '';
      const pair = closing(
        await startPair((req, res) => {
          const token = tokenOf(req);
          if (token === revoked) {
            sendError(res, req, -32000, status);
            return;
          }
          sendResult(res, req, toolsResult([`of-${token}`], { cacheScope: 'private' }));
        }),
      );
      await pair.list(bearer('a'));
      await pair.list(bearer('b'));
      revoked = 'a';
      const refused = await rpc(pair.url, 'tools/call', { params: { name: 'x' }, ...bearer('a') });
      expect(refused.status).toBe(status);
      // Neither fresh nor stale.
      expect((await pair.list(bearer('a'))).status).toBe(status);
      expect((await pair.list(bearer('b'))).cacheStatus).toContain('; hit;');
      await pair.upstream.close();
      expect((await pair.list(bearer('a'))).status).toBe(502);
      pair.clock.advance(60_000);
      expect(namesIn(await pair.list(bearer('b')))).toEqual(['of-b']);
    },
  );

  test('401 upon a refetch, with its challenge, though a stale entry is at hand', async () => {
    const challenge = 'Bearer realm="u", error="invalid_token"';
    const pair = await startFailing((_req, res) =>
      sendJson(res, '{"error":"invalid_token"}', 401, { 'www-authenticate': challenge }),
    );
    pair.clock.advance(60_000);
    const answer = await pair.list(bearer('a'));
    expect([answer.status, answer.text]).toEqual([401, '{"error":"invalid_token"}']);
    expect(answer.headers.get('www-authenticate')).toBe(challenge);
  });
});
