import { describe, expect, test } from 'vitest';
import type { ReceivedPage } from '../../src/core/snapshot.js';
import { type NextPage, type WalkDeps, walk } from '../../src/core/walk.js';
import { receivedPage } from '../support/core.js';

const UNLIMITED = { maxPages: 1_000, maxItems: 100_000, maxBytes: 1_000_000 };

/** A page of `items` items, with the text of its next cursor. */
function page(nextCursor?: string, items = 1): ReceivedPage {
  const cursor = nextCursor === undefined ? '' : `,"nextCursor":${nextCursor}`;
  return receivedPage('tools/list', `{"tools":[${Array(items).fill('0').join(',')}]${cursor}}`);
}

const asPage = (received: ReceivedPage): NextPage => ({ kind: 'page', received });

interface Script extends Partial<WalkDeps> {
  /** What the upstream answers to a cursor; the last page where it says nothing. */
  readonly answer?: (cursorRaw: string, asked: number) => NextPage;
}

/** Walks from `first`, and tells which cursors were asked for. */
async function walked(first: ReceivedPage, script: Script = {}) {
  const asked: string[] = [];
  const { answer = () => asPage(page()), ...deps } = script;
  const end = await walk(first, {
    limits: UNLIMITED,
    isStorable: () => true,
    isSuperseded: () => false,
    async fetchNext(cursorRaw) {
      asked.push(cursorRaw);
      return answer(cursorRaw, asked.length);
    },
    ...deps,
  });
  return { end, asked };
}

describe('a walk follows the cursors to the end (law 9)', () => {
  test.each([
    ['without a cursor', page()],
    ['with a cursor of null (C03)', page('null')],
  ])('a page %s is the whole list', async (_name, first) => {
    expect(await walked(first)).toEqual({ end: { kind: 'complete', pages: [first] }, asked: [] });
  });

  test('every page is asked for by the cursor of the one before, as it was sent', async () => {
    const pages = [page('"a+b/c=="'), page('"\\u00e9\\/"'), page('"é"'), page('null')] as const;
    const { end, asked } = await walked(pages[0], { answer: (_cursor, n) => asPage(pages[n] ?? page()) });
    expect(asked).toEqual(['"a+b/c=="', '"\\u00e9\\/"', '"é"']);
    expect(end).toEqual({ kind: 'complete', pages });
  });

  test('the empty string is a cursor like any other', async () => {
    const { end, asked } = await walked(page('""'));
    expect(asked).toEqual(['""']);
    expect(end).toMatchObject({ kind: 'complete', pages: [{}, {}] });
  });

  test('an empty page does not end it', async () => {
    const { end } = await walked(page('"a"', 0), {
      answer: (_c, n) => asPage(n < 3 ? page(`"${n}"`, 0) : page()),
    });
    expect(end).toMatchObject({ kind: 'complete', pages: { length: 4 } });
  });
});

describe('a walk that does not end by itself is ended (law 10, C02)', () => {
  test.each<[string, ReceivedPage, (cursorRaw: string) => NextPage, number]>([
    ['always the same cursor', page('"8"'), () => asPage(page('"8"')), 1],
    ['A, B, A', page('"A"'), (cursor) => asPage(page(cursor === '"A"' ? '"B"' : '"A"')), 2],
    ['always the empty cursor', page('""'), () => asPage(page('""')), 1],
    ['one cursor in two spellings', page('"A"'), () => asPage(page('"\\u0041"')), 1],
  ])('%s', async (_name, first, answer, requests) => {
    const { end, asked } = await walked(first, { answer });
    expect(end).toEqual({ kind: 'ended', reason: 'cursor-loop' });
    expect(asked).toHaveLength(requests);
  });

  test('a fresh cursor for ever is followed to the page limit and not beyond', async () => {
    const limits = { ...UNLIMITED, maxPages: 5 };
    const { end, asked } = await walked(page('"0"', 0), {
      limits,
      answer: (_c, n) => asPage(page(`"${n}"`, 0)),
    });
    expect(end).toEqual({ kind: 'ended', reason: 'max-pages' });
    expect(asked).toHaveLength(4);
  });

  test('a list of exactly so many pages is whole', async () => {
    const limits = { ...UNLIMITED, maxPages: 3 };
    const answer = (_cursor: string, n: number) => asPage(n < 2 ? page('"b"') : page());
    expect((await walked(page('"a"'), { limits, answer })).end.kind).toBe('complete');
    const oneMore = (_cursor: string, n: number) => asPage(n < 3 ? page(`"${n}"`) : page());
    expect((await walked(page('"a"'), { limits, answer: oneMore })).end).toMatchObject({
      reason: 'max-pages',
    });
  });

  test('an item limit ends it as soon as it is passed', async () => {
    const limits = { ...UNLIMITED, maxItems: 4 };
    const inTwos = (last: number) => (_cursor: string, n: number) =>
      asPage(page(n < last ? `"${n}"` : undefined, 2));
    expect((await walked(page('"a"', 2), { limits, answer: inTwos(1) })).end.kind).toBe('complete');
    const { end, asked } = await walked(page('"a"', 2), { limits, answer: inTwos(9) });
    expect(end).toEqual({ kind: 'ended', reason: 'max-items' });
    expect(asked).toHaveLength(2);
    expect((await walked(page(undefined, 5), { limits })).end).toMatchObject({ reason: 'max-items' });
  });

  test('a byte limit counts the bytes of all pages', async () => {
    const [first, last] = [page('"a"', 50), page(undefined, 50)];
    const sum = first.page.bytes.length + last.page.bytes.length;
    const answer = () => asPage(last);
    const within = await walked(first, { answer, limits: { ...UNLIMITED, maxBytes: sum } });
    expect(within.end.kind).toBe('complete');
    const beyond = await walked(first, { answer, limits: { ...UNLIMITED, maxBytes: sum - 1 } });
    expect(beyond.end).toEqual({ kind: 'ended', reason: 'too-large' });
  });

  test('a page that may not be kept ends it', async () => {
    const stale = page('"b"');
    const { end, asked } = await walked(page('"a"'), {
      answer: () => asPage(stale),
      isStorable: (received) => received !== stale,
    });
    expect(end).toEqual({ kind: 'ended', reason: 'page-stale' });
    expect(asked).toHaveLength(1);
  });

  test.each(['page-failed', 'deadline', 'too-large'] as const)(
    'a page that fails by %s ends it',
    async (reason) => {
      const { end } = await walked(page('"a"'), { answer: () => ({ kind: 'failed', reason }) });
      expect(end).toEqual({ kind: 'ended', reason });
    },
  );

  test('a cursor that the upstream calls invalid is told apart', async () => {
    const { end } = await walked(page('"a"'), { answer: () => ({ kind: 'invalid-cursor' }) });
    expect(end).toEqual({ kind: 'invalid-cursor' });
  });

  test('what the fetch throws is thrown', async () => {
    const failure = new Error('broken');
    const fetchNext = () => Promise.reject(failure);
    await expect(walked(page('"a"'), { fetchNext })).rejects.toBe(failure);
  });
});

describe('a walk that a flush overtook goes no further (law 11)', () => {
  test('no page is asked for once it is superseded', async () => {
    let flushed = false;
    const { end, asked } = await walked(page('"a"'), {
      answer: (_cursor, n) => {
        flushed = n === 2;
        return asPage(page(`"${n}"`));
      },
      isSuperseded: () => flushed,
    });
    expect(end).toMatchObject({ kind: 'superseded', pages: 3 });
    expect(asked).toHaveLength(2);
  });
});
