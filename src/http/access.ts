/**
 * Owns: who is let in, before anything else is looked at, and what browsers are told (design, section 2). The CORS
 * fields are made by @fastify/cors, and put on every answer to a browser, the gateway's own and relayed ones.
 */
import cors from '@fastify/cors';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { type AccessRules, allowsOrigin, judgeAccess } from '../core/access.js';
import type { RawHeaders } from '../core/headers.js';
import { GatewayError } from '../errors.js';
import { pathOf } from './paths.js';
import { putOnAnswer, refuse } from './reply.js';

const EXPOSED = [
  'Mcp-Session-Id',
  'MCP-Protocol-Version',
  'WWW-Authenticate',
  'Retry-After',
  'Cache-Status',
  'Age',
];
/** How long a browser may remember a preflight, in seconds. */
const PREFLIGHT_MAX_AGE_S = 600;

export interface AccessOptions {
  readonly rules: AccessRules;
  /** Present: scripts of the origins that are let in may use these methods where there is such a path. */
  readonly scripts?: { readonly methods: readonly string[]; readonly hasPath: (path: string) => boolean };
}

/** Lets in what the rules allow; answers everything else with 403, and preflights of those let in. */
export function registerAccess(app: FastifyInstance, { rules, scripts }: AccessOptions): void {
  app.addHook('onRequest', (request, reply, done) => {
    const verdict = judgeAccess(request.raw.rawHeaders, rules);
    if (verdict === 'allowed') {
      done();
      return;
    }
    reply.hijack();
    refuse(request.raw, reply.raw, new GatewayError(verdict));
  });
  if (scripts === undefined) return;
  const { methods, hasPath } = scripts;
  app.addHook('onRequest', (request, reply, done) => {
    // A preflight would otherwise be answered wherever it goes.
    if (request.method === 'OPTIONS' && !hasPath(pathOf(request.raw))) reply.callNotFound();
    else done();
  });
  app.register(cors, {
    origin: (origin, callback) =>
      callback(null, origin !== undefined && allowsOrigin(origin, rules) ? origin : false),
    methods: [...methods],
    exposedHeaders: EXPOSED,
    maxAge: PREFLIGHT_MAX_AGE_S,
    strictPreflight: false,
  });
  app.after(() => {
    app.addHook('onRequest', (request, reply, done) => {
      // Only browsers send an Origin: for all others an answer stays as it is.
      if (request.headers.origin !== undefined) putOnAnswer(reply.raw, fieldsOf(reply));
      done();
    });
  });
}

function fieldsOf(reply: FastifyReply): RawHeaders {
  return Object.entries(reply.getHeaders()).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).flatMap((one) => (one === undefined ? [] : [name, String(one)])),
  );
}
