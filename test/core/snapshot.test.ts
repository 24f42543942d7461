import { describe, expect, test } from 'vitest';
import type { FreshnessPolicy } from '../../src/core/freshness.js';
import type { CacheableMethod } from '../../src/core/protocol.js';
import { assemble, type Entry, type ReceivedPage } from '../../src/core/snapshot.js';
import { DEFAULT_POLICY, receivedPage } from '../support/core.js';

interface Assembling {
  readonly method?: CacheableMethod;
  readonly policy?: Partial<FreshnessPolicy>;
  readonly uri?: string;
}

function assembled(pages: readonly [ReceivedPage, ...ReceivedPage[]], options: Assembling = {}): Entry {
  const { method = 'tools/list', policy = {}, uri } = options;
  const asWhole = { authContext: 'a', seed: 's', asPage: false };
  return assemble(pages, { method, policy: { ...DEFAULT_POLICY, ...policy }, uri, ...asWhole });
}

/** A page of tools with further fields of its result. */
const page = (fields: string, receivedAt = 0) =>
  receivedPage('tools/list', `{"tools":[1],${fields}}`, receivedAt);
const bodyOf = (...results: [string, ...string[]]) => {
  const [first, ...more] = results.map((result) => receivedPage('tools/list', result));
  if (first === undefined) throw new Error('no page');
  return assembled([first, ...more]).body.toString('utf8');
};

describe('the bytes of a snapshot (law 12)', () => {
  test.each([
    ['a number beyond 2^53', '9007199254740993'],
    ['a number of zeros', '1.0'],
    ['a negative zero', '-0.0e+00'],
    ['more digits than a double', '0.1000000000000000055511151231257827'],
    ['an overflowing number', '1e999'],
    ['key order', '{"b":1,"a":2,"10":3,"2":4}'],
    ['unknown fields', '{"name":"a","x-unknown":{"deep":[null,true]}}'],
    ['unicode', '"é e\u0301 世界 😀 \u2028"'],
    ['escapes', '"\\u00e9\\/\\ud83d\\ude00\\ud800\\u0000"'],
    ['white space', '{ "a" :\t[ 1 ,\r\n2 ] }'],
    ['a key twice', '{"a":1,"a":2}'],
    ['__proto__ (C39)', '{"inputSchema":{"properties":{"__proto__":{"type":"string"}}}}'],
  ])('%s in an item is unchanged', (_name, item) => {
    expect(bodyOf(`{"tools":[${item}],"ttlMs":60000}`)).toBe(`"tools":[${item}]}`);
  });

  test('every item of every page stands there in order, doubles included (C06)', () => {
    expect(bodyOf('{"tools":[1, 2]}', '{"tools":[ 3 ]}', '{"tools":[2,1]}')).toBe('"tools":[1, 2,3,2,1]}');
  });

  test('pages without items leave no comma', () => {
    expect(bodyOf('{"tools":[]}', '{"tools":[1]}', '{"tools":[ ]}', '{"tools":[2]}')).toBe('"tools":[1,2]}');
    expect(bodyOf('{"tools":[]}')).toBe('"tools":[]}');
    expect(bodyOf('{"tools":[\n]}', '{"tools":[]}')).toBe('"tools":[]}');
  });

  test('the other fields come from the first page, in their order, unchanged', () => {
    expect(
      bodyOf(
        '{"resultType" : "complete","_meta":{"n":1.0},"tools":[1],"x":[ 9007199254740993 ],"nextCursor":"p2"}',
        '{"resultType":"complete","_meta":{"n":2},"tools":[2],"x":[],"y":1}',
      ),
    ).toBe('"resultType" : "complete","_meta":{"n":1.0},"tools":[1,2],"x":[ 9007199254740993 ]}');
  });

  test('hints and cursor are left out, however they are spelt and wherever they stand', () => {
    expect(bodyOf('{"ttlMs":1,"cacheScope":"public","tools":[],"nextCursor":null}')).toBe('"tools":[]}');
    expect(bodyOf('{"ttl\\u004ds":1,"tools":[],"next\\u0043ursor":"a","cache\\u0053cope":"public"}')).toBe(
      '"tools":[]}',
    );
  });

  test('hints inside an item are the item’s own', () => {
    const item = '{"ttlMs":1,"cacheScope":"x","nextCursor":"y"}';
    expect(bodyOf(`{"tools":[${item}]}`)).toBe(`"tools":[${item}]}`);
  });

  test('a result that is no list is kept as it came', () => {
    const contents = '"contents":[{"uri":"a","text":"1.0"} , {"uri":"b","blob":"AA=="}]';
    const read = receivedPage('resources/read', `{${contents},"ttlMs":60000,"x":1.0}`);
    expect(assembled([read], { method: 'resources/read', uri: 'a' }).body.toString()).toBe(
      `${contents},"x":1.0}`,
    );
  });
});

