/** Requests of an MCP client of either era, in their correct form, over real sockets. */

export interface RpcOptions {
  readonly id?: unknown;
  readonly params?: Record<string, unknown>;
  readonly headers?: Record<string, string>;
  /** Further fields of `_meta`. */
  readonly meta?: Record<string, unknown>;
  readonly era?: 'modern' | 'legacy';
  readonly version?: string;
  readonly signal?: AbortSignal;
}

export interface RpcAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects to find
  readonly json: any;
  /** The gateway's `Cache-Status`. */
  readonly cacheStatus: string;
}

const NAME_OF: Record<string, string> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
};

/** The fields and the body of one well-formed request. */
export function rpcRequest(
  method: string,
  options: RpcOptions = {},
): { headers: Record<string, string>; body: string } {
  const { era = 'modern', id = 1, params = {}, meta = {} } = options;
  const common = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  if (era === 'legacy') {
    const version = options.version ?? '2025-11-25';
    const hasMeta = Object.keys(meta).length > 0;
    const message = { jsonrpc: '2.0', id, method, params: hasMeta ? { ...params, _meta: meta } : params };
    return {
      headers: { ...common, 'mcp-protocol-version': version, ...options.headers },
      body: JSON.stringify(message),
    };
  }
  const version = options.version ?? '2026-07-28';
  const name = params[NAME_OF[method] ?? ''];
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': {},
    ...meta,
  };
  return {
    headers: {
      ...common,
      'mcp-protocol-version': version,
      'mcp-method': method,
      ...(typeof name === 'string' && { 'mcp-name': encodeName(name) }),
      ...options.headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta } }),
  };
}

function encodeName(name: string): string {
  return /^[\x21-\x7e]+$/.test(name) ? name : `=?base64?${Buffer.from(name).toString('base64')}?=`;
}

/** Sends one request and reads its whole answer. */
export async function rpc(url: string, method: string, options: RpcOptions = {}): Promise<RpcAnswer> {
  const { headers, body } = rpcRequest(method, options);
  return post(url, body, headers, options.signal);
}

/** Sends a body as it is. */
export async function post(
  url: string,
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string>,
  signal?: AbortSignal,
): Promise<RpcAnswer> {
  const response = await fetch(url, {
    method: 'POST',
    headers,
    body,
    redirect: 'manual',
    ...(signal && { signal }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: parse(text),
    cacheStatus: response.headers.get('cache-status') ?? '',
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
