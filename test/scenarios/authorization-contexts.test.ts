/** Who may be answered with what another was given: design, laws 7 and 8; cases C14, C20, C33. */
import { describe, expect, test } from 'vitest';
import { namesOf, page, paged, tools } from '../support/lists.js';
import { useScenario } from '../support/scenario.js';
import { type Respond, type SeenRequest, sendResult } from '../support/upstream.js';

const start = useScenario();

/** Answers each caller with a list that names it, as `who` sees it. */
function perCaller(
  who: (request: SeenRequest) => unknown = (request) => request.headers.authorization,
  fields: object = { cacheScope: 'private' },
): Respond {
  return (request, res) =>
    sendResult(res, request, page([String(who(request) ?? 'nobody')], undefined, fields));
}

const bearer = (authorization: string) => ({ headers: { authorization } });

describe('a private list (law 7, C14)', () => {
  test('stays with its token; to have none is a context of its own', async () => {
    const { list } = await start(perCaller());
    const contexts = ['Bearer a', 'Bearer b', undefined, 'Bearer a2'];
    for (const [round, asked] of [1, 0].entries()) {
      for (const context of contexts) {
        const answer = await list(context === undefined ? {} : bearer(context));
        expect([namesOf(answer), answer.asked], `round ${round}`).toEqual([[context ?? 'nobody'], asked]);
        expect(answer.json.result.cacheScope).toBe('private');
      }
    }
  });

  test('is found under any case of the header’s name, and never by another value', async () => {
    const { list } = await start(perCaller());
    await list({ headers: { Authorization: 'Bearer a' } });
    expect((await list({ headers: { AUTHORIZATION: 'Bearer a' } })).asked).toBe(0);
    await list(bearer('Bearer b'));
    for (const other of ['bearer a', 'Bearer A', 'Bearer a,Bearer b', 'Bearer']) {
      expect(namesOf(await list(bearer(other)))).toEqual([other]);
    }
  });

  test.each(['cookie', 'x-api-key'])('is told apart by %s as well', async (name) => {
    const { list } = await start(perCaller((request) => request.headers[name]));
    for (const value of ['k=1', 'k=2', 'k=1']) {
      expect(namesOf(await list({ headers: { [name]: value } }))).toEqual([value]);
    }
    expect((await list({ headers: { [name]: 'k=1' } })).asked).toBe(0);
  });

  test('is not mixed up where two credentials swap their fields', async () => {
    const who = ({ headers }: SeenRequest) => `${headers.authorization}|${headers['x-api-key']}`;
    const { list } = await start(perCaller(who));
    await list({ headers: { authorization: 'x', 'x-api-key': 'y' } });
    for (const headers of [
      { authorization: 'y', 'x-api-key': 'x' },
      { authorization: 'x' },
      { 'x-api-key': 'x' },
    ]) {
      expect((await list({ headers })).asked).toBe(1);
    }
  });

  test('is told apart by the headers that AUTH_HEADERS names, and by no others', async () => {
    const env = { AUTH_HEADERS: 'X-Tenant' };
    const { list } = await start(
      perCaller((request) => request.headers['x-tenant']),
      { env },
    );
    expect(namesOf(await list({ headers: { 'x-tenant': '1', cookie: 'a=1' } }))).toEqual(['1']);
    expect((await list({ headers: { 'x-tenant': '1', cookie: 'a=2' } })).asked).toBe(0);
    expect(namesOf(await list({ headers: { 'x-tenant': '2' } }))).toEqual(['2']);
  });

  test('is not what its owner’s token shows up in: no log line holds a credential', async () => {
    const { list, gateway } = await start(perCaller());
    await list({
      headers: { authorization: 'Bearer s3cret-a', cookie: 'sid=s3cret-b', 'x-api-key': 's3cret-c' },
    });
    expect(gateway.logs.some((line) => line.msg === 'request')).toBe(true);
    expect(JSON.stringify(gateway.logs)).not.toContain('s3cret');
  });
});

