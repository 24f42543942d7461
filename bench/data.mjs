/** Owns: the lists that are measured. */

/** A result of `resources/list` with this many resources, of about 170 bytes each. */
export function listResult(size) {
  const resources = Array.from({ length: size }, (_, i) => ({
    uri: `file:///projects/example/documents/${String(i).padStart(6, '0')}.md`,
    name: `document-${i}`,
    title: `Document number ${i}`,
    mimeType: 'text/markdown',
    size: 1000 + i,
  }));
  return { resultType: 'complete', resources, ttlMs: 3_600_000, cacheScope: 'public' };
}

/** The body and fields of one modern `resources/list`. */
export function listRequest() {
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'resources/list',
    params: {
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  });
  return {
    body,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'resources/list',
    },
  };
}
