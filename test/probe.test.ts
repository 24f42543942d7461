/** `--check --probe`, as it is run, on servers of both eras and on those that do not answer. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { ProbedList } from '../src/probe/report.js';
import { useClosers } from './support/closers.js';
import { createCatalogue } from './support/sdk-catalogue.js';
import { startLegacyServer } from './support/sdk-legacy.js';
import { startModernServer } from './support/sdk-modern.js';
import {
  goodResult,
  type Respond,
  sendError,
  sendJson,
  sendResult,
  startUpstream,
} from './support/upstream.js';

const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const closing = useClosers();

/** Runs the program to its end while this process goes on answering. */
function run(args: readonly string[], env: Readonly<Record<string, string>>) {
  return new Promise<{ status: number; stdout: string; stderr: string }>((resolve) => {
    execFile(process.execPath, [MAIN, ...args], { env, encoding: 'utf8' }, (error, stdout, stderr) =>
      resolve({ status: typeof error?.code === 'number' ? error.code : 0, stdout, stderr }),
    );
  });
}

const probe = (env: Readonly<Record<string, string>>) => run(['--check', '--probe', '--json'], env);
const catalogue = () => createCatalogue({ items: 25, pageSize: 10 });
const HINT = { ttlMs: 60_000, cacheScope: 'public' } as const;

describe('--check --probe', () => {
  test('tells of a modern server what it is, what would be cached, for how long and for whom', async () => {
    const server = closing(await startModernServer({ catalogue: catalogue(), hint: HINT }));
    const { status, stdout, stderr } = await probe({ UPSTREAMS: `docs=${server.url}` });
    expect([status, stderr]).toEqual([0, '']);
    const [docs] = JSON.parse(stdout);
    expect(docs).toMatchObject({ name: 'docs', ok: true, era: 'modern', watch: 'connected', advice: [] });
    expect(docs.server.name).not.toBe('unknown');
    expect(docs.capabilities).toEqual(expect.arrayContaining(['tools', 'prompts', 'resources']));
    expect(docs.lists.map(({ method }: ProbedList) => method)).toEqual([
      'tools/list',
      'prompts/list',
      'resources/list',
      'resources/templates/list',
    ]);
    for (const list of docs.lists) {
      expect(list).toMatchObject({ ...HINT, items: 25, pages: 3, kept: { scope: 'public' } });
      expect(Math.abs(list.kept.lifetimeMs - HINT.ttlMs)).toBeLessThanOrEqual(1_000);
    }
  });

  test('tells of a legacy server which settings would help, and leaves no session behind', async () => {
    const server = closing(await startLegacyServer({ catalogue }));
    const plain = await probe({ UPSTREAMS: `crm=${server.url}` });
    expect(plain.status).toBe(0);
    const [crm] = JSON.parse(plain.stdout);
    expect(crm).toMatchObject({ era: 'legacy', watch: 'connected' });
    const silent = { ttlMs: null, cacheScope: null, reason: 'zero-lifetime' };
    expect(crm.lists[0]).toMatchObject({ ...silent, items: 25, pages: 3 });
    expect(crm.advice.join()).toContain('UPSTREAM_CRM_TTL_MS');
    const helped = await probe({ UPSTREAMS: `crm=${server.url}`, UPSTREAM_CRM_TTL_MS: '60000' });
    const [now] = JSON.parse(helped.stdout);
    expect(now.lists[0]).toMatchObject({ items: 25, pages: 3, kept: { scope: 'private' } });
    expect(now.advice.join()).toContain('UPSTREAM_CRM_SCOPE=public');
    expect(server.sessions.size).toBe(0);
  });

  test('is a table for people, and says by its status that one does not answer', async () => {
    const stale = closing(await startModernServer({ catalogue: catalogue() }));
    const locked = closing(await startUpstream((_request, res) => sendJson(res, {}, 401)));
    const env = {
      UPSTREAMS: `stale=${stale.url},locked=${locked.url},gone=http://127.0.0.1:1/mcp?key=canary`,
    };
    const { status, stdout } = await run(['--check', '--probe'], env);
    expect(status).toBe(69);
    expect(stdout).toMatch(/tools\/list +0 +private +3 +25 .*not kept: zero-lifetime/);
    expect(stdout).toMatch(/→ It says that answers are stale at once .*UPSTREAM_STALE_MIN_TTL_MS/);
    expect(stdout).toMatch(/^locked: it answered with status 401, not as an MCP server does$/m);
    expect(stdout).toContain('UPSTREAM_LOCKED_AUTHORIZATION');
    expect(stdout).toMatch(/^gone: it could not be reached$/m);
    expect(stdout).not.toContain('canary');
  });

  test('speaks to an upstream with the credentials of its configuration, and shows none of them', async () => {
    const upstream = closing(await startUpstream((_request, res) => sendJson(res, {}, 401)));
    const { stdout, stderr } = await probe({
      UPSTREAMS: `u=${upstream.url}`,
      UPSTREAM_U_AUTHORIZATION: 'Bearer canary',
    });
    for (const { headers } of upstream.requests) expect(headers.authorization).toBe('Bearer canary');
    expect(upstream.count()).toBeGreaterThan(0);
    expect(stdout + stderr).not.toContain('canary');
  });
});

