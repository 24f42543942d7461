import { describe, expect, test } from 'vitest';
import type { Answer, EntryAnswer } from '../../src/cache/answer.js';
import { createMemoryStore } from '../../src/cache/memory-store.js';
import { createPaging, type PagedCaller, WALK_GRACE_MS } from '../../src/cache/paging.js';
import { type Page, readReply } from '../../src/core/page.js';
import { assemble, type Entry } from '../../src/core/snapshot.js';

const UPSTREAM = { name: 'u', url: 'http://u/mcp' };
const STALE_IF_ERROR_MS = 1_000;
/** When every entry of this file becomes stale. */
const EXPIRES_AT = 60_000;

function pageOf(items: readonly string[]): Page {
  const result = `{"x":[1],"tools":[ ${items.join(' , ')} ],"ttlMs":${EXPIRES_AT},"y":[2]}`;
  const reply = readReply(Buffer.from(`{"jsonrpc":"2.0","id":1,"result":${result}}`), 'tools/list', 1);
  if (reply.kind !== 'page') throw new Error('no page');
  return reply.page;
}

function entryOf(items: readonly string[], scope: 'public' | 'private' = 'public', seed = 'seed'): Entry {
  const policy = { defaultTtlMs: 0, minTtlMs: 0, maxTtlMs: 1e9, defaultScope: scope, scope: 'auto' } as const;
  const options = {
    method: 'tools/list',
    policy,
    uri: undefined,
    authContext: 'a',
    seed,
    asPage: false,
  } as const;
  return assemble([{ page: pageOf(items), receivedAt: 0 }], options);
}

const hit = (entry: Entry): EntryAnswer => ({
  kind: 'entry',
  entry,
  remainingMs: 1,
  status: { hit: true },
  pages: entry.pages,
});

const caller: PagedCaller = { upstream: 'u', ownKey: 'own', mayShare: () => true };

function create(options: { pageSize?: number; maxBytes?: number; maxEntryBytes?: number } = {}) {
  const { pageSize = 2, maxBytes = 1e6, maxEntryBytes = 1e6 } = options;
  const store = createMemoryStore({ maxBytes, maxEntryBytes });
  const paging = createPaging({ store, pageSize, staleIfErrorMs: STALE_IF_ERROR_MS, upstreams: [UPSTREAM] });
  return { store, paging };
}

/** The items of an answer as text; undefined where it is served whole, or is no entry. */
function sliceOf(answer: Answer): string | undefined {
  if (answer.kind !== 'entry' || answer.slice === undefined) return undefined;
  return answer.entry.body.subarray(answer.slice.start, answer.slice.end).toString('utf8');
}

function cursorOf(answer: Answer): string {
  const cursor = answer.kind === 'entry' ? answer.slice?.nextCursor : undefined;
  if (cursor === undefined) throw new Error('no cursor');
  return cursor;
}

const THREE = ['{"a":[1,2]}', '"],\\"["', '9007199254740993'];

describe('law 13: pages out of a snapshot', () => {
  test.each([
    [0, 3, false],
    [2, 2, false],
    [2, 3, true],
    [3, 3, false],
    [1, 0, false],
  ])('with PAGE_SIZE %i a list of %i is cut: %s', (pageSize, items, isCut) => {
    const { paging } = create({ pageSize });
    expect(paging.isCut(entryOf(THREE.slice(0, items)))).toBe(isCut);
  });

  test('the items keep their very text', async () => {
    const { store, paging } = create();
    const first = await paging.firstPage(caller, hit(entryOf(THREE)), await store.stamp('u'));
    expect(sliceOf(first)).toBe(`${THREE[0]} , ${THREE[1]}`);
    const last = await paging.resume(caller, cursorOf(first), 0);
    expect(sliceOf(last)).toBe(THREE[2]);
    expect(last.kind === 'entry' && last.slice?.nextCursor).toBeUndefined();
  });

  test('an answer that is no entry, or short enough, is left alone', async () => {
    const { store, paging } = create();
    const short = hit(entryOf(THREE.slice(0, 2)));
    const invalid = { kind: 'invalid-cursor', status: {}, pages: 0 } as const;
    for (const answer of [short, invalid]) {
      expect(await paging.firstPage(caller, answer, await store.stamp('u'))).toBe(answer);
    }
  });

  test('a cursor is known for the gateway’s by its tag, whatever became of the rest', async () => {
    const { store, paging } = create();
    const cursor = cursorOf(await paging.firstPage(caller, hit(entryOf(THREE)), await store.stamp('u')));
    expect(paging.isOwn(cursor)).toBe(true);
    expect(paging.isOwn(`${cursor.slice(0, 13)}garbage`)).toBe(true);
    expect(paging.isOwn('mcg.AAAAAAAA.garbage')).toBe(false);
    expect(paging.isOwn('')).toBe(false);
  });
});

describe('law 13: a walk that could not be ended is not begun', () => {
  test('a snapshot that a flush has overtaken is served whole', async () => {
    const { store, paging } = create();
    const stamp = await store.stamp('u');
    await store.flush('u', 'everywhere');
    const answer = hit(entryOf(THREE));
    expect(await paging.firstPage(caller, answer, stamp)).toBe(answer);
  });

  test('one that the store cannot hold is served whole', async () => {
    const { store, paging } = create({ maxBytes: 100 });
    const answer = hit(entryOf(THREE));
    expect(await paging.firstPage(caller, answer, await store.stamp('u'))).toBe(answer);
  });
});

describe('law 13: once the snapshot is gone its cursors are invalid', () => {
  test('it can be walked for a while after it could last be served, and not longer', async () => {
    const { store, paging } = create();
    const cursor = cursorOf(await paging.firstPage(caller, hit(entryOf(THREE)), await store.stamp('u')));
    const end = EXPIRES_AT + STALE_IF_ERROR_MS + WALK_GRACE_MS;
    const late = await paging.resume(caller, cursor, end - 1);
    expect(sliceOf(late)).toBe(THREE[2]);
    expect(late).toMatchObject({ remainingMs: 0, ageMs: end - 1 });
    expect(await paging.resume(caller, cursor, end)).toMatchObject({ kind: 'invalid-cursor' });
  });

  test('an evicted one is gone', async () => {
    const { store, paging } = create({ maxBytes: 3_000 });
    const cursor = cursorOf(await paging.firstPage(caller, hit(entryOf(THREE)), await store.stamp('u')));
    for (const seed of ['x', 'y', 'z']) {
      await store.write('u', seed, entryOf(THREE, 'public', seed), await store.stamp('u'));
    }
    expect(await paging.resume(caller, cursor, 0)).toMatchObject({ kind: 'invalid-cursor' });
  });

  test.each(['public', 'private'] as const)('a %s one serves only whom it may', async (scope) => {
    const { store, paging } = create();
    const entry = entryOf(THREE, scope);
    const cursor = cursorOf(await paging.firstPage(caller, hit(entry), await store.stamp('u')));
    const other = await paging.resume({ ...caller, ownKey: 'other' }, cursor, 0);
    expect(other).toMatchObject({ kind: 'invalid-cursor' });
    // PUBLIC_SHARING=verified: what another's request brought is not for the unverified.
    const unverified = await paging.resume({ ...caller, mayShare: () => false }, cursor, 0);
    expect(unverified.kind).toBe(scope === 'public' ? 'invalid-cursor' : 'entry');
  });
});
