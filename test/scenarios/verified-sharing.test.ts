import { describe, expect, test } from 'vitest';
import { post, rpc } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { createGate, until } from '../support/gate.js';
import { bearer, logged, moreSleepers, namesIn, type Pair, startPair, toolsResult } from '../support/pair.js';
import { type Respond, type SeenRequest, sendError, sendJson, sendResult } from '../support/upstream.js';

const closing = useClosers();

const VERIFIED = { PUBLIC_SHARING: 'verified', VERIFIED_TTL_MS: '10000' };
const HIT = '; hit;';

const tokenOf = (req: SeenRequest) => String(req.headers.authorization ?? 'nobody').replace('Bearer ', '');

/** A public list; `refused` tells which callers the upstream does not accept, and how it says so. */
async function startVerified(
  refused: Record<string, number> = {},
  env: Record<string, string> = {},
): Promise<Pair> {
  let lists = 0;
  return closing(
    await startPair(
      (req, res) => {
        const status = refused[tokenOf(req)];
        if (status !== undefined) sendError(res, req, -32000, status);
        else if (req.json?.method === 'tools/list') {
          lists += 1;
          sendResult(res, req, toolsResult([`n${lists}`]));
        } else if (req.json?.id === undefined) res.writeHead(202).end();
        else sendResult(res, req, { resultType: 'complete', content: [] });
      },
      { ...VERIFIED, ...env },
    ),
  );
}

describe('PUBLIC_SHARING=verified: a public entry is served only to callers whom the upstream accepted', () => {
  test('the first request of a new credential goes upstream, and its answer refreshes the entry', async () => {
    const { list, upstream } = await startVerified();
    const first = await list(bearer('a'));
    expect((await list(bearer('a'))).cacheStatus).toContain(HIT);
    const second = await list(bearer('b'));
    expect(second.cacheStatus).toContain('fwd=miss; stored');
    expect(namesIn(second)).not.toEqual(namesIn(first));
    expect(upstream.count()).toBe(2);
    // What the newcomer brought is what all have now.
    for (const token of ['a', 'b']) {
      const again = await list(bearer(token));
      expect(again.cacheStatus).toContain(HIT);
      expect(namesIn(again)).toEqual(namesIn(second));
    }
    expect(upstream.count()).toBe(2);
  });

  test('with PUBLIC_SHARING=any it is served to everybody', async () => {
    const { list, upstream } = await startVerified({}, { PUBLIC_SHARING: 'any' });
    await list(bearer('a'));
    expect((await list(bearer('b'))).cacheStatus).toContain(HIT);
    expect((await list()).cacheStatus).toContain(HIT);
    expect(upstream.count()).toBe(1);
  });

  test('a caller whom the upstream refuses gets its refusal, each time', async () => {
    const { list, upstream } = await startVerified({ bad: 401 });
    await list(bearer('a'));
    for (const n of [2, 3]) {
      const answer = await list(bearer('bad'));
      expect(answer.status).toBe(401);
      expect(answer.text).not.toContain('tools');
      expect(upstream.count()).toBe(n);
    }
    expect((await list(bearer('a'))).cacheStatus).toContain(HIT);
  });

  test('callers without credentials are a context that must be accepted as well', async () => {
    const { list, upstream } = await startVerified();
    await list(bearer('a'));
    expect((await list()).cacheStatus).toContain('fwd=miss; stored');
    expect((await list()).cacheStatus).toContain(HIT);
    expect(upstream.count()).toBe(2);
    const closed = await startVerified({ nobody: 401 });
    await closed.list(bearer('a'));
    expect((await closed.list()).status).toBe(401);
    expect((await closed.list()).status).toBe(401);
  });

  test('any 2xx to a request with the credential accepts it', async () => {
    const { list, url, upstream } = await startVerified();
    await list(bearer('a'));
    await rpc(url, 'tools/call', { params: { name: 'x' }, ...bearer('b') });
    expect((await list(bearer('b'))).cacheStatus).toContain(HIT);
    const { headers } = bearer('c');
    const note = await post(url, '{"jsonrpc":"2.0","method":"notifications/x"}', {
      'content-type': 'application/json',
      ...headers,
    });
    expect(note.status).toBe(202);
    expect((await list(bearer('c'))).cacheStatus).toContain(HIT);
    expect(upstream.count('tools/list')).toBe(1);
  });

  test.each([400, 404, 429, 500])('a %i neither accepts nor forgets a credential', async (status) => {
    const refused: Record<string, number> = { b: status };
    const { list, url, upstream } = await startVerified(refused);
    await list(bearer('a'));
    await list(bearer('b'));
    delete refused.b;
    expect((await list(bearer('b'))).cacheStatus).toContain('fwd=miss');
    refused.b = status;
    await rpc(url, 'tools/call', { params: { name: 'x' }, ...bearer('b') });
    expect((await list(bearer('b'))).cacheStatus).toContain(HIT);
    expect(upstream.count('tools/list')).toBe(3);
  });

  test('it ends VERIFIED_TTL_MS after the upstream last accepted it; a hit does not prolong it', async () => {
    const { list, clock, upstream } = await startVerified();
    await list(bearer('a'));
    clock.advance(9_999);
    expect((await list(bearer('a'))).cacheStatus).toContain(HIT);
    clock.advance(1);
    expect((await list(bearer('a'))).cacheStatus).toContain('; stored');
    expect(upstream.count()).toBe(2);
    expect((await list(bearer('a'))).cacheStatus).toContain(HIT);
  });

  test.each([401, 403])('a %i forgets it at once', async (status) => {
    const refused: Record<string, number> = {};
    const { list, url, upstream } = await startVerified(refused);
    await list(bearer('a'));
    await list(bearer('b'));
    refused.a = status;
    await rpc(url, 'tools/call', { params: { name: 'x' }, ...bearer('a') });
    expect((await list(bearer('a'))).status).toBe(status);
    expect((await list(bearer('b'))).cacheStatus).toContain(HIT);
    expect(upstream.count('tools/list')).toBe(3);
  });

  test('one upstream’s word is not another’s', async () => {
    const one = await startVerified();
    const other = await startVerified({ a: 401 });
    await one.list(bearer('a'));
    await other.list(bearer('b'));
    expect((await other.list(bearer('a'))).status).toBe(401);
  });
});

