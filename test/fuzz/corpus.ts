/**
 * The corpus: good inputs of every kind, and those that have broken parsers. Each fuzzer tries its part as it is, and
 * then mutated; what once broke something here is added to it.
 */
import { rpcRequest } from '../support/client.js';

const deep = (open: string, close: string, depth: number, core = '0') =>
  open.repeat(depth) + core + close.repeat(depth);

/** Pieces that mean something to one of the parsers: what is put in at random. */
export const TOKENS: readonly Buffer[] = [
  ...['{', '}', '[', ']', ',', ':', '"', '\\', '\\"', '\\u0000', '\\ud800', '\\udc00', '\\u0069', '\\/'],
  ...['null', 'true', '0', '-0', '-', '1e999', '-1e-999', '9007199254740993', '1.0', '01', '{}', '[]', '""'],
  ...['"id":1,', '"__proto__":{},', '"method":', '"result":{', '"ttlMs":', '"nextCursor":"",', '"_meta":{}'],
  ...[
    '\n',
    '\r',
    '\r\n',
    '\n\n',
    '\r\r',
    '\r\n\r\n',
    ' ',
    '\t',
    '\0',
    '\u007f',
    '\u00a0',
    '\u2028',
    '\ufeff',
  ],
  ...['data', 'data:', 'data: ', ':', ': ping\n', 'id: 1\n', 'event: message\n', 'retry: 1\n', 'é', '😀'],
  ...['=', ';', '?', '#', '@', '%', '%00', '%zz', '/', '..', '*', 'http://', '=?base64?', '?=', 'mcg.', '.'],
]
  .map((text) => Buffer.from(text))
  .concat(
    // A lone byte of a sequence, an overlong slash, a surrogate in UTF-8, beyond Unicode, a byte order mark cut short.
    [
      [0x80],
      [0xff],
      [0xc0, 0xaf],
      [0xed, 0xa0, 0x80],
      [0xf4, 0x90, 0x80, 0x80],
      [0xef, 0xbb],
      [0xe2, 0x82],
    ].map((bytes) => Buffer.from(bytes)),
  );

const STRANGE_TEXTS: readonly string[] = [
  ...[
    '',
    ' ',
    '\t\r\n',
    'null',
    'true',
    'fals',
    '"',
    '"\\',
    '"\\u12',
    '"\\ud83d\\ude00"',
    '"\\ud800"',
    '"\ud800"',
  ],
  ...[
    '\ufeff{}',
    '\ufeff',
    '{}\ufeff',
    '\0',
    '{}\0',
    '"\0"',
    '"\\u0000"',
    '"\u007f"',
    '"\u2028"',
    '\u00a01',
    '/**/1',
  ],
  ...[
    '0',
    '-0',
    '-',
    '00',
    '1.',
    '.1',
    '1e',
    '1e+',
    '1E-0',
    '1e999',
    '-1e999',
    '1e-999',
    '5e-324',
    '0x1',
    '1_0',
    '+1',
  ],
  ...[
    '9007199254740991',
    '9007199254740993',
    '123456789012345678901234567890',
    '0.1000000000000000055511151231257827',
  ],
  ...[
    'NaN',
    'Infinity',
    '-Infinity',
    'undefined',
    "'a'",
    '[1,]',
    '[,]',
    '{"a":1,}',
    '{,}',
    '{"a"}',
    '{1:1}',
    '{a:1}',
  ],
  ...['{"a":1,"a":2}', '{"a":1,"\\u0061":2}', '{"":0,"":1}', '[{"x":{"y":1,"y":2}}]', '{"é":1,"\\u00e9":2}'],
  ...['{"__proto__":{"x":1},"constructor":{"prototype":{"y":2}},"toString":null}', '{"__proto__":null}'],
  ...['{"2":0,"1":0,"b":0,"a":0}', '{"b":[1,{"d":4,"c":3}],"a":{"z":[],"y":{}}}', ' { "a" : [ 1 , 2 ] } '],
  ...[
    '[[[[[',
    ']]]]]',
    '[}',
    '{]',
    '{}{}',
    '[]1',
    '1 2',
    '{"a":[}',
    '"a" "b"',
    '"é😀世\\/\\b\\f\\n\\r\\t\\"\\\\"',
  ],
  deep('[', ']', 63),
  deep('[', ']', 65),
  deep('{"a":', '}', 65),
  deep('[{"":', '}]', 200),
  deep('[', ']', 10_000, ''),
  deep('[', ']', 10_002, ''),
  '['.repeat(20_000),
  `"${'\\u0041'.repeat(500)}"`,
  `{${Array.from({ length: 300 }, (_, i) => `"k${i}":${i}`).join(',')}}`,
  `${'9'.repeat(1_000)}.${'9'.repeat(1_000)}e${'9'.repeat(20)}`,
];

