import {
  CallToolRequestSchema,
  ElicitRequestSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, test } from 'vitest';
import { useClosers } from '../support/closers.js';
import { flushes, watching } from '../support/flushes.js';
import { until } from '../support/gate.js';
import { startGateway } from '../support/gateway.js';
import { createCatalogue, toolNamed } from '../support/sdk-catalogue.js';
import {
  connectLegacy,
  type LegacyServerOptions,
  sessionOf,
  startLegacyServer,
} from '../support/sdk-legacy.js';

const closing = useClosers();
const TTL = { UPSTREAM_U_TTL_MS: '60000' };
const UNWATCHED = { ...TTL, UPSTREAM_U_WATCH: 'off' };
/** The name under which the gateway opens a session of its own. */
const GATEWAY = 'mcp-cache-gateway';

async function start(env: Record<string, string>, extend?: LegacyServerOptions['extend']) {
  const catalogue = createCatalogue({ items: 25, pageSize: 10 });
  const server = closing(await startLegacyServer({ catalogue: () => catalogue, ...(extend && { extend }) }));
  const gateway = closing(await startGateway({ upstreams: { u: server.url }, env }));
  return { catalogue, server, gateway };
}

describe('SDK 1.32 on both sides: changes', () => {
  test('a change announced on the gateway’s own session is seen by the next listing (law 18)', async () => {
    const { catalogue, server, gateway } = await start(TTL);
    await watching(gateway);
    const { client, recorder } = closing(await connectLegacy(gateway.endpoint('u')));
    await client.listTools();
    await client.listTools();
    expect(recorder.last('tools/list')).toContain('; hit; ');
    catalogue.tools.push(toolNamed('brand-new'));
    await sessionOf(server, GATEWAY)?.server.sendToolListChanged();
    await until(() => flushes(gateway, 'watch') === 1);
    const { tools } = await client.listTools();
    expect(tools.at(-1)?.name).toBe('brand-new');
    expect(recorder.last('tools/list')).toContain('; fwd=miss; stored; ');
  });

  test('a change announced only on the client’s GET stream is flushed before it is told (law 19)', async () => {
    const { catalogue, server, gateway } = await start(UNWATCHED);
    const { client, recorder } = closing(await connectLegacy(gateway.endpoint('u')));
    await client.listTools();
    await client.listTools();
    expect(recorder.last('tools/list')).toContain('; hit; ');
    const listedOnHearing = new Promise<string[]>((resolve, reject) => {
      client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
        client.listTools().then(({ tools }) => resolve(tools.map((tool) => tool.name)), reject);
      });
    });
    await until(() => sessionOf(server, 'test')?.hasStream() === true);
    catalogue.tools.push(toolNamed('brand-new'));
    await sessionOf(server, 'test')?.server.sendToolListChanged();
    expect(await listedOnHearing).toEqual(catalogue.tools.map((tool) => tool.name));
    expect(recorder.last('tools/list')).toContain('; fwd=miss; stored; ');
    expect(flushes(gateway, 'tap')).toBe(1);
    expect(flushes(gateway, 'watch') + flushes(gateway, 'watch-connected')).toBe(0);
  });

  test('a change announced on the stream that answers a tool call is flushed before the answer (law 18)', async () => {
    const { catalogue, gateway } = await start(UNWATCHED, (server, { tools }) => {
      server.setRequestHandler(CallToolRequestSchema, async ({ params: { name } }, extra) => {
        tools.push(toolNamed('brand-new'));
        await extra.sendNotification({ method: 'notifications/tools/list_changed' });
        return { content: [{ type: 'text', text: `called ${name}` }] };
      });
    });
    const { client, recorder } = closing(await connectLegacy(gateway.endpoint('u')));
    await client.listTools();
    await client.callTool({ name: 'tool-1' });
    expect((await client.listTools()).tools).toEqual(catalogue.tools);
    expect(catalogue.tools).toHaveLength(26);
    expect(recorder.last('tools/list')).toContain('; fwd=miss; stored; ');
    expect(flushes(gateway, 'tap')).toBe(1);
  });
});

describe('SDK 1.32 on both sides: what passes through', () => {
  test('the server asks the client in the middle of a call, and gets its answer (law 23)', async () => {
    const requestedSchema = { type: 'object', properties: { word: { type: 'string' } } } as const;
    const { gateway } = await start(UNWATCHED, (server) => {
      server.setRequestHandler(CallToolRequestSchema, async (_request, extra) => {
        const answer = await server.elicitInput(
          { message: 'The word?', requestedSchema },
          { relatedRequestId: extra.requestId },
        );
        return { content: [{ type: 'text', text: `the word is ${answer.content?.word}` }] };
      });
    });
    const capabilities = { elicitation: {} };
    const { client } = closing(await connectLegacy(gateway.endpoint('u'), { capabilities }));
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { word: 'yes' } }));
    const { content } = await client.callTool({ name: 'tool-1' });
    expect(content).toEqual([{ type: 'text', text: 'the word is yes' }]);
  });

  test('the gateway’s session is its own, and ends with it (C33)', async () => {
    const { server, gateway } = await start(TTL);
    const { client, transport } = closing(await connectLegacy(gateway.endpoint('u')));
    await until(() => sessionOf(server, GATEWAY)?.hasStream() === true);
    const open = () => [...server.sessions.values()].map((session) => session.clientName()).sort();
    expect(open()).toEqual([GATEWAY, 'test']);
    await transport.terminateSession();
    await client.close();
    expect(open()).toEqual([GATEWAY]);
    await gateway.close();
    expect(open()).toEqual([]);
  });
});
