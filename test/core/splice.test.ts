import { describe, expect, test } from 'vitest';
import { assemble, type Entry } from '../../src/core/snapshot.js';
import { type Spliced, type SpliceOptions, splice, toEvent } from '../../src/core/splice.js';
import { createEventScanner } from '../../src/core/sse.js';
import { DEFAULT_POLICY, receivedPage } from '../support/core.js';

function entryOf(result: string): Entry {
  return assemble([receivedPage('tools/list', result)], {
    method: 'tools/list',
    policy: { ...DEFAULT_POLICY, defaultTtlMs: 1_000 },
    uri: undefined,
    authContext: 'a',
    seed: 's',
    asPage: false,
  });
}

const text = ({ head, body, tail }: Spliced) => head + body.map(String).join('') + tail;
const answer = (entry: Entry, options: Partial<SpliceOptions> = {}) =>
  text(splice(entry, { idRaw: '1', era: 'modern', remainingMs: 59_000, ...options }));

const HINTED =
  '{"resultType":"complete","tools":[{"n":9007199254740993}],"ttlMs":60000,"cacheScope":"public"}';
const BARE = '{"tools":[]}';

describe('the answer to one request (laws 12 and 14)', () => {
  test('it is one result under the request’s id, with the hints of this moment', () => {
    expect(answer(entryOf(HINTED), { idRaw: '"x"', remainingMs: 12_345 })).toBe(
      '{"jsonrpc":"2.0","id":"x","result":{"ttlMs":12345,"cacheScope":"public",' +
        '"resultType":"complete","tools":[{"n":9007199254740993}]}}',
    );
  });

  test.each(['1', '"1"', '0', '""', '-5', '"\\u00ff"', '"ÿ"', '9007199254740991'])(
    'the id %s comes back in its type and as it stood (C35)',
    (idRaw) => {
      expect(answer(entryOf(HINTED), { idRaw })).toContain(`"id":${idRaw},`);
    },
  );

  test('the scope is the entry’s, not what a page claimed', () => {
    expect(answer(entryOf('{"tools":[],"ttlMs":1,"cacheScope":"nonsense"}'))).toContain(
      '"cacheScope":"private"',
    );
  });

  test('what is stale goes out with ttlMs 0', () => {
    expect(answer(entryOf(HINTED), { remainingMs: 0 })).toContain('"ttlMs":0,');
  });

  test('a modern client is told hints that the upstream did not send', () => {
    expect(JSON.parse(answer(entryOf(BARE), { remainingMs: 7 })).result).toEqual({
      ttlMs: 7,
      cacheScope: 'private',
      tools: [],
    });
  });

  test.each([
    [BARE, {}],
    ['{"tools":[],"ttlMs":60000}', { ttlMs: 7 }],
    ['{"tools":[],"cacheScope":"public"}', { cacheScope: 'public' }],
    ['{"tools":[],"ttlMs":60000,"cacheScope":"public"}', { ttlMs: 7, cacheScope: 'public' }],
  ])('a legacy client is told only the hints that came: %s', (result, hints) => {
    const { result: told } = JSON.parse(answer(entryOf(result), { era: 'legacy', remainingMs: 7 }));
    expect(told).toEqual({ tools: [], ...hints });
  });

  test('a snapshot of pages carries no nextCursor (C03)', () => {
    expect(answer(entryOf('{"tools":[],"nextCursor":null,"ttlMs":1}'))).not.toContain('nextCursor');
  });

  test('the stored bytes are not copied and a thousand answers leave them as they were', () => {
    const entry = entryOf(HINTED);
    const before = Buffer.from(entry.body);
    for (let i = 0; i < 1_000; i += 1) {
      expect(splice(entry, { idRaw: String(i), era: 'modern', remainingMs: i }).body).toEqual([entry.body]);
    }
    expect(entry.body.equals(before)).toBe(true);
  });
});

describe('the answer as an event', () => {
  test.each([
    ['one line', HINTED],
    ['line ends between tokens', '{"tools":[\r\n1,\r2,\n3 ],"ttlMs":1}'],
    ['letters that other standards take for line ends', '{"tools":["\u2028\u2029\u0085"],"ttlMs":1}'],
  ])('%s: one event carries the very value', (_name, result) => {
    const spliced = splice(entryOf(result), { idRaw: '1', era: 'modern', remainingMs: 5 });
    const events = createEventScanner({ maxDataBytes: 10_000 }).feed(Buffer.from(toEvent(spliced)));
    expect(events).toHaveLength(1);
    expect(JSON.parse(events[0]?.data.toString('utf8') ?? '')).toEqual(JSON.parse(text(spliced)));
  });
});
