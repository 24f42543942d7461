/** Owns: which path of the MCP listener means which upstream, and the methods that it has (design, section 2). */
import type { IncomingMessage } from 'node:http';
import type { UpstreamRoute } from './task.js';

/** The methods that are passed on to an upstream. */
export const SERVED_METHODS = ['POST', 'GET', 'DELETE'] as const;

export interface Paths {
  /** The upstream whose MCP endpoint is at the path. */
  upstreamAt(path: string): UpstreamRoute | undefined;
  /** The upstream whose protected-resource metadata is at the path. */
  metadataAt(path: string): UpstreamRoute | undefined;
  /** The methods of the path; undefined where there is no such path. */
  methodsAt(path: string): readonly string[] | undefined;
}

/** The methods of an MCP endpoint. */
export const ENDPOINT_METHODS: readonly string[] = [...SERVED_METHODS, 'OPTIONS'];
const METADATA_METHODS = ['GET', 'OPTIONS'];

export function createPaths(upstreams: ReadonlyMap<string, UpstreamRoute>): Paths {
  const only = upstreams.size === 1 ? [...upstreams.values()][0] : undefined;

  function upstreamAt(path: string): UpstreamRoute | undefined {
    const name = /^\/mcp(?:\/([^/]+))?\/?$/.exec(path);
    if (name === null) return undefined;
    return name[1] === undefined ? only : upstreams.get(name[1]);
  }

  function metadataAt(path: string): UpstreamRoute | undefined {
    return upstreams.get(/^\/\.well-known\/oauth-protected-resource\/mcp\/([^/]+)\/?$/.exec(path)?.[1] ?? '');
  }

  return {
    upstreamAt,
    metadataAt,
    methodsAt(path) {
      if (upstreamAt(path) !== undefined) return ENDPOINT_METHODS;
      return metadataAt(path) === undefined ? undefined : METADATA_METHODS;
    },
  };
}

/** The path of a request, without its query. */
export function pathOf(req: IncomingMessage): string {
  return (req.url ?? '').split('?', 1)[0] ?? '';
}

/** A request target as a path with its query, though it may have come in absolute form (RFC 9112 section 3.2.2). */
export function originForm(target: string): string {
  return target.replace(/^https?:\/\/[^/?]*(?=[/?]|$)/i, '') || '/';
}
