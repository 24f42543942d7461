/** What is listed, read and called in the benchmark. */

export function itemsOf(size) {
  return Array.from({ length: Number(size) || 0 }, (_, i) => ({
    uri: `file:///srv/documents/report-${String(i).padStart(6, '0')}.txt`,
    name: `report-${i}`,
    title: `Quarterly report number ${i}`,
    description: 'What was measured, counted and decided',
    mimeType: 'text/plain',
  }));
}

/** The result of a list of `size` resources, public or `private`, or of a `read` of 4 kB. */
export function resultText(size) {
  const [what, scope = 'public'] = String(size).split(':');
  const hints = { resultType: 'complete', ttlMs: 3_600_000, cacheScope: scope };
  if (what === 'read')
    return JSON.stringify({ contents: [{ uri: 'file:///a', text: 'x'.repeat(4_000) }], ...hints });
  return JSON.stringify({ resources: itemsOf(what), ...hints });
}

/** The result of a call: 4 kB. */
export function bodyOf() {
  return JSON.stringify({ resultType: 'complete', content: [{ type: 'text', text: 'x'.repeat(4_000) }] });
}

/** The head and the body of a request as an SDK's client sends it; `ID` stands for the id. */
export function requestOf(method, params = {}) {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const named = params.uri ?? params.name;
  return {
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(named !== undefined && { 'mcp-name': named }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 'ID', method, params: { ...params, _meta: meta } }).replace(
      '"ID"',
      'ID',
    ),
  };
}