describe('the scope of a result (law 7)', () => {
  test('public is shared by all callers', async () => {
    const { list } = await start(perCaller(undefined, { cacheScope: 'public' }));
    await list(bearer('Bearer a'));
    for (const context of [bearer('Bearer b'), {}, { headers: { cookie: 'sid=1' } }]) {
      const hit = await list(context);
      expect([hit.asked, hit.json.result.cacheScope]).toEqual([0, 'public']);
    }
  });

  test.each(['"PUBLIC"', '"shared"', 'null', 'true', '["public"]', '""'])(
    'the unknown value %s is private',
    async (value) => {
      const { list } = await start(perCaller(undefined, { cacheScope: JSON.parse(value) }));
      await list(bearer('Bearer a'));
      expect((await list(bearer('Bearer b'))).asked).toBe(1);
      const own = await list(bearer('Bearer a'));
      expect([own.asked, own.json.result.cacheScope]).toEqual([0, 'private']);
    },
  );

  test.each(['-', 'c1'])('one private page makes the snapshot private (page %s)', async (which) => {
    const scope = (cursor: string) => ({ cacheScope: cursor === which ? 'private' : 'public' });
    const { list } = await start(
      paged({ '-': page(['a'], 'c1', scope('-')), c1: page(['b'], undefined, scope('c1')) }),
    );
    const first = await list(bearer('Bearer a'));
    expect(first.json.result.cacheScope).toBe('private');
    expect((await list(bearer('Bearer b'))).asked).toBe(2);
    expect((await list(bearer('Bearer a'))).asked).toBe(0);
  });

  test.each([
    ['absent with ttlMs is public by default', {}, {}, 0],
    ['absent with ttlMs is what CACHE_DEFAULT_SCOPE says', { CACHE_DEFAULT_SCOPE: 'private' }, {}, 1],
    [
      'absent is private where the lifetime is our default',
      { CACHE_DEFAULT_TTL_MS: '9000' },
      { ttlMs: undefined },
      1,
    ],
    ['absent is private where the lifetime is our floor', { UPSTREAM_U_MIN_TTL_MS: '9000' }, { ttlMs: 5 }, 1],
    [
      'absent is public where the operator says so',
      { UPSTREAM_U_SCOPE: 'public', CACHE_DEFAULT_TTL_MS: '9000' },
      { ttlMs: undefined },
      0,
    ],
    [
      'public is private where the operator says so',
      { UPSTREAM_U_SCOPE: 'private' },
      { cacheScope: 'public' },
      1,
    ],
    [
      'private stays private, whatever the operator says',
      { UPSTREAM_U_SCOPE: 'public' },
      { cacheScope: 'private' },
      1,
    ],
  ] as const)('%s', async (_title, env, fields, asked) => {
    const { list } = await start(perCaller(undefined, { cacheScope: undefined, ...fields }), {
      env: { ...env },
    });
    const first = await list(bearer('Bearer a'));
    expect((await list(bearer('Bearer a'))).asked).toBe(0);
    expect((await list(bearer('Bearer b'))).asked).toBe(asked);
    const claimed =
      first.json.result.cacheScope ?? (first.json.result.ttlMs === undefined ? 'private' : 'public');
    if (asked === 1) expect(claimed, 'the first caller is not told to share it either').toBe('private');
  });

  test('turning private, a list is nobody’s but the new caller’s', async () => {
    let cacheScope = 'public';
    const { list, clock } = await start((request, res) => perCaller(undefined, { cacheScope })(request, res));
    await list(bearer('Bearer a'));
    expect((await list(bearer('Bearer b'))).asked).toBe(0);
    clock.advance(60_000);
    cacheScope = 'private';
    for (const token of ['Bearer a', 'Bearer b', 'Bearer c']) {
      expect(namesOf(await list(bearer(token)))).toEqual([token]);
    }
  });

  test('is warned of once per upstream where a caller had credentials and the server named none', async () => {
    const { list, ask, gateway, second } = await start(perCaller(undefined, { cacheScope: undefined }), {
      second: perCaller(undefined, { cacheScope: undefined }),
    });
    const warnings = () =>
      gateway.logs.filter((l) => l.level === 40 && l.msg.includes('CACHE_DEFAULT_SCOPE'));
    await list();
    expect(warnings(), 'without credentials there is nothing to warn of').toEqual([]);
    await list({ ...bearer('Bearer a'), params: { x: 1 } });
    await list({ ...bearer('Bearer b'), params: { x: 2 } });
    await ask('tools/list', { ...bearer('Bearer a'), endpoint: gateway.endpoint('u2') });
    expect(second.count()).toBe(1);
    expect(warnings().map((line) => line.upstream)).toEqual(['u', 'u2']);
  });
});