describe('how long a snapshot lives (laws 5 and 6)', () => {
  test.each<[string, [ReceivedPage, ...ReceivedPage[]], number]>([
    ['one page', [page('"ttlMs":60000', 500)], 60_500],
    ['a shorter second page (C10 a)', [page('"ttlMs":60000', 0), page('"ttlMs":1000', 100)], 1_100],
    ['a slower second page (C10 c)', [page('"ttlMs":2000', 0), page('"ttlMs":2000', 1_500)], 2_000],
    ['a later page that dies first', [page('"ttlMs":2000', 0), page('"ttlMs":100', 1_500)], 1_600],
    ['a page in the middle', [page('"ttlMs":9000'), page('"ttlMs":10'), page('"ttlMs":9000')], 10],
    ['a ceiling', [page('"ttlMs":1e300', 7)], 86_400_007],
  ])('%s decides by its own receipt', (_name, pages, expiresAt) => {
    expect(assembled(pages).expiresAt).toBe(expiresAt);
  });

  test('floor and default of the upstream hold for each page', () => {
    const pages = [page('"ttlMs":60000', 0), page('"x":1', 10)] as const;
    expect(assembled([...pages], { policy: { defaultTtlMs: 3_000 } }).expiresAt).toBe(3_010);
    expect(assembled([...pages], { policy: { minTtlMs: 90_000 } }).expiresAt).toBe(90_000);
  });

  test('its age counts from the oldest page', () => {
    expect(assembled([page('"ttlMs":60000', 20), page('"ttlMs":60000', 90)]).receivedAt).toBe(20);
  });
});

describe('who may be served it (law 7)', () => {
  const PUBLIC = '"ttlMs":60000,"cacheScope":"public"';

  test.each([
    ['public', [PUBLIC, PUBLIC]],
    ['private', [PUBLIC, '"ttlMs":60000,"cacheScope":"private"']],
    ['private', ['"ttlMs":60000,"cacheScope":"private"', PUBLIC]],
    ['private', [PUBLIC, '"ttlMs":60000,"cacheScope":"PUBLIC"', PUBLIC]],
    ['private', [PUBLIC, '"ttlMs":60000,"cacheScope":null']],
    ['public', [PUBLIC, '"ttlMs":60000']],
  ])('it is %s, when its pages say %j', (scope, fields) => {
    const [first, ...more] = fields.map((text) => page(text));
    if (first === undefined) throw new Error('no page');
    expect(assembled([first, ...more]).scope).toBe(scope);
  });

  test('a page whose lifetime is a default of ours makes it private', () => {
    const pages: [ReceivedPage, ReceivedPage] = [page(PUBLIC), page('"x":1')];
    expect(assembled(pages, { policy: { defaultTtlMs: 1_000 } }).scope).toBe('private');
  });
});

describe('what is known of a snapshot', () => {
  test('pages and items are counted', () => {
    const entry = assembled([
      page('"ttlMs":1'),
      receivedPage('tools/list', '{"tools":[1,[2,3],{}],"ttlMs":1}'),
    ]);
    expect(entry).toMatchObject({ pages: 2, items: 4, method: 'tools/list', uris: [] });
  });

  test('the hints that the upstream itself sent are remembered (law 12)', () => {
    expect(assembled([page('"ttlMs":60000')]).sentHints).toEqual({ ttlMs: true, cacheScope: false });
    expect(assembled([page('"cacheScope":"x"')], { policy: { minTtlMs: 1 } }).sentHints).toEqual({
      ttlMs: false,
      cacheScope: true,
    });
  });

  test('a read is dropped by the uri asked for and by those it shows (law 18)', () => {
    const read = receivedPage(
      'resources/read',
      '{"contents":[{"uri":"b"},{"uri":"a"},{"uri":"b"}],"ttlMs":1}',
    );
    const entry = assembled([read], { method: 'resources/read', uri: 'asked' });
    expect([...entry.uris].sort()).toEqual(['a', 'asked', 'b']);
    expect(assembled([read], { method: 'resources/read', uri: 'a' }).uris).toHaveLength(2);
    expect(entry.items).toBe(0);
  });
});
