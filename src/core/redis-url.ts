/** Owns: what a REDIS_URL means: one server, Sentinel, or Cluster, plain or over TLS. */

/** What a REDIS_URL says. */
export interface RedisAddress {
  readonly kind: 'single' | 'sentinel' | 'cluster';
  readonly tls: boolean;
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  /** The name of the master that the sentinels know. */
  readonly master?: string;
  readonly username?: string;
  readonly password?: string;
  readonly db: number;
}

const SCHEMES: Readonly<Record<string, Pick<RedisAddress, 'kind' | 'tls'> & { readonly port: number }>> = {
  redis: { kind: 'single', tls: false, port: 6379 },
  rediss: { kind: 'single', tls: true, port: 6379 },
  'redis-sentinel': { kind: 'sentinel', tls: false, port: 26_379 },
  'rediss-sentinel': { kind: 'sentinel', tls: true, port: 26_379 },
  'redis-cluster': { kind: 'cluster', tls: false, port: 6379 },
  'rediss-cluster': { kind: 'cluster', tls: true, port: 6379 },
};

/** The address that a REDIS_URL names; undefined for what is none. */
export function parseRedisUrl(text: string): RedisAddress | undefined {
  const match = /^([a-z-]+):\/\/(?:([^@/]*)@)?([^/?#]+)(?:\/([^?#]*))?$/.exec(text);
  const scheme = SCHEMES[match?.[1] ?? ''];
  if (match === null || scheme === undefined) return undefined;
  const [, , user = '', hosts = '', path = ''] = match;
  const nodes = hosts.split(',').map((host) => parseHost(host, scheme.port));
  if (nodes.some((node) => node === undefined) || (scheme.kind === 'single' && nodes.length > 1))
    return undefined;
  const [name, db] = scheme.kind === 'sentinel' ? path.split('/') : [undefined, path];
  if (scheme.kind === 'sentinel' && (name === undefined || !/^[\w.-]+$/.test(name))) return undefined;
  if (!/^(\d{1,4})?$/.test(db ?? '') || (scheme.kind === 'cluster' && (db ?? '') !== '')) return undefined;
  const credentials = parseCredentials(user);
  if (credentials === undefined) return undefined;
  return {
    kind: scheme.kind,
    tls: scheme.tls,
    nodes: nodes.filter((node) => node !== undefined),
    db: Number(db ?? 0),
    ...(name !== undefined && { master: name }),
    ...credentials,
  };
}

function parseHost(text: string, defaultPort: number): { host: string; port: number } | undefined {
  const match = /^(\[[0-9a-fA-F:.]+\]|[\w.-]+)(?::(\d{1,5}))?$/.exec(text);
  const port = Number(match?.[2] ?? defaultPort);
  if (match?.[1] === undefined || port < 1 || port > 65_535) return undefined;
  return { host: match[1].replace(/^\[|\]$/g, ''), port };
}

function parseCredentials(text: string): { username?: string; password?: string } | undefined {
  if (text === '') return {};
  const cut = text.indexOf(':');
  try {
    const username = decodeURIComponent(cut === -1 ? text : text.slice(0, cut));
    const password = cut === -1 ? '' : decodeURIComponent(text.slice(cut + 1));
    return { ...(username !== '' && { username }), ...(password !== '' && { password }) };
  } catch {
    return undefined;
  }
}
