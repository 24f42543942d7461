import { describe, expect, test } from 'vitest';
import { sliceText } from '../../src/core/json.js';
import { parseMember, readMessage } from '../../src/core/message.js';
import { requestOf } from '../support/core.js';

const list = (id: string) => `{"jsonrpc":"2.0","id":${id},"method":"tools/list"}`;
const what = (body: string | Uint8Array) => {
  const message = readMessage(Buffer.from(body));
  return message.kind === 'other' ? message.what : message.kind;
};

describe('the id of a request (law 1, C35)', () => {
  test.each([
    ['1', 1],
    ['0', 0],
    ['-5', -5],
    ['9007199254740991', 9007199254740991],
    ['-9007199254740991', -9007199254740991],
    ['"1"', '1'],
    ['""', ''],
    ['"ÿ"', 'ÿ'],
    ['"\\u00ff"', 'ÿ'],
    ['"9007199254740993"', '9007199254740993'],
    ['"__proto__"', '__proto__'],
  ])('%s is kept in its type and as it stood', (raw, value) => {
    const request = requestOf(list(raw));
    expect(request.id).toBe(value);
    expect(request.idRaw).toBe(raw);
  });

  test.each([
    '9007199254740993',
    '9007199254740992',
    '-9007199254740993',
    '1e999',
    '1e20',
    '1.5',
    'null',
    'true',
    '{}',
    '[1]',
    '["a"]',
  ])('%s cannot be echoed exactly and makes the request pass through', (raw) => {
    expect(what(list(raw))).toBe('unusable-id');
  });
});

describe('what a body is (law 1)', () => {
  test('a single request is read with its params and its _meta', () => {
    const request = requestOf(
      ' {"method":"tools/list","params":{"a":1,"_meta":{"b":2}},"id":7,"jsonrpc":"2.0"}\n',
    );
    expect(request.method).toBe('tools/list');
    expect(request.params.map((m) => m.key)).toEqual(['a', '_meta']);
    expect(request.meta.map((m) => [m.key, sliceText(request.bytes, m)])).toEqual([['b', '2']]);
  });

  test('absent params have no members', () => {
    const request = requestOf(list('1'));
    expect(request.params).toEqual([]);
    expect(request.meta).toEqual([]);
  });

  test.each([
    ['an empty body', '', 'not-json-rpc'],
    ['malformed JSON', '{"jsonrpc":"2.0","id":1,"method":"tools/list"', 'not-json-rpc'],
    ['two texts', `${list('1')}${list('2')}`, 'not-json-rpc'],
    ['a string', '"tools/list"', 'not-json-rpc'],
    ['null', 'null', 'not-json-rpc'],
    ['an empty object', '{}', 'not-json-rpc'],
    ['no version', '{"id":1,"method":"tools/list"}', 'not-json-rpc'],
    ['another version', '{"jsonrpc":"1.0","id":1,"method":"tools/list"}', 'not-json-rpc'],
    ['a version that is a number', '{"jsonrpc":2.0,"id":1,"method":"tools/list"}', 'not-json-rpc'],
    ['a method that is no string', '{"jsonrpc":"2.0","id":1,"method":["tools/list"]}', 'not-json-rpc'],
    ['a byte order mark', `\ufeff${list('1')}`, 'not-json-rpc'],
    ['a notification', '{"jsonrpc":"2.0","method":"notifications/initialized"}', 'notification'],
    ['a list without id', '{"jsonrpc":"2.0","method":"tools/list"}', 'notification'],
    ['a result', '{"jsonrpc":"2.0","id":1,"result":{}}', 'response'],
    ['an error', '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}', 'response'],
    [
      'a request that is an answer too',
      '{"jsonrpc":"2.0","id":1,"method":"tools/list","result":{}}',
      'not-json-rpc',
    ],
  ])('%s is named for what it is', (_name, body, expected) => {
    expect(what(body)).toBe(expected);
  });

  test.each(['[]', `[${list('1')}]`, ` \n[${list('1')},${list('2')}]`])('%j is a batch (C37)', (body) => {
    expect(what(body)).toBe('batch');
  });

  test('bytes that are no UTF-8 are no message', () => {
    const bytes = Buffer.from(list('"x"'));
    bytes[bytes.indexOf('x')] = 0xff;
    expect(what(bytes)).toBe('not-json-rpc');
  });

  test('nesting of 100,000 is named without a crash (C53)', () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    expect(what(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":${deep}}}`)).toBe(
      'not-json-rpc',
    );
  });
});

describe('keys of more than one meaning (C38)', () => {
  test.each([
    ['method', '{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}'],
    ['method, turned round', '{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"tools/list"}'],
    ['method behind an escape', '{"jsonrpc":"2.0","id":1,"method":"tools/list","meth\\u006fd":"tools/call"}'],
    ['id', '{"jsonrpc":"2.0","id":1,"\\u0069d":2,"method":"tools/list"}'],
    ['params', '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{},"params":{}}'],
    ['a param', '{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a","uri":"b"}}'],
    ['_meta', '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{},"_meta":{}}}'],
    ['a field of _meta', '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"a":1,"a":2}}}'],
    ['params that are an array', '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}'],
    ['params that are null', '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}'],
    ['_meta that is no object', '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":1}}'],
  ])('%s: the message is ambiguous', (_name, body) => {
    expect(what(body)).toBe('ambiguous-params');
  });
});

describe('members named as the prototype is (C39)', () => {
  test('__proto__ and constructor are ordinary keys', () => {
    const request = requestOf(
      '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"__proto__":{"x":1},"constructor":2}}',
    );
    expect(request.params.map((m) => m.key)).toEqual(['__proto__', 'constructor']);
    expect('x' in {}).toBe(false);
  });

  test('a key that is not there is not found on the prototype', () => {
    const request = requestOf(list('1'));
    expect(parseMember(request.bytes, request.members, 'constructor')).toBeUndefined();
    expect(parseMember(request.bytes, request.members, '__proto__')).toBeUndefined();
  });
});
