/** `--check --probe`, as it is run, on servers of both eras and on those that do not answer. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { adviceFor, type ProbedList } from '../src/probe/report.js';
import { useClosers } from './support/closers.js';
import { createCatalogue } from './support/sdk-catalogue.js';
import { startLegacyServer } from './support/sdk-legacy.js';
import { startModernServer } from './support/sdk-modern.js';
import { sendError, sendJson, sendResult, startUpstream } from './support/upstream.js';

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

test('a server without change notifications is said to live by its lifetimes', () => {
  const probed = { name: 'u', ok: true, watch: 'refused', lists: [] };
  expect(adviceFor(probed).join()).toContain('no change notifications');
});
