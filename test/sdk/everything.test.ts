import { ResourceListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, test } from 'vitest';
import { useClosers } from '../support/closers.js';
import { flushes, watching } from '../support/flushes.js';
import { until } from '../support/gate.js';
import { startGateway } from '../support/gateway.js';
import { startEverything } from '../support/sdk-everything.js';
import { connectLegacy, type LegacyClient } from '../support/sdk-legacy.js';

const closing = useClosers();
const DOCUMENT = 'demo://resource/static/document/features.md';

async function start() {
  const server = closing(await startEverything());
  const env = { UPSTREAM_EVERYTHING_TTL_MS: '60000' };
  const gateway = closing(await startGateway({ upstreams: { everything: server.url }, env }));
  const client = closing(await connectLegacy(gateway.endpoint('everything')));
  await watching(gateway);
  await until(() => client.recorder.statuses('GET').length === 1);
  return { server, gateway, client };
}

async function askAll({ client }: LegacyClient) {
  return {
    'tools/list': (await client.listTools()).tools,
    'resources/list': (await client.listResources()).resources,
    'resources/templates/list': (await client.listResourceTemplates()).resourceTemplates,
    'prompts/list': (await client.listPrompts()).prompts,
    'resources/read': (await client.readResource({ uri: DOCUMENT })).contents,
  };
}

describe('the reference server, server-everything, through the gateway', () => {
  test('all that it offers is what it offers directly, and the second time comes from memory', async () => {
    const { server, client } = await start();
    const direct = await askAll(closing(await connectLegacy(server.url)));
    for (const outcome of ['; fwd=miss; stored; ', '; hit; ']) {
      expect(await askAll(client)).toEqual(direct);
      for (const [method, items] of Object.entries(direct)) {
        expect(items, method).not.toHaveLength(0);
        expect(client.recorder.last(method), method).toContain(outcome);
      }
    }
  });

  test('its tools are called each time', async () => {
    const { client } = await start();
    for (const message of ['first', 'second']) {
      const { content } = await client.client.callTool({ name: 'echo', arguments: { message } });
      expect(content).toEqual([{ type: 'text', text: `Echo: ${message}` }]);
    }
    const { messages } = await client.client.getPrompt({ name: 'args-prompt', arguments: { city: 'Ulm' } });
    expect(JSON.stringify(messages)).toContain('Ulm');
  });

  test('a resource that one of its tools makes is in the list that follows its notification (law 19)', async () => {
    const { gateway, client } = await start();
    await client.client.listResources();
    const listedOnHearing = new Promise<string[]>((resolve, reject) => {
      client.client.setNotificationHandler(ResourceListChangedNotificationSchema, () => {
        client.client.listResources().then(({ resources }) => resolve(resources.map((r) => r.name)), reject);
      });
    });
    await client.client.callTool({
      name: 'gzip-file-as-resource',
      arguments: { name: 'brand-new', data: 'data:text/plain,hello', outputType: 'resourceLink' },
    });
    expect(await listedOnHearing).toContain('brand-new');
    expect(client.recorder.last('resources/list')).toContain('; fwd=miss; stored; ');
    expect(flushes(gateway, 'tap')).toBe(1);
  });
});
