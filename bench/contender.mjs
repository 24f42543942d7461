/**
 * Owns: the servers that the gateway is measured against, each a process of its own: `node contender.mjs NAME SIZE`.
 * It prints its URL when it listens, and ends with its input.
 */
import { createServer } from 'node:http';
import Fastify from 'fastify';
import { listResult } from './data.mjs';

const [name, size] = process.argv.slice(2);
const result = JSON.stringify(listResult(Number(size)));
const members = Buffer.from(result.slice(1));

/** What every contender sends: the request's id, the hints, the stored bytes. */
function head(id) {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"ttlMs":3599999,"cacheScope":"public",`;
}

const contenders = {
  /** Answers one fixed buffer, whatever is asked: what node:http costs by itself. */
  'bare-http': () => {
    const fixed = Buffer.concat([Buffer.from(head(1)), members, Buffer.from('}')]);
    const server = createServer((req, res) => {
      req.resume();
      req.on('end', () => {
        res.writeHead(200, { 'content-type': 'application/json', 'content-length': fixed.length });
        res.end(fixed);
      });
    });
    return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)));
  },
  /** The reference: parses the body, echoes the id, writes head, stored bytes and tail to the socket. */
  'fastify-splice': async () => {
    const app = Fastify({ logger: false });
    app.post('/mcp/u', (request, reply) => {
      reply.hijack();
      const before = head(request.body.id);
      const length = Buffer.byteLength(before) + members.length + 1;
      const { raw } = reply;
      raw.writeHead(200, { 'content-type': 'application/json', 'content-length': length });
      raw.cork();
      raw.write(before);
      raw.write(members);
      raw.end('}');
      raw.uncork();
    });
    await app.listen({ port: 0, host: '127.0.0.1' });
    return app.server.address().port;
  },
  /** The upstream of the gateway, and its own contender: answers a list as an MCP server would, without an SDK. */
  upstream: () => {
    const server = createServer((req, res) => {
      const chunks = [];
      req.on('data', (chunk) => chunks.push(chunk));
      req.on('end', () => {
        const message = JSON.parse(Buffer.concat(chunks).toString() || '{}');
        if (message.method !== 'resources/list') {
          res.writeHead(404, { 'content-type': 'application/json' });
          res.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, error: { code: -32601, message: 'no' } }));
          return;
        }
        res.writeHead(200, { 'content-type': 'application/json' });
        res.end(`{"jsonrpc":"2.0","id":${JSON.stringify(message.id)},"result":${result}}`);
      });
    });
    return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)));
  },
};

const port = await contenders[name]();
process.stdout.write(`http://127.0.0.1:${port}/mcp/u\n`);
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