test('no request id comes twice, and what a server calls itself does not steer the terminal', async () => {
  const upstream = closing(
    await startUpstream((request, res) => {
      if (request.json.method === 'server/discover') return sendError(res, request, -32601, 404);
      const serverInfo = { name: 'a\u001b[31mb', version: '1' };
      if (request.json.method === 'initialize')
        return sendResult(res, request, {
          protocolVersion: '2025-11-25',
          capabilities: { tools: {} },
          serverInfo,
        });
      const isLast = request.json.params?.cursor !== undefined;
      return sendResult(res, request, { tools: [{ name: 't' }], ...(!isLast && { nextCursor: '' }) });
    }),
  );
  const { status, stdout } = await run(['--check', '--probe'], {
    UPSTREAMS: `u=${upstream.url}`,
    UPSTREAM_U_WATCH: 'off',
  });
  expect(status).toBe(0);
  expect(stdout).toMatch(/^u: a \[31mb 1, legacy era, tools; watch off$/m);
  const ids = upstream.requests.flatMap(({ json }) => json?.id ?? []);
  expect(new Set(ids).size).toBe(ids.length);
  expect(upstream.count('tools/list')).toBe(3);
});

test('a server that does not speak MCP, or does not answer in time, is told apart', async () => {
  const page = closing(await startUpstream((_request, res) => void res.end('<html>')));
  const mute = closing(await startUpstream(() => {}));
  const { status, stdout } = await probe({
    UPSTREAMS: `page=${page.url},mute=${mute.url}`,
    UPSTREAM_TIMEOUT_MS: '200',
  });
  expect(status).toBe(69);
  expect(JSON.parse(stdout)).toMatchObject([
    { problem: 'it answered with status 200, not as an MCP server does' },
    { problem: 'it did not answer in time' },
  ]);
});

test('--check --json is the configuration as JSON', async () => {
  const { status, stdout } = await run(['--check', '--json'], { UPSTREAMS: 'u=http://u.example/mcp' });
  expect(status).toBe(0);
  expect(JSON.parse(stdout)).toContainEqual(
    expect.objectContaining({ variable: 'PORT', value: '8080', isDefault: true }),
  );
});

test.each([[['--probe']], [['--json']], [['--check', '--help']]])(
  '%j is a wrong command line',
  async (args) => {
    expect((await run(args, { UPSTREAMS: 'u=http://u.example/mcp' })).status).toBe(64);
  },
);

describe('a list that does not come is told of, and the others all the same', () => {
  /** A modern server whose tools come as `answer` says, and whose prompts are well. */
  async function report(answer: Respond, env: Readonly<Record<string, string>> = {}) {
    const upstream = closing(
      await startUpstream((request, res) => {
        const { method } = request.json;
        if (method === 'tools/list') return answer(request, res);
        if (method === 'prompts/list')
          return sendResult(res, request, goodResult({ prompts: [{ name: 'p' }] }));
        if (method !== 'server/discover') return sendError(res, request, -32601, 404);
        const capabilities = { tools: {}, prompts: {} };
        return sendResult(res, request, {
          ...goodResult({ supportedVersions: ['2026-07-28'], capabilities }),
          serverInfo: { name: 's', version: '1' },
        });
      }),
    );
    const { status, stdout } = await probe({ UPSTREAMS: `u=${upstream.url}`, ...env });
    const [told] = JSON.parse(stdout);
    expect(told.lists[1]).toMatchObject({ method: 'prompts/list', items: 1, kept: { scope: 'public' } });
    return { status, told };
  }

  test('refused for want of credentials', async () => {
    const { status, told } = await report((_request, res) => sendJson(res, {}, 401));
    expect([status, told.ok, told.problem]).toEqual([
      69,
      false,
      'tools/list: it answered with status 401, not as an MCP server does',
    ]);
    expect(told.lists[0]).toMatchObject({ refused: { status: 401 } });
    expect(told.advice.join()).toMatch(/refused the gateway itself \(401\).*UPSTREAM_U_AUTHORIZATION/);
  });

  test('failed', async () => {
    const { status, told } = await report((_request, res) => sendJson(res, {}, 503));
    expect([status, told.lists[0].refused]).toEqual([69, { status: 503 }]);
    expect(told.advice.join()).toContain('It failed to answer (tools/list)');
  });

  test('hanging: it costs its time and no more', async () => {
    const { status, told } = await report(() => {}, { UPSTREAM_TIMEOUT_MS: '300' });
    expect([status, told.lists[0].reason]).toEqual([69, 'it did not answer in time']);
    expect(told.advice.join()).toContain('UPSTREAM_U_TIMEOUT_MS');
    expect(told.advice.join()).not.toContain('Check the URL');
  });

  test('not there: it is no fault', async () => {
    const { status, told } = await report((request, res) => sendError(res, request, -32601, 404));
    expect([status, told.ok]).toEqual([0, true]);
    expect(told.advice).toEqual([
      'It offers no change notifications (error -32601): what is kept lives out its lifetime.',
    ]);
  });
});

test.each([
  ['any', 'for every caller'],
  ['verified', 'for every caller whom the server has accepted'],
])('with PUBLIC_SHARING=%s a public list is kept %s', async (sharing, whom) => {
  const server = closing(await startModernServer({ catalogue: catalogue(), hint: HINT }));
  const env = { UPSTREAMS: `docs=${server.url}`, PUBLIC_SHARING: sharing };
  const { stdout } = await run(['--check', '--probe'], env);
  expect(stdout).toMatch(new RegExp(`^  tools/list .* kept (?:59 s|1 min), ${whom}$`, 'm'));
});

describe('why the watch does not stand is told, with what helps', () => {
  const refusals: readonly (readonly [Respond, string, string, string])[] = [
    [(_request, res) => sendJson(res, {}, 401), 'refused', 'status 401', 'UPSTREAM_U_AUTHORIZATION'],
    [(request, res) => sendError(res, request, -32603), 'refused', 'error -32603', 'offers no'],
    [(request, res) => sendError(res, request, -32601, 404), 'refused', 'error -32601', 'offers no'],
    [(_request, res) => sendJson(res, {}, 503), 'waiting', 'status 503', 'did not come'],
  ];
  test.each(refusals)('case %#', async (respondToWatch, watch, watchReason, cure) => {
    const upstream = closing(
      await startUpstream((request, res) => {
        const result = goodResult({ supportedVersions: ['2026-07-28'], capabilities: {} });
        return sendResult(res, request, { ...result, serverInfo: { name: 's', version: '1' } });
      }),
    );
    upstream.respondToWatch = respondToWatch;
    const { status, stdout } = await probe({ UPSTREAMS: `u=${upstream.url}` });
    const [told] = JSON.parse(stdout);
    expect(told).toMatchObject({ ok: true, watch, watchReason });
    expect(told.advice.join()).toContain(cure);
    expect(status).toBe(0);
  });
});