/** JSON texts, and what looks like them. */
export const JSON_TEXTS: readonly Buffer[] = [
  ...STRANGE_TEXTS.map((text) => Buffer.from(text)),
  Buffer.from([0x22, 0xff, 0x22]),
  Buffer.from([0x22, 0xc0, 0xaf, 0x22]),
  Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]),
  Buffer.from([0x22, 0xe2, 0x82, 0x22]),
  Buffer.from([0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]),
  Buffer.from('{"a":1}', 'utf16le'),
];

const listBody = rpcRequest('tools/list').body;
const readBody = rpcRequest('resources/read', { params: { uri: 'file:///a' } }).body;

/** Request bodies: every kind of message, and messages of more than one meaning. */
export const REQUEST_BODIES: readonly Buffer[] = [
  ...[listBody, readBody, rpcRequest('tools/list', { era: 'legacy', params: { cursor: 'c' } }).body],
  rpcRequest('server/discover', { id: 'ÿ"\\', meta: { progressToken: 1, 'x/y': { b: 1, a: [2] } } }).body,
  rpcRequest('tools/call', { params: { name: '__proto__', arguments: JSON.parse('{"__proto__":{"x":1}}') } })
    .body,
  '{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/list"}',
  `{"jsonrpc":"2.0","id":${'1'.repeat(400)},"method":"tools/list"}`,
  `{"jsonrpc":"2.0","id":"${'x'.repeat(3_000)}","method":"tools/list"}`,
  '{"jsonrpc":"2.0","id":"\\ud800","method":"tools/list"}',
  '{"jsonrpc":"2.0","id":-0,"method":"tools/list","params":{}}',
  '{"jsonrpc":"2.0","id":null,"method":"tools/list"}',
  '{"jsonrpc":"2.0","id":1.0,"method":"tools/list"}',
  '{"jsonrpc":"2.0","id":1e3,"method":"tools/list"}',
  '{"jsonrpc":"2.0","method":"notifications/initialized"}',
  '{"jsonrpc":"2.0","id":1,"result":{}}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/list","meth\\u006fd":"tools/call"}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":1,"\\u0061":2}}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":{"a":1,"a":2},"_meta":{"progressToken":{"b":1,"b":2}}}}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":null,"n":1.0,"m":10000000000000000000001}}',
  '{"jsonrpc":"2.0","id":1,"method":"constructor","params":{"_meta":{"__proto__":1}}}',
  '{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a","uri":"b"}}',
  '[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]',
  '[]',
  `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":${deep('[', ']', 70)}}}`,
].map((text) => Buffer.from(text));

const answer = (result: string, rest = '"jsonrpc":"2.0","id":1') => `{${rest},"result":${result}}`;
const HINTS = '"ttlMs":60000,"cacheScope":"public"';

/** JSON-RPC answers to a list or a read under the id 1. */
export const ANSWERS: readonly Buffer[] = [
  answer(`{"resultType":"complete","tools":[{"name":"a","x":1.10},{"name":"b"}],${HINTS},"nextCursor":"c"}`),
  answer(`{ "tools" : [ 1e400 , -0 , "\\ud800" , {"":{"a":1,"a":2}} ] , ${HINTS} , "y" : null }`),
  answer(`{"tools":[],${HINTS}}`),
  answer(`{"tools":[[],{},[[]],""],"ttlMs":1e999,"cacheScope":"PUBLIC","nextCursor":null}`),
  answer(`{"tools":[1],"ttlMs":9007199254740993,"cacheScope":["public"],"nextCursor":""}`),
  answer(`{"tools":[1],"ttlMs":60000,"ttlMs":0}`),
  answer(`{"tools":[1],"cacheScope":"private","cache\\u0053cope":"public","ttlMs":60000}`),
  answer(`{"tools":{"length":1},${HINTS}}`),
  answer(`{"tools":[1],${HINTS},"resultType":"input_required"}`),
  answer(`{"tools":[1],${HINTS},"nextCursor":5}`),
  answer(`{"__proto__":{"tools":[1]},${HINTS}}`),
  answer(`{"contents":[{"uri":"file:///a","text":"é"},{"uri":"x","\\u0075ri":"y"},{"uri":5},7],${HINTS}}`),
  answer(`{"tools":[1],${HINTS}}`, '"id":1,"jsonrpc":"2.0","id":1'),
  answer(`{"tools":[1],${HINTS}}`, '"jsonrpc":"2.0","id":"1"'),
  answer(`{"tools":[1],${HINTS}}`, '"jsonrpc":"1.0","id":1'),
  answer(`{"tools":[1],${HINTS}}`, '"jsonrpc":"2.0","id":1.0,"error":null'),
  answer(`{"tools":[${deep('[', ']', 400, '')}],${HINTS}}`),
  '{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}',
  '{"jsonrpc":"2.0","id":1,"error":null}',
  '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
  '[{"jsonrpc":"2.0","method":"notifications/tools/\\u006cist_changed"},{"method":"notifications/resources/updated","params":{"uri":"a"}}]',
  '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":["a"]}}',
  '{"jsonrpc":"2.0","id":1,"method":"notifications/tools/list_changed"}',
].map((text) => Buffer.from(text));

const REPLY = answer(`{"tools":[{"name":"a"}],${HINTS}}`);

