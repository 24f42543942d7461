/** Server and client of the official SDK 1.32, which speak 2025-11-25: sessions, and a GET stream for each. */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client, type ClientOptions } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  CallToolRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import type { Catalogue } from './sdk-catalogue.js';
import { createRecorder, type Recorder } from './sdk-recorder.js';

export interface LegacySession {
  readonly server: Server;
  readonly catalogue: Catalogue;
  /** The name that the client gave itself. */
  clientName(): string | undefined;
  /** Whether its GET stream stands, so that a notification has a way to go. */
  hasStream(): boolean;
}

export interface LegacyServer {
  readonly url: string;
  /** The sessions that are open, the gateway's own among them. */
  readonly sessions: ReadonlyMap<string, LegacySession>;
  /** Forgets all sessions, as a server that was restarted. */
  forget(): Promise<void>;
  close(): Promise<void>;
}

export interface LegacyServerOptions {
  /** Makes what a session is offered: always the same, or one for each. */
  readonly catalogue: () => Catalogue;
  /** Adds handlers, or replaces them. */
  readonly extend?: (server: Server, catalogue: Catalogue) => void;
}

interface OpenSession extends LegacySession {
  readonly transport: StreamableHTTPServerTransport;
  stream: ServerResponse | undefined;
}

export async function startLegacyServer(options: LegacyServerOptions): Promise<LegacyServer> {
  const sessions = new Map<string, OpenSession>();

  async function openSession(): Promise<StreamableHTTPServerTransport> {
    const catalogue = options.catalogue();
    const server = buildServer(catalogue);
    options.extend?.(server, catalogue);
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => void sessions.set(id, session),
      onsessionclosed: (id) => void sessions.delete(id),
    });
    const session: OpenSession = {
      server,
      catalogue,
      transport,
      stream: undefined,
      clientName: () => server.getClientVersion()?.name,
      hasStream: () => session.stream?.headersSent === true,
    };
    await server.connect(transport);
    return transport;
  }

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const id = req.headers['mcp-session-id'];
    if (id === undefined) return (await openSession()).handleRequest(req, res);
    const session = typeof id === 'string' ? sessions.get(id) : undefined;
    if (session !== undefined) {
      if (req.method === 'GET') session.stream = res;
      return session.transport.handleRequest(req, res);
    }
    const error = { code: -32001, message: 'Session not found' };
    res.writeHead(404, { 'content-type': 'application/json' });
    res.end(JSON.stringify({ jsonrpc: '2.0', id: null, error }));
  }

  async function forget(): Promise<void> {
    const forgotten = [...sessions.values()];
    sessions.clear();
    for (const { server } of forgotten) await server.close();
  }

  const http = createServer((req, res) => void handle(req, res));
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    sessions,
    forget,
    async close() {
      await forget();
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}

function buildServer(catalogue: Catalogue): Server {
  const capabilities = {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
  };
  const server = new Server({ name: 'legacy', version: '1.0.0' }, { capabilities });
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
    const { items, next } = catalogue.page('tools/list', catalogue.tools, params?.cursor);
    return { tools: items, ...next };
  });
  server.setRequestHandler(ListPromptsRequestSchema, ({ params }) => {
    const { items, next } = catalogue.page('prompts/list', catalogue.prompts, params?.cursor);
    return { prompts: items, ...next };
  });
  server.setRequestHandler(ListResourcesRequestSchema, ({ params }) => {
    const { items, next } = catalogue.page('resources/list', catalogue.resources, params?.cursor);
    return { resources: items, ...next };
  });
  server.setRequestHandler(ListResourceTemplatesRequestSchema, ({ params }) => {
    const { resourceTemplates } = catalogue;
    const { items, next } = catalogue.page('resources/templates/list', resourceTemplates, params?.cursor);
    return { resourceTemplates: items, ...next };
  });
  server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }) => {
    catalogue.asked('resources/read');
    return { contents: [{ uri, text: catalogue.texts.get(uri) ?? '' }] };
  });
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
    catalogue.asked('tools/call');
    return { content: [{ type: 'text', text: `called ${params.name}` }] };
  });
  return server;
}

/** The session that this client, or the gateway under its own name, has with the server. */
export function sessionOf(server: LegacyServer, clientName: string): LegacySession | undefined {
  return [...server.sessions.values()].find((session) => session.clientName() === clientName);
}

export interface LegacyClient {
  readonly client: Client;
  readonly transport: StreamableHTTPClientTransport;
  readonly recorder: Recorder;
  close(): Promise<void>;
}

export async function connectLegacy(
  url: string,
  options: ClientOptions & { readonly name?: string } = {},
): Promise<LegacyClient> {
  const recorder = createRecorder();
  const client = new Client({ name: options.name ?? 'test', version: '1.0.0' }, options);
  const transport = new StreamableHTTPClientTransport(new URL(url), { fetch: recorder.fetch });
  await client.connect(transport);
  return { client, transport, recorder, close: () => client.close() };
}
