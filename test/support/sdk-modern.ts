/** Server and client of the official SDK 2.4, which speak 2026-07-28. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client, type ClientOptions, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  createMcpHandler,
  type McpHttpHandler,
  ResourceNotFoundError,
  Server,
} from '@modelcontextprotocol/server';
import type { Catalogue } from './sdk-catalogue.js';
import { createRecorder, type Recorder } from './sdk-recorder.js';

export const MODERN_VERSION = '2026-07-28';

type CacheHint = { ttlMs?: number; cacheScope?: 'public' | 'private' };

export interface ModernServer {
  readonly url: string;
  /** Announces changes on every listen stream that asked for them. */
  readonly notify: McpHttpHandler['notify'];
  close(): Promise<void>;
}

export interface ModernServerOptions {
  readonly catalogue: Catalogue;
  /** For all cacheable methods; the SDK stamps `ttlMs: 0` and `private` where there is none. */
  readonly hint?: CacheHint;
  /** Adds handlers, or replaces them. */
  readonly extend?: (server: Server) => void;
}

export async function startModernServer(options: ModernServerOptions): Promise<ModernServer> {
  const handler = createMcpHandler(() => buildServer(options));
  const handle = toNodeHandler(handler);
  const http = createServer((req, res) => {
    const { method = '', url = '' } = req;
    void handle(Object.assign(req, { method, url }), res);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    notify: handler.notify,
    async close() {
      await handler.close();
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}

function buildServer({ catalogue, hint, extend }: ModernServerOptions): Server {
  const server = new Server(
    { name: 'modern', version: '1.0.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
      },
      ...(hint && { cacheHints: hintsOf(hint) }),
    },
  );
  server.setRequestHandler('tools/list', ({ params }) => {
    const { items, next } = catalogue.page('tools/list', catalogue.tools, params?.cursor);
    return { tools: items, ...next };
  });
  server.setRequestHandler('prompts/list', ({ params }) => {
    const { items, next } = catalogue.page('prompts/list', catalogue.prompts, params?.cursor);
    return { prompts: items, ...next };
  });
  server.setRequestHandler('resources/list', ({ params }) => {
    const { items, next } = catalogue.page('resources/list', catalogue.resources, params?.cursor);
    return { resources: items, ...next };
  });
  server.setRequestHandler('resources/templates/list', ({ params }) => {
    const { items, next } = catalogue.page(
      'resources/templates/list',
      catalogue.resourceTemplates,
      params?.cursor,
    );
    return { resourceTemplates: items, ...next };
  });
  server.setRequestHandler('resources/read', ({ params: { uri } }) => {
    catalogue.asked('resources/read');
    const text = catalogue.texts.get(uri);
    if (text === undefined) throw new ResourceNotFoundError(uri);
    return { contents: [{ uri, text }] };
  });
  server.setRequestHandler('tools/call', ({ params }) => {
    catalogue.asked('tools/call');
    return { content: [{ type: 'text', text: `called ${params.name}` }] };
  });
  extend?.(server);
  return server;
}

function hintsOf(hint: CacheHint) {
  return {
    'tools/list': hint,
    'prompts/list': hint,
    'resources/list': hint,
    'resources/templates/list': hint,
    'resources/read': hint,
    'server/discover': hint,
  };
}

export interface ModernClient {
  readonly client: Client;
  readonly recorder: Recorder;
  close(): Promise<void>;
}

/** The client keeps a cache of its own: ask with REFRESH to see what the gateway does. */
export const REFRESH = { cacheMode: 'refresh' } as const;

export async function connectModern(
  url: string,
  options: ClientOptions = {},
  headers: Record<string, string> = {},
): Promise<ModernClient> {
  const recorder = createRecorder();
  const client = new Client(
    { name: 'test', version: '1.0.0' },
    { versionNegotiation: { mode: { pin: MODERN_VERSION } }, ...options },
  );
  const { fetch } = recorder;
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { fetch, requestInit: { headers } }));
  return { client, recorder, close: () => client.close() };
}