describe('PUBLIC_SHARING=verified and what is stale, paged or under way', () => {
  test('an unknown caller is not answered with a stale entry either', async () => {
    const { list, clock, upstream } = await startVerified({}, { VERIFIED_TTL_MS: '3600000' });
    await list(bearer('a'));
    clock.advance(60_000);
    await upstream.close();
    expect((await list(bearer('a'))).json.result.ttlMs).toBe(0);
    expect((await list(bearer('b'))).status).toBe(502);
  });

  test('a cursor of the gateway’s is worth nothing to a caller who was refused meanwhile', async () => {
    const refused: Record<string, number> = {};
    let names = ['t1', 't2', 't3'];
    const { list, url, clock, upstream } = closing(
      await startPair(
        (req, res) => {
          if (refused[tokenOf(req)] !== undefined) sendJson(res, '{}', 401);
          else sendResult(res, req, toolsResult(names));
        },
        { ...VERIFIED, PAGE_SIZE: '1' },
      ),
    );
    const first = await list(bearer('a'));
    const { nextCursor } = first.json.result;
    const next = () => list({ params: { cursor: nextCursor }, ...bearer('a') });
    expect(namesIn(await next())).toEqual(['t2']);
    refused.a = 401;
    await rpc(url, 'tools/call', { params: { name: 'x' }, ...bearer('a') });
    const asked = upstream.count();
    expect((await next()).json.error.code).toBe(-32602);
    expect(upstream.count()).toBe(asked);
    delete refused.a;
    names = ['t4'];
    expect(namesIn(await list(bearer('a')))).toEqual(['t4']);
    clock.advance(10_000);
    expect((await next()).json.error.code).toBe(-32602);
  });

  /** A public list that was fetched by `a` and then flushed, so that contexts wait for each other. */
  async function startWaiting(respond: (req: SeenRequest, isFirst: boolean) => Promise<number>) {
    const held: Respond = async (req, res) => {
      const isFirst = started.upstream.count() === 1;
      const status = await respond(req, isFirst);
      if (status === 200) sendResult(res, req, toolsResult([`by-${tokenOf(req)}`]));
      else sendJson(res, '{}', status);
    };
    const started = closing(await startPair(held, { ...VERIFIED, VERIFIED_TTL_MS: '3600000' }));
    await started.list(bearer('a'));
    return started;
  }

  test('an unknown caller waits for nobody, and gets what its own fetch brings', async () => {
    const gate = createGate();
    const started = await startWaiting(async (_req, isFirst) => {
      if (!isFirst) await gate.pass();
      return 200;
    });
    await started.flush();
    const known = started.list(bearer('a'));
    await gate.arrivals(1);
    const unknown = started.list(bearer('b'));
    await gate.arrivals(2);
    gate.open();
    expect(namesIn(await unknown)).toEqual(['by-b']);
    expect(namesIn(await known).length).toBe(1);
    expect(started.upstream.requests.slice(1).map(tokenOf)).toEqual(['a', 'b']);
  });

  test('a caller who is refused while it waits is not given what it waited for', async () => {
    const gate = createGate();
    let isRevoked = false;
    const started = await startWaiting(async (req, isFirst) => {
      if (req.json.method === 'tools/call') return isRevoked ? 401 : 200;
      if (isRevoked && tokenOf(req) === 'b') return 401;
      if (!isFirst && tokenOf(req) === 'a') await gate.pass();
      return 200;
    });
    await started.list(bearer('b'));
    await started.flush();
    const more = moreSleepers(started.clock);
    const leader = started.list(bearer('a'));
    await gate.arrivals(1);
    const waiting = started.list(bearer('b'));
    await more(2);
    await until(() => started.upstream.count() >= 3);
    expect(started.upstream.count()).toBe(3);
    isRevoked = true;
    const call = { params: { name: 'x' }, ...bearer('b') };
    expect((await rpc(started.url, 'tools/call', call)).status).toBe(401);
    gate.open();
    expect(namesIn(await leader)).toEqual(['by-a']);
    expect((await waiting).status).toBe(401);
    await until(() => logged(started.gateway, 'request').length === 5);
  });
});