describe('injected credentials (law 8)', () => {
  const env = { UPSTREAM_U_AUTHORIZATION: 'Bearer ours' };

  test('are the context of callers that have none, and give way to a caller’s own', async () => {
    const { list } = await start(perCaller(), { env });
    expect(namesOf(await list())).toEqual(['Bearer ours']);
    expect(await list()).toMatchObject({ asked: 0 });
    expect(namesOf(await list(bearer('Bearer a')))).toEqual(['Bearer a']);
    expect((await list(bearer('Bearer ours'))).asked, 'the upstream sees the same caller').toBe(0);
  });

  test('replace what callers send under the same name: those are one context', async () => {
    const headers = JSON.stringify({ 'X-Api-Key': 'ours' });
    const { list } = await start(
      perCaller((request) => request.headers['x-api-key']),
      {
        env: { UPSTREAM_U_HEADERS: headers },
      },
    );
    expect(namesOf(await list({ headers: { 'x-api-key': 'theirs' } }))).toEqual(['ours']);
    expect((await list({ headers: { 'x-api-key': 'another' } })).asked).toBe(0);
    expect((await list()).asked).toBe(0);
    expect((await list(bearer('Bearer a'))).asked, 'a token of its own is another caller').toBe(1);
  });
});

describe('legacy sessions (law 8, C20)', () => {
  const session = (id: string, token = 'Bearer t') => ({
    era: 'legacy' as const,
    headers: { 'mcp-session-id': id, authorization: token },
  });

  test('have lists of their own under one token', async () => {
    const enabled = new Set<string>();
    const respond: Respond = (request, res) => {
      const id = String(request.headers['mcp-session-id']);
      if (request.json.method === 'tools/call') enabled.add(id);
      const names = [id, ...(enabled.has(id) ? ['extra'] : [])];
      sendResult(res, request, page(names, undefined, { cacheScope: 'private', resultType: undefined }));
    };
    const { list, ask, clock } = await start(respond);
    expect(namesOf(await list(session('s1')))).toEqual(['s1']);
    expect(namesOf(await list(session('s2')))).toEqual(['s2']);
    await ask('tools/call', { ...session('s1'), params: { name: 'enable' } });
    clock.advance(60_000);
    expect(namesOf(await list(session('s1')))).toEqual(['s1', 'extra']);
    expect(namesOf(await list(session('s2')))).toEqual(['s2']);
    expect(namesOf(await list(session('s3'))), 'a new session is not answered for an old one').toEqual([
      's3',
    ]);
    const again = await list(session('s1'));
    expect([again.asked, namesOf(again)]).toEqual([0, ['s1', 'extra']]);
  });

  test('do not make two callers of one session id one', async () => {
    const { list } = await start(perCaller());
    expect(namesOf(await list(session('s1', 'Bearer a')))).toEqual(['Bearer a']);
    expect(namesOf(await list(session('s1', 'Bearer b')))).toEqual(['Bearer b']);
  });

  test('are no part of a modern caller’s context', async () => {
    const { list } = await start(paged({ '-': { ...page(['a']), cacheScope: 'private' } }));
    await list({ headers: { 'mcp-session-id': 's1' } });
    const hit = await list({ headers: { 'mcp-session-id': 's2' } });
    expect([hit.asked, hit.json.result.tools]).toEqual([0, tools('a')]);
  });
});
