import { describe, expect, test } from 'vitest';
import { type Page, type ReadReply, readReply } from '../../src/core/page.js';
import type { CacheableMethod } from '../../src/core/protocol.js';
import { pageOf } from '../support/core.js';

const GOOD = '{"resultType":"complete","tools":[{"name":"a"}],"ttlMs":60000,"cacheScope":"public"}';
const read = (
  text: string | Uint8Array,
  method: CacheableMethod = 'tools/list',
  id: string | number = 1,
): ReadReply => readReply(Buffer.from(text), method, id);
const reply = (result: string) => read(`{"jsonrpc":"2.0","id":1,"result":${result}}`);
const notStored = (reason: string) => ({ kind: 'not-a-page', reason });

describe('which replies are results that may be stored (law 4)', () => {
  test.each<[CacheableMethod, string]>([
    ['tools/list', '{"tools":[]}'],
    ['prompts/list', '{"prompts":[{"name":"p"}]}'],
    ['resources/list', '{"resources":[]}'],
    ['resources/templates/list', '{"resourceTemplates":[]}'],
    ['resources/read', '{"contents":[]}'],
    ['server/discover', '{"supportedVersions":["2026-07-28"],"capabilities":{}}'],
  ])('a result of the shape of %s', (method, result) => {
    expect(pageOf(method, result).members.length).toBeGreaterThan(0);
    expect(pageOf(method, `{"resultType":"complete",${result.slice(1)}`).hints.ttlMs.sent).toBe(false);
  });

  test.each<[CacheableMethod, string]>([
    ['tools/list', '{}'],
    ['tools/list', '{"tools":{}}'],
    ['tools/list', '{"tools":null}'],
    ['tools/list', '{"Tools":[]}'],
    ['tools/list', '{"prompts":[]}'],
    ['prompts/list', '{"tools":[]}'],
    ['resources/list', '{"resourceTemplates":[]}'],
    ['resources/templates/list', '{"resources":[]}'],
    ['resources/read', '{"contents":"x"}'],
    ['resources/read', '{"contents":{}}'],
    ['server/discover', '{"supportedVersions":[]}'],
    ['server/discover', '{"supportedVersions":"x","capabilities":{}}'],
    ['server/discover', '{"supportedVersions":[],"capabilities":[]}'],
  ])('not one of another shape: %s %s (C57)', (method, result) => {
    expect(read(`{"jsonrpc":"2.0","id":1,"result":${result}}`, method)).toEqual(notStored('unexpected'));
  });

  test.each(['null', '[]', '"x"', '1', 'true', '[{"tools":[]}]'])('nor a result that is %s', (result) => {
    expect(reply(result)).toEqual(notStored('unexpected'));
  });

  test.each([
    ['"input_required"', 'input-required'],
    ['"partial"', 'unexpected'],
    ['"Complete"', 'unexpected'],
    ['""', 'unexpected'],
    ['null', 'unexpected'],
    ['1', 'unexpected'],
    ['["complete"]', 'unexpected'],
  ])('nor one of the resultType %s', (resultType, reason) => {
    expect(reply(`{"resultType":${resultType},"tools":[],"ttlMs":60000}`)).toEqual(notStored(reason));
  });

  test('nor an error, whose code is told apart', () => {
    const error = '{"code":-32602,"message":"no","data":{"ttlMs":60000}}';
    expect(read(`{"jsonrpc":"2.0","id":1,"error":${error}}`)).toEqual({
      ...notStored('error-reply'),
      errorCode: -32602,
    });
    expect(read('{"jsonrpc":"2.0","id":1,"error":null}')).toEqual(notStored('error-reply'));
    expect(read('{"jsonrpc":"2.0","id":1,"error":{"code":"-32602"}}')).toEqual(notStored('error-reply'));
  });

  test.each([
    ['both result and error', `{"jsonrpc":"2.0","id":1,"result":${GOOD},"error":{"code":1}}`],
    ['another version', `{"jsonrpc":"1.0","id":1,"result":${GOOD}}`],
    ['no version', `{"id":1,"result":${GOOD}}`],
    ['result twice', `{"jsonrpc":"2.0","id":1,"result":${GOOD},"r\\u0065sult":${GOOD}}`],
    ['id twice', `{"jsonrpc":"2.0","id":1,"result":${GOOD},"id":2}`],
  ])('nor %s', (_name, text) => {
    expect(read(text)).toEqual(notStored('unexpected'));
  });

  test.each([
    '{"tools":[],"ttlMs":60000,"cacheScope":"private","cacheScope":"public"}',
    '{"tools":[],"ttlMs":60000,"cacheScope":"private","cacheScop\\u0065":"public"}',
    '{"tools":[],"tools":[],"ttlMs":60000}',
    '{"tools":[],"ttlMs":0,"ttlMs":60000}',
    '{"tools":[],"nextCursor":"a","nextCursor":null}',
  ])('nor one with a key twice: %s (C38)', (result) => {
    expect(reply(result)).toEqual(notStored('unexpected'));
  });

  test('nor bytes that are no UTF-8', () => {
    const bytes = Buffer.from(`{"jsonrpc":"2.0","id":1,"result":${GOOD}}`);
    bytes[bytes.indexOf('"a"') + 1] = 0xff;
    expect(read(bytes)).toEqual(notStored('unexpected'));
  });
});

