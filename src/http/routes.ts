/**
 * Owns: the paths of the MCP listener: which upstream a path means, and the answer to every path and method
 * that there is not (design, section 2).
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorCode, GatewayError } from '../errors.js';
import { writeError } from './reply.js';
import { SERVED_METHODS, type Serve } from './serve.js';
import type { UpstreamRoute } from './task.js';

export interface McpRoutesOptions {
  readonly upstreams: ReadonlyMap<string, UpstreamRoute>;
  readonly serve: Serve;
  readonly maxBodyBytes: number;
}

const ALLOW = [...SERVED_METHODS, 'OPTIONS'].join(', ');

/** Registers the MCP endpoints, and answers for every other path of the listener. */
export function registerMcpRoutes(app: FastifyInstance, options: McpRoutesOptions): void {
  const { upstreams } = options;
  const only = upstreams.size === 1 ? [...upstreams.values()][0] : undefined;
  keepBodiesRaw(app, options.maxBodyBytes);

  function upstreamAt(path: string): UpstreamRoute | undefined {
    const name = /^\/mcp(?:\/([^/]+))?\/?$/.exec(path);
    if (name === null) return undefined;
    return name[1] === undefined ? only : upstreams.get(name[1]);
  }

  function metadataAt(path: string): UpstreamRoute | undefined {
    return upstreams.get(/^\/\.well-known\/oauth-protected-resource\/mcp\/([^/]+)\/?$/.exec(path)?.[1] ?? '');
  }

  async function handle(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const upstream = upstreamAt(pathOf(request));
    reply.hijack();
    const { raw: req } = request;
    const { raw: res } = reply;
    if (upstream === undefined) writeError(res, new GatewayError('not-found'));
    else
      await options.serve.mcp({
        req,
        res,
        upstream,
        body: Buffer.isBuffer(request.body) ? request.body : undefined,
      });
  }

  app.get('/.well-known/oauth-protected-resource/mcp/:upstream', async (request, reply) => {
    reply.hijack();
    const { raw: req } = request;
    const { raw: res } = reply;
    const upstream = metadataAt(pathOf(request));
    if (upstream === undefined) writeError(res, new GatewayError('not-found'));
    else await options.serve.metadata({ req, res, upstream, body: undefined });
  });

  for (const url of ['/mcp', '/mcp/:upstream'])
    app.route({ method: [...SERVED_METHODS], url, handler: handle });

  app.setNotFoundHandler((request, reply) => {
    reply.hijack();
    const path = pathOf(request);
    const allow =
      upstreamAt(path) !== undefined ? ALLOW : metadataAt(path) !== undefined ? 'GET, OPTIONS' : undefined;
    const error = new GatewayError(allow === undefined ? 'not-found' : 'method-not-allowed');
    writeError(reply.raw, error, { headers: allow === undefined ? [] : ['Allow', allow] });
  });

  app.setErrorHandler((error: { statusCode?: number }, _request, reply) => {
    reply.hijack();
    const detail = {
      detail: `At most ${options.maxBodyBytes} bytes are taken (MAX_BODY_BYTES).`,
      cause: error,
    };
    const code = codeFor(error.statusCode);
    // What is still on its way of a refused body must not be taken for the next request.
    const headers = ['Connection', 'close'];
    writeError(reply.raw, new GatewayError(code, code === 'body-too-large' ? detail : { cause: error }), {
      headers,
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

function pathOf(request: FastifyRequest): string {
  return (request.raw.url ?? '').split('?', 1)[0] ?? '';
}

function codeFor(status: number | undefined): ErrorCode {
  if (status === 413) return 'body-too-large';
  return status !== undefined && status < 500 ? 'bad-request' : 'internal';
}
