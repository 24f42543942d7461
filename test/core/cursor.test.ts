import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type CursorParts,
  cursorTag,
  isGenuine,
  makeCursor,
  readCursor,
  snapshotIdOf,
  tagOf,
} from '../../src/core/cursor.js';

const parts = fc.record({
  tag: fc.record({ name: fc.string(), url: fc.string() }).map(cursorTag),
  seed: fc.string({ minLength: 1 }),
  offset: fc.integer({ min: 0, max: 999_999_999 }),
  ownKey: fc.string(),
});

function genuine(cursor: string, { seed, ownKey }: Pick<CursorParts, 'seed' | 'ownKey'>): boolean {
  const read = readCursor(cursor);
  return read !== undefined && isGenuine(read, seed, ownKey);
}

describe('law 13: the gateway’s own cursors', () => {
  test('a cursor names its upstream, its snapshot and its position, and is genuine for its owner', () => {
    fc.assert(
      fc.property(parts, (made) => {
        const cursor = makeCursor(made);
        const { tag, seed, offset } = made;
        expect(readCursor(cursor)).toMatchObject({ tag, offset, snapshotId: snapshotIdOf(seed) });
        expect(tagOf(cursor)).toBe(tag);
        expect(genuine(cursor, made)).toBe(true);
      }),
    );
  });

  test('it is worth nothing for another snapshot or another key', () => {
    fc.assert(
      fc.property(parts, parts, (made, other) => {
        fc.pre(made.seed !== other.seed && made.ownKey !== other.ownKey);
        const cursor = makeCursor(made);
        expect(genuine(cursor, { ...made, seed: other.seed })).toBe(false);
        expect(genuine(cursor, { ...made, ownKey: other.ownKey })).toBe(false);
      }),
    );
  });

  test('its code holds for no other position and no other upstream', () => {
    fc.assert(
      fc.property(parts, parts, (made, other) => {
        fc.pre(made.offset !== other.offset && made.tag !== other.tag);
        const [, , snapshotId, , code] = makeCursor(made).split('.');
        expect(genuine(`mcg.${made.tag}.${snapshotId}.${other.offset}.${code}`, made)).toBe(false);
        expect(genuine(`mcg.${other.tag}.${snapshotId}.${made.offset}.${code}`, made)).toBe(false);
      }),
    );
  });

  test('one changed character anywhere makes it unreadable or false', () => {
    fc.assert(
      fc.property(
        parts,
        fc.nat(),
        fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }),
        (made, n, c) => {
          const cursor = makeCursor(made);
          const i = n % cursor.length;
          fc.pre(cursor[i] !== c);
          const altered = cursor.slice(0, i) + c + cursor.slice(i + 1);
          // Another snapshot’s name leads to no snapshot: the code is not even looked at.
          const leadsElsewhere = readCursor(altered)?.snapshotId !== snapshotIdOf(made.seed);
          expect(leadsElsewhere || !genuine(altered, made)).toBe(true);
        },
      ),
      { numRuns: 500 },
    );
  });

  test('it is made of characters that JSON does not escape', () => {
    fc.assert(
      fc.property(parts, (made) => {
        const cursor = makeCursor(made);
        expect(JSON.stringify(cursor)).toBe(`"${cursor}"`);
      }),
    );
  });

  test('it tells neither the seed nor the key', () => {
    const seed = 'a-secret-of-the-snapshot';
    const ownKey = 'the-key-of-the-caller';
    const cursor = makeCursor({ tag: cursorTag({ name: 'u', url: 'http://u' }), seed, offset: 0, ownKey });
    expect(cursor).not.toContain(seed);
    expect(cursor).not.toContain(ownKey);
  });
});

describe('what is no cursor of the gateway’s', () => {
  test('any other text has no tag', () => {
    fc.assert(
      fc.property(fc.string(), fc.constantFrom('', 'mcg.', 'mcg.AAAA'), (text, start) => {
        fc.pre(!/^[\w-]{4,8}\./.test(text));
        expect(tagOf(start + text)).toBeUndefined();
      }),
    );
  });

  test.each([
    '',
    'mcg',
    'mcg.',
    'mcg.short.x',
    'xmcg.AAAAAAAA.',
    'MCG.AAAAAAAA.',
    ' mcg.AAAAAAAA.',
    'mcg.AAAA=AAA.',
  ])('%j has no tag', (text) => {
    expect(tagOf(text)).toBeUndefined();
  });

  const id = 'i'.repeat(22);
  test.each([
    `mcg.AAAAAAAA.${id}.007.${id}`,
    `mcg.AAAAAAAA.${id}.-1.${id}`,
    `mcg.AAAAAAAA.${id}.1e3.${id}`,
    `mcg.AAAAAAAA.${id}.1000000000.${id}`,
    `mcg.AAAAAAAA.${id}..${id}`,
    `mcg.AAAAAAAA.${id}.1.${id}x`,
    `mcg.AAAAAAAA.${id}.1.${id}\n`,
    `mcg.AAAAAAAA.${id}.1`,
  ])('%j has a tag and cannot be read', (text) => {
    expect(tagOf(text)).toBe('AAAAAAAA');
    expect(readCursor(text)).toBeUndefined();
  });

  test('upstreams have tags of their own, by name and by URL', () => {
    const tags = [
      { name: 'a', url: 'http://u/mcp' },
      { name: 'b', url: 'http://u/mcp' },
      { name: 'a', url: 'http://u/mcp?x=1' },
      { name: 'ah', url: 'ttp://u/mcp' },
    ].map(cursorTag);
    expect(new Set(tags).size).toBe(tags.length);
    for (const tag of tags) expect(tag).toMatch(/^[\w-]{8}$/);
  });
});
