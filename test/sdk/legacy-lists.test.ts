import { describe, expect, test } from 'vitest';
import { useClosers } from '../support/closers.js';
import { startGateway } from '../support/gateway.js';
import { type Catalogue, createCatalogue, toolNamed } from '../support/sdk-catalogue.js';
import { connectLegacy, type LegacyClient, sessionOf, startLegacyServer } from '../support/sdk-legacy.js';

const closing = useClosers();
/** Servers of that era send no `ttlMs`: the operator says how long their results live. */
const CACHED = { UPSTREAM_U_TTL_MS: '60000', UPSTREAM_U_WATCH: 'off' };

async function start(env: Record<string, string>, makeCatalogue?: () => Catalogue) {
  const catalogue = createCatalogue({ items: 25, pageSize: 10 });
  const server = closing(await startLegacyServer({ catalogue: makeCatalogue ?? (() => catalogue) }));
  const gateway = closing(await startGateway({ upstreams: { u: server.url }, env }));
  const connect = async (name: string) => closing(await connectLegacy(gateway.endpoint('u'), { name }));
  return { catalogue, server, connect };
}

const LISTS = [
  {
    method: 'tools/list',
    list: ({ client }: LegacyClient) => client.listTools(),
    expected: ({ tools }: Catalogue) => ({ tools }),
  },
  {
    method: 'prompts/list',
    list: ({ client }: LegacyClient) => client.listPrompts(),
    expected: ({ prompts }: Catalogue) => ({ prompts }),
  },
  {
    method: 'resources/list',
    list: ({ client }: LegacyClient) => client.listResources(),
    expected: ({ resources }: Catalogue) => ({ resources }),
  },
  {
    method: 'resources/templates/list',
    list: ({ client }: LegacyClient) => client.listResourceTemplates(),
    expected: ({ resourceTemplates }: Catalogue) => ({ resourceTemplates }),
  },
] as const;

describe('SDK 1.32 on both sides: lists', () => {
  test.each(LISTS)(
    '$method comes whole in one page, the second time from memory, without hints (laws 9, 12)',
    async ({ method, list, expected }) => {
      const { catalogue, connect } = await start(CACHED);
      const client = await connect('a');
      // Nothing but the items: no cursor, and no hint that this server did not send.
      expect(await list(client)).toEqual(expected(catalogue));
      expect(client.recorder.last(method)).toMatch(/; fwd=miss; stored; ttl=\d+$/);
      expect(catalogue.count(method)).toBe(3);
      expect(await list(client)).toEqual(expected(catalogue));
      expect(client.recorder.last(method)).toMatch(/; hit; ttl=\d+$/);
      expect(catalogue.count(method)).toBe(3);
    },
  );

  test('without a lifetime from the operator nothing is cached, and pages come as they are (law 5, C07)', async () => {
    const { catalogue, connect } = await start({ UPSTREAM_U_WATCH: 'off' });
    const { client, recorder } = await connect('a');
    for (const times of [1, 2]) {
      expect(await client.listTools()).toEqual({ tools: catalogue.tools.slice(0, 10), nextCursor: '10' });
      expect(recorder.last('tools/list')).toBe('mcp-cache-gateway; fwd=miss; detail=zero-lifetime');
      expect(catalogue.count('tools/list')).toBe(times);
    }
    const last = await client.listTools({ cursor: '20' });
    expect(last).toEqual({ tools: catalogue.tools.slice(20) });
  });

  test('a resource is read once', async () => {
    const { catalogue, connect } = await start(CACHED);
    const { client, recorder } = await connect('a');
    const first = await client.readResource({ uri: 'test://resource/1' });
    expect(first.contents).toEqual([{ uri: 'test://resource/1', text: 'text 1' }]);
    expect(await client.readResource({ uri: 'test://resource/1' })).toEqual(first);
    expect(recorder.last('resources/read')).toContain('; hit; ');
    expect(catalogue.count('resources/read')).toBe(1);
  });
});

describe('SDK 1.32 on both sides: sessions (law 8, C20, C33)', () => {
  test('no session is answered with the list of another', async () => {
    const { server, connect } = await start(CACHED, () => createCatalogue({ items: 25, pageSize: 10 }));
    const [a, b] = [await connect('a'), await connect('b')];
    sessionOf(server, 'a')?.catalogue.tools.push(toolNamed('only-in-a'));
    const namesOf = async ({ client }: LegacyClient) => (await client.listTools()).tools.map((t) => t.name);
    for (const outcome of ['; fwd=miss; stored; ', '; hit; ']) {
      expect(await namesOf(a)).toContain('only-in-a');
      const names = await namesOf(b);
      expect(names).toHaveLength(25);
      expect(names).not.toContain('only-in-a');
      for (const { recorder } of [a, b]) expect(recorder.last('tools/list')).toContain(outcome);
    }
  });

  test('with UPSTREAM_U_SCOPE=public all sessions share one snapshot (law 7)', async () => {
    const { catalogue, connect } = await start({ ...CACHED, UPSTREAM_U_SCOPE: 'public' });
    const [a, b] = [await connect('a'), await connect('b')];
    const first = await a.client.listTools();
    expect(await b.client.listTools()).toEqual(first);
    expect(b.recorder.last('tools/list')).toContain('; hit; ');
    expect(catalogue.count('tools/list')).toBe(3);
  });

  test('a session that its client ends is ended upstream, and the next begins without its list', async () => {
    const { server, connect } = await start(CACHED, () => createCatalogue({ items: 25, pageSize: 10 }));
    const [a, b] = [await connect('a'), await connect('b')];
    sessionOf(server, 'a')?.catalogue.tools.push(toolNamed('only-in-a'));
    await a.client.listTools();
    await a.transport.terminateSession();
    expect(sessionOf(server, 'a')).toBeUndefined();
    expect(sessionOf(server, 'b')).toBeDefined();
    const next = await connect('a');
    expect((await next.client.listTools()).tools).toHaveLength(25);
    expect(next.recorder.last('tools/list')).toContain('; fwd=miss; ');
    expect((await b.client.callTool({ name: 'tool-1' })).content).toEqual([
      { type: 'text', text: 'called tool-1' },
    ]);
  });

  test('a session that the server forgot is told so, and the client can open another (C32)', async () => {
    const { server, connect } = await start(CACHED);
    const { client } = await connect('a');
    await server.forget();
    for (const ask of [() => client.listTools(), () => client.callTool({ name: 'tool-1' })]) {
      await expect(ask()).rejects.toMatchObject({ code: 404 });
    }
    const again = await connect('a');
    expect((await again.client.listTools()).tools).toHaveLength(25);
  });
});
