/**
 * A server of the official SDK 2.4 with what the official conformance suite asks for by name. One endpoint serves both
 * eras: 2026-07-28 by `createMcpHandler`, 2025-11-25 with sessions that can be resumed.
 */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  localhostHostValidation,
  localhostOriginValidation,
  toNodeHandler,
} from '@modelcontextprotocol/node';
import {
  createMcpHandler,
  createRequestStateCodec,
  type EventStore,
  isLegacyRequest,
  type JSONRPCMessage,
  McpServer,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { addPrompts, addResources } from './conformance-offers.js';
import { addRounds, type Progress } from './conformance-rounds.js';
import { addTools } from './conformance-tools.js';

const HINT = { ttlMs: 60_000, cacheScope: 'public' } as const;
const HINTS = {
  'tools/list': HINT,
  'prompts/list': HINT,
  'resources/list': HINT,
  'resources/templates/list': HINT,
  'resources/read': HINT,
  'server/discover': HINT,
};

export interface ConformanceServer {
  readonly url: string;
  close(): Promise<void>;
}

export async function startConformanceServer(): Promise<ConformanceServer> {
  const progress = createRequestStateCodec<Progress>({ key: randomUUID() });
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();

  const modern = createMcpHandler(() => build((list) => modern.notify[`${list}Changed`]()), {
    legacy: 'reject',
  });

  function build(announce: (list: 'tools' | 'prompts') => void): McpServer {
    const server = new McpServer(
      { name: 'conformance', version: '1.0.0' },
      {
        capabilities: {
          tools: { listChanged: true },
          prompts: { listChanged: true },
          resources: { listChanged: true, subscribe: true },
          completions: {},
          logging: {},
        },
        cacheHints: HINTS,
        requestState: { verify: progress.verify },
      },
    );
    addTools(server, announce);
    addRounds(server, progress);
    addPrompts(server);
    addResources(server);
    return server;
  }

  async function openSession(): Promise<WebStandardStreamableHTTPServerTransport> {
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => void sessions.set(id, transport),
      onsessionclosed: (id) => void sessions.delete(id),
      eventStore: createEventStore(),
      retryInterval: 100,
    });
    const server = build((list) =>
      list === 'tools' ? server.sendToolListChanged() : server.sendPromptListChanged(),
    );
    await server.connect(transport);
    return transport;
  }

  async function answer(request: Request): Promise<Response> {
    if (!(await isLegacyRequest(request))) return modern.fetch(request);
    const id = request.headers.get('mcp-session-id');
    const transport = id === null ? await openSession() : sessions.get(id);
    if (transport !== undefined) return transport.handleRequest(request);
    const error = { code: -32001, message: 'Session not found' };
    return Response.json({ jsonrpc: '2.0', id: null, error }, { status: 404 });
  }

  const handle = toNodeHandler({ fetch: answer });
  const guards = [localhostHostValidation(), localhostOriginValidation()];
  const http = createServer((req, res) => {
    const { method = '', url = '' } = req;
    if (guards.every((guard) => guard(req, res))) void handle(Object.assign(req, { method, url }), res);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async close() {
      await modern.close();
      for (const transport of sessions.values()) await transport.close();
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}

/** Keeps what a session was sent, so that a stream that ended can be taken up again. */
function createEventStore(): EventStore {
  const events: { readonly streamId: string; readonly message: JSONRPCMessage }[] = [];
  return {
    async storeEvent(streamId, message) {
      return String(events.push({ streamId, message }) - 1);
    },
    async getStreamIdForEventId(id) {
      return events[Number(id)]?.streamId;
    },
    async replayEventsAfter(id, { send }) {
      const last = Number(id);
      const streamId = events[last]?.streamId ?? '';
      for (const [index, event] of events.entries()) {
        const replayed = index > last && event.streamId === streamId && 'jsonrpc' in event.message;
        if (replayed) await send(String(index), event.message);
      }
      return streamId;
    },
  };
}
