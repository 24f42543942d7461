/** One contender as a process of its own: `node contender.mjs <kind>`; prints the port that it listens on. */
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, Server } from '@modelcontextprotocol/server';
import Fastify from 'fastify';
import { Agent } from 'undici';
import { bodyOf, itemsOf, resultText } from './data.mjs';

const [kind, size = '100', target = ''] = process.argv.slice(2);

/** What answers a request whose whole body has come. */
function withBody(handle) {
  return (req, res) => {
    const chunks = [];
    req.on('data', (chunk) => chunks.push(chunk));
    req.on('end', () => handle(Buffer.concat(chunks), res, req));
  };
}

const stored = Buffer.from(resultText(size));

function answer(res, id) {
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`;
  const length = Buffer.byteLength(head) + stored.length + 1;
  res.writeHead(200, { 'content-type': 'application/json', 'content-length': length });
  res.cork();
  res.write(head);
  res.write(stored);
  res.end('}');
  res.uncork();
}

const KINDS = {
  /** The floor: node:http that answers the same bytes whatever is asked. */
  bare() {
    const whole = Buffer.from(`{"jsonrpc":"2.0","id":1,"result":${resultText(size)}}`);
    const headers = { 'content-type': 'application/json', 'content-length': whole.length };
    return createServer(withBody((_body, res) => res.writeHead(200, headers).end(whole)));
  },
  /** The reference: the barest Fastify that parses the request, echoes its id and writes the stored bytes. */
  async splice() {
    const app = Fastify();
    app.post('/mcp', (request, reply) => {
      reply.hijack();
      answer(reply.raw, request.body.id);
    });
    await app.ready();
    return app.server;
  },
  /** A server of the official SDK, asked directly. */
  sdk() {
    const handler = createMcpHandler(() => {
      const server = new Server({ name: 'bench', version: '1.0.0' }, { capabilities: { resources: {} } });
      const resources = itemsOf(size);
      server.setRequestHandler('resources/list', () => ({ resources }));
      return server;
    });
    const handle = toNodeHandler(handler);
    return createServer((req, res) => void handle(req, res));
  },
  /** The thinnest pass-through on undici that could be called one. */
  pipe() {
    const agent = new Agent();
    const { origin, pathname: path } = new URL(target);
    return createServer(
      withBody(async (body, res, req) => {
        const { host: _, 'content-length': __, connection: ___, ...headers } = req.headers;
        const response = await agent.request({ origin, path, method: 'POST', headers, body });
        res.writeHead(response.statusCode, response.headers);
        response.body.pipe(res);
      }),
    );
  },
  /** What stands behind gateway and pipe: lists with hints, and calls. */
  upstream() {
    return createServer(
      withBody((body, res) => {
        const { id, method } = JSON.parse(body);
        if (id === undefined || method.startsWith('subscriptions')) return res.writeHead(404).end();
        const result = method === 'tools/call' ? bodyOf() : resultText(size);
        const text = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`;
        res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
        return res.end(text);
      }),
    );
  },
};

const server = await KINDS[kind]();
server.listen(0, '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`));
