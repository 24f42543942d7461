import { describe, expect, test } from 'vitest';
import { useClosers } from '../support/closers.js';
import { watching } from '../support/flushes.js';
import { startGateway } from '../support/gateway.js';
import { type Catalogue, createCatalogue } from '../support/sdk-catalogue.js';
import { connectModern, type ModernClient, REFRESH, startModernServer } from '../support/sdk-modern.js';
import { sendResult, startUpstream } from '../support/upstream.js';

const closing = useClosers();
const HINT = { ttlMs: 60_000, cacheScope: 'public' } as const;

const LISTS = [
  {
    method: 'tools/list',
    list: async ({ client }: ModernClient) => (await client.listTools(undefined, REFRESH)).tools,
    offered: (catalogue: Catalogue) => catalogue.tools,
  },
  {
    method: 'prompts/list',
    list: async ({ client }: ModernClient) => (await client.listPrompts(undefined, REFRESH)).prompts,
    offered: (catalogue: Catalogue) => catalogue.prompts,
  },
  {
    method: 'resources/list',
    list: async ({ client }: ModernClient) => (await client.listResources(undefined, REFRESH)).resources,
    offered: (catalogue: Catalogue) => catalogue.resources,
  },
  {
    method: 'resources/templates/list',
    list: async ({ client }: ModernClient) =>
      (await client.listResourceTemplates(undefined, REFRESH)).resourceTemplates,
    offered: (catalogue: Catalogue) => catalogue.resourceTemplates,
  },
] as const;

async function start(options: { hint?: typeof HINT; env?: Record<string, string> } = { hint: HINT }) {
  const catalogue = createCatalogue({ items: 25, pageSize: 10 });
  const server = closing(await startModernServer({ catalogue, ...(options.hint && { hint: options.hint }) }));
  const gateway = closing(
    await startGateway({ upstreams: { u: server.url }, ...(options.env && { env: options.env }) }),
  );
  await watching(gateway);
  const connect = async () => closing(await connectModern(gateway.endpoint('u')));
  return { catalogue, server, gateway, connect };
}

describe('SDK 2.4 on both sides: lists', () => {
  test.each(LISTS)(
    '$method of three pages comes whole, and the second time from memory (laws 9, 12, 14)',
    async ({ method, list, offered }) => {
      const { catalogue, connect } = await start();
      const client = await connect();
      expect(await list(client)).toEqual(offered(catalogue));
      expect(client.recorder.last(method)).toMatch(/; fwd=miss; stored; ttl=\d+$/);
      expect(catalogue.count(method)).toBe(3);
      expect(await list(client)).toEqual(offered(catalogue));
      expect(client.recorder.last(method)).toMatch(/; hit; ttl=\d+$/);
      expect(catalogue.count(method)).toBe(3);
    },
  );

  test('a public list that one client fetched is a hit for the next (law 7)', async () => {
    const { catalogue, connect } = await start();
    const [a, b] = [await connect(), await connect()];
    await a.client.listTools(undefined, REFRESH);
    expect((await b.client.listTools(undefined, REFRESH)).tools).toEqual(catalogue.tools);
    expect(b.recorder.statuses('tools/list')).toEqual([expect.stringContaining('; hit; ')]);
    expect(b.recorder.statuses('server/discover')).toEqual([expect.stringContaining('; hit; ')]);
  });

  test('the client’s own cursor brings the server’s own page (law 13, C05)', async () => {
    const { catalogue, connect } = await start();
    const { client, recorder } = await connect();
    await client.listTools(undefined, REFRESH);
    const page = await client.listTools({ cursor: '10' });
    expect(page.tools).toEqual(catalogue.tools.slice(10, 20));
    expect(page.nextCursor).toBe('20');
    expect(recorder.last('tools/list')).toContain('; fwd=bypass; detail=has-cursor');
  });

  test('the client’s strict schemas take a miss and a hit of each method', async () => {
    const { connect } = await start();
    const { client, recorder } = await connect();
    for (const outcome of ['; fwd=miss; stored; ', '; hit; ']) {
      const results = [
        await client.listTools(undefined, REFRESH),
        await client.listPrompts(undefined, REFRESH),
        await client.listResources(undefined, REFRESH),
        await client.listResourceTemplates(undefined, REFRESH),
        await client.readResource({ uri: 'test://resource/1' }, REFRESH),
      ];
      for (const { method } of LISTS) expect(recorder.last(method)).toContain(outcome);
      expect(recorder.last('resources/read')).toContain(outcome);
      for (const { ttlMs, cacheScope } of results) {
        expect(cacheScope).toBe('public');
        expect(ttlMs).toBeGreaterThan(0);
        expect(ttlMs).toBeLessThanOrEqual(HINT.ttlMs);
      }
    }
  });

  test('those schemas are strict: a list without hints, which passes through as it came, is refused', async () => {
    const upstream = closing(
      await startUpstream((request, res) => {
        const discovered = { supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, ttlMs: 0 };
        const isList = request.json.method === 'tools/list';
        sendResult(res, request, { resultType: 'complete', ...(isList ? { tools: [] } : discovered) });
      }),
    );
    const gateway = closing(await startGateway({ upstreams: { u: upstream.url } }));
    const { client } = closing(await connectModern(gateway.endpoint('u')));
    await expect(client.listTools(undefined, REFRESH)).rejects.toThrow(/ttlMs/);
  });
});

describe('SDK 2.4 on both sides: a server without hints', () => {
  test('what the SDK stamps (ttlMs 0, private) is not cached, and its pages come as they are (law 5)', async () => {
    const { catalogue, connect } = await start({});
    const { client, recorder } = await connect();
    expect((await client.listTools(undefined, REFRESH)).tools).toEqual(catalogue.tools);
    expect((await client.listTools(undefined, REFRESH)).tools).toEqual(catalogue.tools);
    expect(catalogue.count('tools/list')).toBe(6);
    expect(recorder.statuses('tools/list')[3]).toContain('; fwd=miss; detail=zero-lifetime');
  });

  test('with UPSTREAM_U_MIN_TTL_MS it is cached, for each authorization context apart (laws 5, 7)', async () => {
    const { catalogue, gateway, connect } = await start({ env: { UPSTREAM_U_MIN_TTL_MS: '60000' } });
    const { client, recorder } = await connect();
    await client.listTools(undefined, REFRESH);
    const { tools, cacheScope } = await client.listTools(undefined, REFRESH);
    expect(tools).toEqual(catalogue.tools);
    expect(cacheScope).toBe('private');
    expect(catalogue.count('tools/list')).toBe(3);
    expect(recorder.last('tools/list')).toContain('; hit; ');
    const other = closing(await connectModern(gateway.endpoint('u'), {}, { authorization: 'Bearer other' }));
    await other.client.listTools(undefined, REFRESH);
    expect(other.recorder.last('tools/list')).toContain('; fwd=miss; stored; ');
    expect(catalogue.count('tools/list')).toBe(6);
  });
});
