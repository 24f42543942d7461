import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { describe, expect, test } from 'vitest';
import { useClosers } from '../support/closers.js';
import { flushes, watching } from '../support/flushes.js';
import { until } from '../support/gate.js';
import { startGateway } from '../support/gateway.js';
import { createCatalogue, toolNamed } from '../support/sdk-catalogue.js';
import { connectLegacy, sessionOf, startLegacyServer } from '../support/sdk-legacy.js';
import { connectModern, REFRESH, startModernServer } from '../support/sdk-modern.js';
import { createRecorder } from '../support/sdk-recorder.js';

const closing = useClosers();

describe('both eras on one route', () => {
  test('each gets its own form of the list, and a change reaches both (laws 3, 18)', async () => {
    const catalogue = createCatalogue({ items: 25, pageSize: 10 });
    // The SDK's handler serves both eras at one address; its answers to the older one carry no hints.
    const server = closing(
      await startModernServer({ catalogue, hint: { ttlMs: 60_000, cacheScope: 'public' } }),
    );
    const env = { UPSTREAM_U_TTL_MS: '60000' };
    const gateway = closing(await startGateway({ upstreams: { u: server.url }, env }));
    await watching(gateway);
    const modern = closing(await connectModern(gateway.endpoint('u')));
    const legacy = closing(await connectLegacy(gateway.endpoint('u')));
    const listBoth = async (outcome: string) => {
      const forModern = await modern.client.listTools(undefined, REFRESH);
      const forLegacy = await legacy.client.listTools();
      expect(modern.recorder.last('tools/list')).toContain(outcome);
      expect(legacy.recorder.last('tools/list')).toContain(outcome);
      expect(forModern.tools).toEqual(catalogue.tools);
      expect(forModern.cacheScope).toBe('public');
      expect(forLegacy).toEqual({ tools: catalogue.tools });
    };
    await listBoth('; fwd=miss; stored; ');
    await listBoth('; hit; ');
    expect(catalogue.count('tools/list')).toBe(6);
    catalogue.tools.push(toolNamed('brand-new'));
    server.notify.toolsChanged();
    await until(() => flushes(gateway, 'watch') === 1);
    await listBoth('; fwd=miss; stored; ');
  });

  test('a client that tries the newer era first comes to terms with an older server through the gateway', async () => {
    const catalogue = createCatalogue({ items: 5, pageSize: 10 });
    const server = closing(await startLegacyServer({ catalogue: () => catalogue }));
    const env = { UPSTREAM_U_TTL_MS: '60000', UPSTREAM_U_WATCH: 'off' };
    const gateway = closing(await startGateway({ upstreams: { u: server.url }, env }));
    const { fetch, last } = createRecorder();
    const client = closing(
      new Client({ name: 'auto', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } }),
    );
    await client.connect(new StreamableHTTPClientTransport(new URL(gateway.endpoint('u')), { fetch }));
    // The probe is answered by the server itself, each time, and its refusal is what the client goes by.
    expect(last('server/discover')).toBe('mcp-cache-gateway; fwd=miss; detail=status');
    expect(client.getNegotiatedProtocolVersion()).toBe('2025-11-25');
    expect(sessionOf(server, 'auto')).toBeDefined();
    for (const outcome of ['; fwd=miss; stored; ', '; hit; ']) {
      expect((await client.listTools(undefined, REFRESH)).tools).toEqual(catalogue.tools);
      expect(last('tools/list')).toContain(outcome);
    }
  });
});
