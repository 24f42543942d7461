/**
 * Owns: the routes of the MCP listener, and the answer to every path and method that there is not (design,
 * section 2).
 */
import type { FastifyInstance } from 'fastify';
import { GatewayError } from '../errors.js';
import { type Paths, pathOf, SERVED_METHODS } from './paths.js';
import { refuse, writeError, writeHead } from './reply.js';
import type { Serve } from './serve.js';

export interface McpRoutesOptions {
  readonly paths: Paths;
  readonly serve: Serve;
  readonly maxBodyBytes: number;
}

/** Registers the MCP endpoints, and answers for every other path of the listener. */
export function registerMcpRoutes(app: FastifyInstance, options: McpRoutesOptions): void {
  const { paths, serve } = options;
  keepBodiesRaw(app, options.maxBodyBytes);

  app.route({
    method: [...SERVED_METHODS],
    url: '/mcp/:upstream?',
    async handler({ raw: req, body }, reply) {
      reply.hijack();
      const { raw: res } = reply;
      const upstream = paths.upstreamAt(pathOf(req));
      if (upstream === undefined) writeError(res, new GatewayError('not-found'));
      else await serve.mcp({ req, res, upstream, body: Buffer.isBuffer(body) ? body : undefined });
    },
  });

  app.get('/.well-known/oauth-protected-resource/mcp/:upstream', async ({ raw: req }, reply) => {
    reply.hijack();
    const { raw: res } = reply;
    const upstream = paths.metadataAt(pathOf(req));
    if (upstream === undefined) writeError(res, new GatewayError('not-found'));
    else await serve.metadata({ req, res, upstream, body: undefined });
  });

  app.setNotFoundHandler(({ raw: req }, reply) => {
    reply.hijack();
    const methods = paths.methodsAt(pathOf(req));
    if (methods === undefined) writeError(reply.raw, new GatewayError('not-found'));
    else {
      const headers = ['Allow', methods.join(', ')];
      if (req.method === 'OPTIONS') writeHead(reply.raw, 204, undefined, headers).end();
      else writeError(reply.raw, new GatewayError('method-not-allowed'), { headers });
    }
  });

  app.setErrorHandler((error: { statusCode?: number }, { raw: req }, reply) => {
    reply.hijack();
    const { raw: res } = reply;
    if (error.statusCode === 413) {
      const detail = `At most ${options.maxBodyBytes} bytes are taken (MAX_BODY_BYTES).`;
      refuse(req, res, new GatewayError('body-too-large', { detail, cause: error }));
      return;
    }
    const isTheirs = error.statusCode !== undefined && error.statusCode < 500;
    // Where a body could not be read, what is still on its way must not be taken for the next request.
    writeError(res, new GatewayError(isTheirs ? 'bad-request' : 'internal', { cause: error }), {
      headers: ['Connection', 'close'],
    });
  });
}

/** Every media type is a body of bytes; what the client declared is read from its raw fields. */
function keepBodiesRaw(app: FastifyInstance, bodyLimit: number): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit }, (_request, body, done) => done(null, body));
  app.addHook('onRequest', (request, _reply, done) => {
    const { headers } = request.raw;
    // Fastify refuses a malformed Content-Type before the handler is asked: that verdict is the upstream's.
    if (headers['content-type'] !== undefined) headers['content-type'] = 'application/octet-stream';
    done();
  });
}
