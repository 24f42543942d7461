/** Requests as bytes: those that have carried a second one past a proxy, and those that no parser should take. */
import { rpcRequest } from '../support/client.js';
import { wireText } from '../support/raw.js';

const HEAD = 'POST /mcp/u HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
/** What must never be taken for a request of its own. */
const INNER = 'POST /mcp/u HTTP/1.1\r\nHost: localhost\r\nX-Smuggled: 1\r\nContent-Length: 2\r\n\r\n{}';

const withFields = (fields: string, body = '') => `${HEAD}${fields}\r\n\r\n${body}`;
const inChunks = (chunks: string) => withFields('Transfer-Encoding: chunked', chunks);
const withLength = (value: string) => withFields(`Content-Length: ${value}`, `{}${INNER}`);
const withCoding = (field: string) => withFields(field, `2\r\n{}\r\n0\r\n\r\n${INNER}`);

/** Where a body ends is unclear, or is no matter of this message: refused, and not even a beginning is sent on. */
export const UNCLEAR: readonly (readonly [string, string])[] = [
  ['a length and chunks', withFields('Content-Length: 5\r\nTransfer-Encoding: chunked', `0\r\n\r\n${INNER}`)],
  [
    'chunks and a length',
    withFields('Transfer-Encoding: chunked\r\nContent-Length: 90', `0\r\n\r\n${INNER}`),
  ],
  ['two lengths', withFields(`Content-Length: 2\r\nContent-Length: ${INNER.length + 2}`, `{}${INNER}`)],
  ['the same length twice', withFields('Content-Length: 2\r\ncontent-length: 2', '{}')],
  ...['2, 2', '+2', '-2', '0x2', '1e1', '2;', '2 3', '"2"', '', '99999999999999999999', '2\0', '\u00b2'].map(
    (value) => [`a length of ${JSON.stringify(value)}`, withLength(value)] as const,
  ),
  ...[
    'identity',
    'xchunked',
    'chunked, identity',
    'chunked\0',
    '"chunked"',
    'chunked;q=1',
    '\u000bchunked',
    '',
  ].map(
    (value) =>
      [`a transfer coding of ${JSON.stringify(value)}`, withCoding(`Transfer-Encoding: ${value}`)] as const,
  ),
  ['a blank before the colon', withCoding('Transfer-Encoding : chunked')],
  ['a tab before the colon', withCoding('Content-Length\t: 2')],
  ['a NUL in a name', withCoding('Transfer\0-Encoding: chunked')],
  ['a name with a blank', withCoding('X Transfer-Encoding: chunked')],
  ['a line without a colon', withFields('Content-Length', '{}')],
  ['an LF alone behind a field', withFields('X: y\nTransfer-Encoding: chunked', `0\r\n\r\n${INNER}`)],
  ['a CR alone behind a field', withFields('X: y\rTransfer-Encoding: chunked', `0\r\n\r\n${INNER}`)],
  ['LFs alone', withFields('Content-Length: 2', '{}').replaceAll('\r\n', '\n')],
  ...['0x2', '-2', 'g', '2 2', '', ' 2', 'FFFFFFFFFFFFFFFFF', '2;a=\nb', '1', '3'].map(
    (size) =>
      [`a chunk of size ${JSON.stringify(size)}`, inChunks(`${size}\r\n{}\r\n0\r\n\r\n${INNER}`)] as const,
  ),
  ['a chunk that ends with an LF alone', inChunks(`2\r\n{}\n0\r\n\r\n${INNER}`)],
  ['a size that ends with an LF alone', inChunks(`2\n{}\r\n0\r\n\r\n${INNER}`)],
  ['a body that ends too early', withFields('Content-Length: 500', INNER)],
  ['chunks that end too early', inChunks('ff\r\n{}')],
  ['two hosts', withFields('Host: evil.example\r\nContent-Length: 2', '{}')],
  ['no host', 'POST /mcp/u HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}'],
  [
    'another host',
    'POST http://evil.example/mcp/u HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\n\r\n{}',
  ],
  ['another version', 'POST /mcp/u HTTP/3.7\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}'],
  ['no version', 'POST /mcp/u\r\n\r\n'],
  ['a beginning of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['a beginning of TLS', '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003'],
  ['a method in small letters', 'post /mcp/u HTTP/1.1\r\nHost: localhost\r\n\r\n'],
  ['a tunnel', 'CONNECT /mcp/u HTTP/1.1\r\nHost: localhost\r\n\r\n'],
  ['a field of 20,000 bytes', withFields(`X: ${'x'.repeat(20_000)}\r\nContent-Length: 2`, '{}')],
  ['a name of 20,000 bytes', withFields(`${'x'.repeat(20_000)}: y\r\nContent-Length: 2`, '{}')],
  ['a target of 20,000 bytes', `POST /mcp/u?${'x'.repeat(20_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`],
  ['an expectation of its own', withFields('Expect: everything\r\nContent-Length: 2', '{}')],
];

const list = rpcRequest('tools/list');
const call = rpcRequest('tools/call', { params: { name: 't', arguments: {} } });
const wire = (headers: Record<string, string>, body: string) =>
  wireText('http://localhost/mcp/u', headers, body);

/** Good requests of all kinds, to be mutated. */
export const REQUESTS: readonly Buffer[] = [
  wire(list.headers, list.body),
  wire(call.headers, call.body),
  `${HEAD}Transfer-Encoding: chunked\r\n\r\n5;a=b\r\n{"a":\r\n2\r\n1}\r\n0\r\nX-T: 1\r\n\r\n`,
  `${HEAD}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}`,
  `${HEAD}Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nTE: trailers\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\n{}`,
  `${HEAD}Origin: http://localhost:1\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}`,
  `${HEAD}X: a\r\n\tfolded\r\nContent-Length: 2\r\n\r\n{}`,
  'GET /mcp/u HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n',
  'DELETE http://localhost/mcp/u?a=%zz HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: s\r\n\r\n',
  'OPTIONS /mcp/u HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nAccess-Control-Request-Method: POST\r\n\r\n',
  'GET /.well-known/oauth-protected-resource/mcp/u HTTP/1.1\r\nHost: localhost\r\n\r\n',
  'GET /%2e%2e/\u00e9/mcp//u;x HTTP/1.1\r\nHost: [::1]:1\r\n\r\n',
  'POST /mcp/u HTTP/1.0\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}',
  `${wire(list.headers, list.body)}${wire(call.headers, call.body)}`,
  '\r\n\r\nPOST /mcp/u HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}',
].map((text) => Buffer.from(text, 'latin1'));
