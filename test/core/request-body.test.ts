import { describe, expect, test } from 'vitest';
import { bodyForPage } from '../../src/core/request-body.js';
import { requestOf } from '../support/core.js';

const pageBody = (body: string, cursorRaw = '"p2"') =>
  bodyForPage(requestOf(body), cursorRaw, 'walk-1').toString('utf8');

describe('the request for a later page (law 9)', () => {
  test('it is the client’s own, member by member, with another id and the cursor', () => {
    const params = '"n" : 9007199254740993,"_meta":{"b":1.0,"a":"\\u00e9"}';
    expect(pageBody(`{ "jsonrpc":"2.0", "id":7,"method":"tools/list","params":{${params}}}`)).toBe(
      `{"jsonrpc":"2.0","id":"walk-1","method":"tools/list","params":{${params},"cursor":"p2"}}`,
    );
  });

  test.each(['""', '"a+b/c==\\u00e9"', '"世界 😀"', '"\\ud800"', '"\\"},\\"id\\":1"'])(
    'the cursor %s is sent as the upstream sent it',
    (cursorRaw) => {
      const body = pageBody('{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}', cursorRaw);
      expect(body).toBe(
        `{"jsonrpc":"2.0","id":"walk-1","method":"tools/list","params":{"cursor":${cursorRaw}}}`,
      );
    },
  );

  test('params are made where the client sent none', () => {
    expect(pageBody('{"jsonrpc":"2.0","id":1,"method":"tools/list"}')).toBe(
      '{"jsonrpc":"2.0","id":"walk-1","method":"tools/list","params":{"cursor":"p2"}}',
    );
  });

  test('a cursor of null is replaced, however the key is spelt, and so is the id', () => {
    expect(
      pageBody('{"\\u0069d":1,"params":{"cur\\u0073or":null,"x":1},"method":"tools/list","jsonrpc":"2.0"}'),
    ).toBe('{"id":"walk-1","params":{"x":1,"cursor":"p2"},"method":"tools/list","jsonrpc":"2.0"}');
  });

  test('unicode of a client survives byte for byte', () => {
    const body = '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"é":"e\u0301😀"}}';
    expect(pageBody(body)).toContain('{"é":"e\u0301😀","cursor":"p2"}');
  });
});