describe('which messages are no answer to the request (law 4, C35)', () => {
  test.each([
    ['another id', `{"jsonrpc":"2.0","id":2,"result":${GOOD}}`],
    ['the id in another type', `{"jsonrpc":"2.0","id":"1","result":${GOOD}}`],
    ['the id null', `{"jsonrpc":"2.0","id":null,"result":${GOOD}}`],
    ['no id', `{"jsonrpc":"2.0","result":${GOOD}}`],
    ['an error without id', '{"jsonrpc":"2.0","error":{"code":1,"message":""}}'],
    ['a notification', '{"jsonrpc":"2.0","method":"notifications/progress","params":{"id":1}}'],
    ['a request under the same id', '{"jsonrpc":"2.0","id":1,"method":"ping"}'],
    ['an array', `[{"jsonrpc":"2.0","id":1,"result":${GOOD}}]`],
    ['no JSON', '<html></html>'],
    ['cut JSON', `{"jsonrpc":"2.0","id":1,"result":${GOOD}`],
    ['more than one text', `{"jsonrpc":"2.0","id":1,"result":${GOOD}}{}`],
    ['nothing', ''],
    ['nesting of 100,000', `{"jsonrpc":"2.0","id":1,"result":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
  ])('%s', (_name, text) => {
    expect(read(text)).toEqual({ kind: 'no-answer' });
  });

  test.each<[string, string | number]>([
    ['"1"', '1'],
    ['"ÿ"', 'ÿ'],
    ['"\\u00ff"', 'ÿ'],
    ['""', ''],
    ['0', 0],
    ['-5', -5],
    ['9007199254740991', 9007199254740991],
  ])('an answer under %s is the answer to %j', (raw, id) => {
    expect(read(`{"jsonrpc":"2.0","id":${raw},"result":${GOOD}}`, 'tools/list', id).kind).toBe('page');
  });
});

describe('what is read of a page', () => {
  const itemsText = ({ bytes, items }: Page) => items && bytes.toString('utf8', items.start, items.end);

  test('hints are told as sent, whatever they are', () => {
    expect(pageOf('tools/list', '{"tools":[]}').hints).toEqual({
      ttlMs: { sent: false },
      cacheScope: { sent: false },
    });
    expect(pageOf('tools/list', '{"tools":[],"ttlMs":null,"cacheScope":["x"]}').hints).toEqual({
      ttlMs: { sent: true, value: null },
      cacheScope: { sent: true, value: ['x'] },
    });
  });

  test('items are the bytes from the first to the last', () => {
    const page = pageOf('tools/list', '{"tools":[ {"n":1.0} ,\n{"n":9007199254740993}, 3 ]}');
    expect(page.items?.count).toBe(3);
    expect(itemsText(page)).toBe('{"n":1.0} ,\n{"n":9007199254740993}, 3');
  });

  test('a list can be empty', () => {
    expect(pageOf('tools/list', '{"tools":[ ]}').items?.count).toBe(0);
  });

  test.each([
    ['absent', '{"tools":[]}', undefined],
    ['null (C03)', '{"tools":[],"nextCursor":null}', undefined],
    ['a word', '{"tools":[],"nextCursor":"p2"}', '"p2"'],
    ['the empty string (law 9)', '{"tools":[],"nextCursor":""}', '""'],
    ['the word null', '{"tools":[],"nextCursor":"null"}', '"null"'],
    ['escaped', '{"tools":[],"nextCursor":"a\\u002fb\\/c=="}', '"a\\u002fb\\/c=="'],
  ])('a next cursor that is %s', (_name, result, expected) => {
    expect(pageOf('tools/list', result).nextCursorRaw).toBe(expected);
  });

  test.each(['1', 'false', 'true', '{}', '["p2"]'])(
    'a next cursor %s is nothing that can be followed',
    (raw) => {
      expect(reply(`{"tools":[],"nextCursor":${raw},"ttlMs":60000}`)).toEqual(notStored('unexpected'));
    },
  );

  test('contents of a read name their resources (law 18)', () => {
    const contents = '[{"uri":"a"},{"uri":"b","text":"x"},{"uri":"a"},{"uri":1},{"text":""},"c",null]';
    expect(pageOf('resources/read', `{"contents":${contents}}`).uris).toEqual(['a', 'b']);
  });

  test('contents that name a resource twice over name both', () => {
    expect(pageOf('resources/read', '{"contents":[{"uri":"a","\\u0075ri":"b"}]}').uris).toEqual(['a', 'b']);
  });

  test('resources that a list names are none of those', () => {
    expect(pageOf('resources/list', '{"resources":[{"uri":"a"}]}').uris).toEqual([]);
  });

  test('a result with members named as the prototype is has no hints by them (C39)', () => {
    const page = pageOf('tools/list', '{"tools":[],"__proto__":{"ttlMs":60000},"constructor":1}');
    expect(page.hints.ttlMs.sent).toBe(false);
    expect(page.members.map((m) => m.key)).toEqual(['tools', '__proto__', 'constructor']);
  });
});
