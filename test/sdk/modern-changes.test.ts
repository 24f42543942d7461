import { acceptedContent, inputRequired } from '@modelcontextprotocol/server';
import { describe, expect, test } from 'vitest';
import { useClosers } from '../support/closers.js';
import { flushes, watching } from '../support/flushes.js';
import { createGate, until } from '../support/gate.js';
import { startGateway } from '../support/gateway.js';
import { createCatalogue, toolNamed } from '../support/sdk-catalogue.js';
import {
  connectModern,
  type ModernServerOptions,
  REFRESH,
  startModernServer,
} from '../support/sdk-modern.js';

const closing = useClosers();
const HINT = { ttlMs: 60_000, cacheScope: 'public' } as const;

async function start(env: Record<string, string> = {}, extend?: ModernServerOptions['extend']) {
  const catalogue = createCatalogue({ items: 25, pageSize: 10 });
  const server = closing(await startModernServer({ catalogue, hint: HINT, ...(extend && { extend }) }));
  const gateway = closing(await startGateway({ upstreams: { u: server.url }, env }));
  if (env.UPSTREAM_U_WATCH !== 'off') await watching(gateway);
  return { catalogue, server, gateway };
}

describe('SDK 2.4 on both sides: changes', () => {
  test('a change announced on the gateway’s watch is seen by the next listing (law 18)', async () => {
    const { catalogue, server, gateway } = await start();
    const { client, recorder } = closing(await connectModern(gateway.endpoint('u')));
    await client.listTools(undefined, REFRESH);
    await client.listPrompts(undefined, REFRESH);
    catalogue.tools.push(toolNamed('brand-new'));
    server.notify.toolsChanged();
    await until(() => flushes(gateway, 'watch') === 1);
    const { tools } = await client.listTools(undefined, REFRESH);
    expect(tools.at(-1)?.name).toBe('brand-new');
    expect(recorder.last('tools/list')).toContain('; fwd=miss; stored; ');
    await client.listPrompts(undefined, REFRESH);
    expect(recorder.last('prompts/list'), 'everything of the upstream is flushed').toContain('; fwd=miss; ');
  });

  test('a change announced only on the client’s own stream is flushed before it is told (law 19)', async () => {
    const { catalogue, server, gateway } = await start({ UPSTREAM_U_WATCH: 'off' });
    const { client, recorder } = closing(await connectModern(gateway.endpoint('u')));
    await client.listTools(undefined, REFRESH);
    await client.listTools(undefined, REFRESH);
    expect(recorder.last('tools/list')).toContain('; hit; ');
    const listedOnHearing = new Promise<string[]>((resolve, reject) => {
      client.setNotificationHandler('notifications/tools/list_changed', () => {
        client.listTools(undefined, REFRESH).then(({ tools }) => resolve(tools.map((t) => t.name)), reject);
      });
    });
    await client.listen({ toolsListChanged: true });
    catalogue.tools.push(toolNamed('brand-new'));
    server.notify.toolsChanged();
    expect(await listedOnHearing).toEqual(catalogue.tools.map((tool) => tool.name));
    expect(recorder.last('tools/list')).toContain('; fwd=miss; stored; ');
    expect(flushes(gateway, 'tap')).toBe(1);
    expect(flushes(gateway, 'watch') + flushes(gateway, 'watch-connected')).toBe(0);
  });

  test('an updated resource is read anew, and nothing else is forgotten (law 18)', async () => {
    const { catalogue, server, gateway } = await start();
    const { client, recorder } = closing(await connectModern(gateway.endpoint('u')));
    const [changed, other] = ['test://resource/1', 'test://resource/2'];
    for (const uri of [changed, other]) await client.readResource({ uri }, REFRESH);
    await client.listResources(undefined, REFRESH);
    const readOnHearing = new Promise<unknown>((resolve, reject) => {
      client.setNotificationHandler('notifications/resources/updated', ({ params: { uri } }) => {
        client.readResource({ uri }, REFRESH).then(({ contents }) => resolve(contents), reject);
      });
    });
    await client.listen({ resourceSubscriptions: [changed] });
    catalogue.texts.set(changed, 'another text');
    server.notify.resourceUpdated(changed);
    expect(await readOnHearing).toEqual([{ uri: changed, text: 'another text' }]);
    expect(recorder.last('resources/read')).toContain('; fwd=miss; ');
    await client.readResource({ uri: other }, REFRESH);
    expect(recorder.last('resources/read')).toContain('; hit; ');
    await client.listResources(undefined, REFRESH);
    expect(recorder.last('resources/list')).toContain('; hit; ');
  });
});

describe('SDK 2.4 on both sides: what is not cached', () => {
  test('a tool is called each time, and its progress arrives while it works (law 23)', async () => {
    const gate = createGate();
    const { catalogue, gateway } = await start({}, (server) => {
      server.setRequestHandler('tools/call', async ({ params: { _meta, name } }, ctx) => {
        catalogue.asked('tools/call');
        const progressToken = _meta?.progressToken ?? '';
        await ctx.mcpReq.notify({
          method: 'notifications/progress',
          params: { progressToken, progress: 1, total: 2 },
        });
        await gate.pass();
        return { content: [{ type: 'text', text: `called ${name}` }] };
      });
    });
    const { client, recorder } = closing(await connectModern(gateway.endpoint('u')));
    for (const times of [1, 2]) {
      // The tool ends only once its progress has been heard of.
      const onprogress = () => gate.open();
      const { content } = await client.callTool({ name: 'tool-1' }, { onprogress });
      expect(content).toEqual([{ type: 'text', text: 'called tool-1' }]);
      expect(catalogue.count('tools/call')).toBe(times);
      expect(recorder.last('tools/call')).toBe('');
    }
  });

  test('a resource that needs the client’s input is asked for anew each time (laws 1, 4)', async () => {
    const { catalogue, gateway } = await start({}, (server) => {
      server.setRequestHandler('resources/read', ({ params: { uri } }, ctx) => {
        catalogue.asked('resources/read');
        const given = acceptedContent<{ word: string }>(ctx.mcpReq.inputResponses, 'word');
        if (given !== undefined) return { contents: [{ uri, text: `the word is ${given.word}` }] };
        const requestedSchema = { type: 'object', properties: { word: { type: 'string' } } } as const;
        return inputRequired({
          inputRequests: { word: inputRequired.elicit({ message: 'The word?', requestedSchema }) },
        });
      });
    });
    const { client, recorder } = closing(
      await connectModern(gateway.endpoint('u'), { capabilities: { elicitation: { form: {} } } }),
    );
    let word = 'first';
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { word } }));
    const read = async () => (await client.readResource({ uri: 'test://resource/1' }, REFRESH)).contents;
    expect(await read()).toEqual([{ uri: 'test://resource/1', text: 'the word is first' }]);
    word = 'second';
    expect(await read()).toEqual([{ uri: 'test://resource/1', text: 'the word is second' }]);
    expect(catalogue.count('resources/read')).toBe(4);
    expect(recorder.statuses('resources/read')).toEqual([
      'mcp-cache-gateway; fwd=miss; detail=input-required',
      'mcp-cache-gateway; fwd=bypass; detail=multi-round-trip',
      'mcp-cache-gateway; fwd=miss; detail=input-required',
      'mcp-cache-gateway; fwd=bypass; detail=multi-round-trip',
    ]);
  });
});