/** Event streams: line ends of all kinds, fields of all kinds, ends that never come. */
export const EVENT_STREAMS: readonly Buffer[] = [
  '',
  `event: message\ndata: ${REPLY}\n\n`,
  `event: message\r\ndata: ${REPLY}\r\n\r\n`,
  `data: ${REPLY}\r\rdata: x\r\n\rdata: y\n\r\n\r`,
  'data: a\r\ndata: b\rdata: c\n\r\ndata: d\r\r\n\n\r',
  `\ufeff: ping\nid: 1\nretry: 3000\ndata:\n\nevent: x\n\ndata: ${REPLY}\n\n`,
  '\ufeff\ufeffdata: a\n\n',
  '\ufeff\ndata: a\n\n\ufeffdata: b\n\n',
  `data:{"jsonrpc":"2.0",\ndata: "id":1,\n: c\ndata:"result":{"é":"世界"}}\n\n`,
  'data\ndata\ndata:\ndata: \ndata:  \n\n',
  'data\0: a\ndata:\0\n\ndatax: b\nDATA: c\n data: d\ndata : e\n\n',
  `${': ping\n'.repeat(300)}data: a\n\n`,
  `${'data\n'.repeat(300)}\n`,
  'data: a\n'.repeat(200),
  ...[1_023, 1_024, 1_025, 2_049].map((lines) => `${'data\n'.repeat(lines)}data: a\n`),
  `${'data: a\ndata\n'.repeat(1_024)}\ndata: b\n\n`,
  `data: ${'x'.repeat(2_000)}`,
  `id: ${'9'.repeat(2_000)}\ndata: a\n\n`,
  '\n'.repeat(300),
  '\r'.repeat(300),
  '\r\n'.repeat(200),
  'data: a\n\ndata: cut',
  `data: ${REPLY}\n`,
  ':'.repeat(500),
  'data: a\u2028\u0085\u000b\u000cb\n\n',
]
  .map((text) => Buffer.from(text))
  .concat(
    Buffer.from([0xef, 0xbb, 0x64, 0x61, 0x74, 0x61, 0x3a, 0xff, 0x0a, 0x0a]),
    Buffer.from([0xef, 0xbb, 0xbf]),
  );

/** Values of fields: media types, codings, names, hosts, challenges, and what breaks readers of them. */
export const FIELD_VALUES: readonly Buffer[] = [
  ...[
    'application/json',
    'APPLICATION/JSON ; charset="utf-8;,"',
    'text/event-stream',
    'application/json, text/event-stream',
  ],
  ...[
    'application/json;q=0, text/event-stream',
    '*/*',
    'text/event-stream;q=0.000,application/json;q=0.001',
    ',,;,',
  ],
  ...[
    'gzip',
    'GZIP , br',
    'identity',
    'gzip, identity',
    'x-gzip',
    'deflate,,',
    'close, X-Hop',
    'keep-alive,authorization',
  ],
  ...[
    '=?base64?w6Q=?=',
    '=?base64?w6Q?=',
    '=?base64?/w==?=',
    '=?base64??=',
    '=?base64?',
    '=?BASE64?w6Q=?=',
    '=?base64?=?=',
  ],
  ...[
    'localhost',
    'localhost:80',
    '127.0.0.1:65536',
    '127.1.2.3',
    '[::1]:8080',
    '[::1',
    'localhost.evil.example',
    '0x7f.1',
  ],
  ...[
    'http://localhost:3000',
    'http://localhost@evil.example',
    'null',
    'http://[::1]',
    'https://127.0.0.1:1/',
    'file://',
  ],
  'Bearer resource_metadata="https://u.example/.well-known/x"',
  'Bearer realm="a, resource_metadata=b", error="x", resource_metadata=https://u.example',
  'Bearer realm="\\"resource_metadata=\\"", Resource_Metadata = "a\\"b"',
  'Bearer resource_metadata="never closed',
  `Bearer ${'resource_metadata'.repeat(20)}${' '.repeat(300)}x`,
  `"${'\\"'.repeat(400)}`,
  'é\t\u0080ÿ',
].map((text) => Buffer.from(text, 'latin1'));

/** Cursors of clients: ours, nearly ours, and their own. */
export const CURSORS: readonly Buffer[] = [
  ...[
    '',
    'mcg.',
    'mcg...',
    `mcg.${'a'.repeat(8)}.${'b'.repeat(22)}.0.${'c'.repeat(22)}`,
    'MCG.',
    'null',
    '\ud800',
    '\0',
  ],
  ...[
    `mcg.${'a'.repeat(8)}.${'b'.repeat(22)}.00.${'c'.repeat(22)}`,
    `mcg.${'a'.repeat(8)}.`,
    'eyJvZmZzZXQiOjB9',
    '🤷',
  ],
  ...[`mcg.${'a'.repeat(8)}.${'b'.repeat(22)}.999999999.${'c'.repeat(22)}\n`, 'x'.repeat(3_000)],
].map((text) => Buffer.from(text));
