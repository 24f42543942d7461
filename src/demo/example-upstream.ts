/**
 * Owns: an MCP server to try the gateway on, made with the official SDK: a few hundred resources in pages, each
 * page slow on purpose, with caching hints, and a tool that adds a resource and announces it. It is no part of
 * the gateway, which never imports it.
 */
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  createMcpHandler,
  McpServer,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
} from '@modelcontextprotocol/server';
import { z } from 'zod';

export interface ExampleUpstreamOptions {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  readonly resources: number;
  readonly pageSize: number;
  /** How long each page of the list takes, in milliseconds. */
  readonly pageDelayMs: number;
}

export interface ExampleUpstream {
  readonly url: string;
  /** How many pages of the list of resources it has sent. */
  pagesSent(): number;
  close(): Promise<void>;
}

export const ADD_RESOURCE = 'add_resource';

const HINT = { ttlMs: 300_000, cacheScope: 'public' } as const;

/** Starts the server; resolves when it listens. */
export async function startExampleUpstream(options: ExampleUpstreamOptions): Promise<ExampleUpstream> {
  const { host, port, pageSize, pageDelayMs } = options;
  const shelf = createShelf(options.resources);
  let pages = 0;

  async function list(cursor: string | undefined) {
    await sleep(pageDelayMs);
    const page = shelf.page(cursor === undefined ? 0 : offsetOf(cursor), pageSize);
    pages += 1;
    return page;
  }

  // The SDK's handler makes one server a request: what lasts is kept outside of it.
  const handler = createMcpHandler(() =>
    buildServer({
      list,
      read: shelf.read,
      add(name, text) {
        const uri = shelf.add(name, text);
        handler.notify.resourcesChanged();
        return uri;
      },
    }),
  );
  const handle = toNodeHandler(handler);
  const server = createServer((req, res) => {
    const { method = '', url = '' } = req;
    void handle(Object.assign(req, { method, url }), res);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const address = server.address();
  const boundPort = typeof address === 'object' && address !== null ? address.port : port;
  return {
    url: `http://${host}:${boundPort}/mcp`,
    pagesSent: () => pages,
    async close() {
      await handler.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Resource {
  readonly uri: string;
  readonly name: string;
  readonly mimeType: string;
}

/** No interface: a result of the SDK's may have any further fields, and an interface never fits that. */
type ListPage = { readonly resources: Resource[]; readonly nextCursor?: string };

interface Tasks {
  list(cursor: string | undefined): Promise<ListPage>;
  /** The text of a resource; undefined for an unknown one. */
  read(uri: string): string | undefined;
  /** Adds a resource, tells all who listen, and gives its URI. */
  add(name: string, text: string): string;
}

function buildServer(tasks: Tasks): McpServer {
  const mcp = new McpServer(
    { name: 'example-upstream', version: '1.0.0' },
    {
      capabilities: { resources: { listChanged: true } },
      cacheHints: {
        'resources/list': HINT,
        'resources/read': HINT,
        'tools/list': HINT,
        'server/discover': HINT,
      },
    },
  );
  // McpServer lists all that is registered with it in one page; pages need the handlers beneath it.
  mcp.server.setRequestHandler('resources/list', ({ params }) => tasks.list(params?.cursor));
  mcp.server.setRequestHandler('resources/read', ({ params: { uri } }) => {
    const text = tasks.read(uri);
    if (text === undefined) throw new ResourceNotFoundError(uri);
    return { contents: [{ uri, mimeType: 'text/plain', text }] };
  });
  mcp.registerTool(
    ADD_RESOURCE,
    {
      description: 'Adds a resource and announces that the list has changed',
      inputSchema: z.object({ name: z.string().min(1), text: z.string() }),
    },
    ({ name, text }) => ({ content: [{ type: 'text', text: `Added ${tasks.add(name, text)}` }] }),
  );
  return mcp;
}

interface Shelf {
  /** The page that begins at `start`, with the cursor of the next. */
  page(start: number, size: number): ListPage;
  read(uri: string): string | undefined;
  add(name: string, text: string): string;
}

function createShelf(count: number): Shelf {
  const resources: Resource[] = [];
  const texts = new Map<string, string>();

  function add(name: string, text: string): string {
    const uri = `example://resource/${resources.length + 1}`;
    resources.push({ uri, name, mimeType: 'text/plain' });
    texts.set(uri, text);
    return uri;
  }

  for (let n = 1; n <= count; n += 1) add(`Resource ${n}`, `The text of resource ${n}.`);
  return {
    add,
    read: (uri) => texts.get(uri),
    page(start, size) {
      if (start > resources.length) throw unknownCursor();
      const end = start + size;
      const page = resources.slice(start, end);
      return end < resources.length ? { resources: page, nextCursor: `from-${end}` } : { resources: page };
    },
  };
}

function offsetOf(cursor: string): number {
  const digits = /^from-(\d{1,9})$/.exec(cursor)?.[1];
  if (digits === undefined) throw unknownCursor();
  return Number(digits);
}

function unknownCursor(): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, 'Unknown cursor');
}
