import { describe, expect, test } from 'vitest';
import { changesIn } from '../../src/core/change.js';

const changes = (text: string) => changesIn(Buffer.from(text));
const notification = (method: string, params?: unknown) => JSON.stringify({ jsonrpc: '2.0', method, params });
const listChanged = (method: string) => ({ kind: 'list-changed', method });
const updated = (uri: string) => ({ kind: 'resource-updated', uri });
const escapeAll = (ascii: string) => [...ascii].map((c) => `\\u00${c.charCodeAt(0).toString(16)}`).join('');
const TOOLS = 'notifications/tools/list_changed';

describe('notifications that say that something changed (law 18)', () => {
  test.each(['notifications/resources/list_changed', TOOLS, 'notifications/prompts/list_changed'])(
    '%s, with params or without',
    (method) => {
      expect(changes(notification(method))).toEqual([listChanged(method)]);
      expect(changes(notification(method, { _meta: { x: 1 } }))).toEqual([listChanged(method)]);
    },
  );

  test.each(['file:///a', '', '__proto__', 'x:e\u0301', 'a"b\\c'])('an update of the resource %j', (uri) => {
    expect(changes(notification('notifications/resources/updated', { uri, title: 'x' }))).toEqual([
      updated(uri),
    ]);
  });

  test.each([
    ['escaped slashes', `{"jsonrpc":"2.0","method":"notifications\\/tools\\/list_changed"}`],
    ['an escaped letter', `{"jsonrpc":"2.0","method":"notifications/tools/list\\u005fchanged"}`],
    ['an escaped key', `{"jsonrpc":"2.0","meth\\u006Fd":"notifications/tools/list_changed"}`],
    ['every letter escaped', `{"jsonrpc":"2.0","method":"${escapeAll(TOOLS)}"}`],
    ['white space', `\n{ "method" : "notifications/tools/list_changed" ,\t"jsonrpc":"2.0"}\r\n`],
  ])('%s do not hide one', (_name, text) => {
    expect(changes(text)).toEqual([listChanged(TOOLS)]);
  });

  test('an escaped update is seen with its decoded uri', () => {
    const params = '{"uri":"file:\\/\\/\\/\\u0061"}';
    const text = `{"jsonrpc":"2.0","method":"notifications\\/resources\\/\\u0075pdated","params":${params}}`;
    expect(changes(text)).toEqual([updated('file:///a')]);
  });

  test('each message of a batch counts, in order', () => {
    const batch = [
      notification('notifications/progress', {}),
      notification('notifications/resources/updated', { uri: 'a' }),
      '{"jsonrpc":"2.0","id":1,"result":{}}',
      notification(TOOLS),
      'null',
      '[]',
    ];
    expect(changes(`[${batch.join(',')}]`)).toEqual([updated('a'), listChanged(TOOLS)]);
  });
});

describe('what changes nothing (law 18, C25)', () => {
  test.each([
    ['an unknown list_changed', notification('notifications/foo/list_changed')],
    ['the client’s roots', notification('notifications/roots/list_changed')],
    ['another case', notification('notifications/Tools/list_changed')],
    ['a longer name', notification('notifications/tools/list_changed/x')],
    ['progress', notification('notifications/progress', { message: TOOLS })],
    ['a log line that quotes it', notification('notifications/message', { data: notification(TOOLS) })],
    ['a request of that name', `{"jsonrpc":"2.0","id":1,"method":"${TOOLS}"}`],
    ['a result that quotes it', `{"jsonrpc":"2.0","id":1,"result":{"method":"${TOOLS}"}}`],
    ['an update without a uri', notification('notifications/resources/updated', {})],
    ['an update without params', notification('notifications/resources/updated')],
    ['an update of a uri that is no string', notification('notifications/resources/updated', { uri: ['a'] })],
    ['a method that is no string', `{"jsonrpc":"2.0","method":["${TOOLS}"]}`],
    ['a batch in a batch', `[[${notification(TOOLS)}]]`],
    ['broken JSON', `{"method":"${TOOLS}"`],
    ['words alone', TOOLS],
    ['nothing', ''],
    ['an inherited method', '{"__proto__":{"method":"notifications/tools/list_changed"}}'],
  ])('%s', (_name, text) => {
    expect(changes(text)).toEqual([]);
  });

  test('nesting of 100,000 is no change and no crash', () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    expect(changes(`{"jsonrpc":"2.0","method":"list_changed","params":${deep}}`)).toEqual([]);
  });
});
