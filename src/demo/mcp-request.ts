/**
 * Owns: requests of the demo's client, in the form that MCP 2026-07-28 demands (basic/transports/streamable-http),
 * sent here or printed as a `curl` line: both are made of the same parts.
 */

export interface McpRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const VERSION = '2026-07-28';
const META_PREFIX = 'io.modelcontextprotocol/';

/** The fields and the body of one request. */
export function mcpRequest(method: string, params: Readonly<Record<string, unknown>> = {}): McpRequest {
  const { name } = params;
  const _meta = {
    [`${META_PREFIX}protocolVersion`]: VERSION,
    [`${META_PREFIX}clientInfo`]: { name: 'demo', version: '1.0.0' },
    [`${META_PREFIX}clientCapabilities`]: {},
  };
  return {
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': VERSION,
      'Mcp-Method': method,
      ...(typeof name === 'string' && { 'Mcp-Name': name }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }),
  };
}

/** Sends the request; the answer's body is still to be read. */
export function send(url: string, request: McpRequest, signal?: AbortSignal): Promise<Response> {
  return fetch(url, { method: 'POST', ...request, ...(signal !== undefined && { signal }) });
}

/** The request as a command for a shell. */
export function curlLine(url: string, request: McpRequest): string {
  const fields = Object.entries(request.headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`);
  return [`curl -si ${url}`, ...fields, `-d ${quoted(request.body)}`].join(' \\\n  ');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
