import { describe, expect, test } from 'vitest';
import {
  createUncacheable,
  MAX_MARKS,
  UNCACHEABLE_MS,
  type Uncacheable,
} from '../../src/cache/uncacheable.js';
import { createTestClock } from '../support/clock.js';

const isMarked = (uncacheable: Uncacheable, key: string) => uncacheable.get(key) !== undefined;

describe('keys that proved uncacheable (laws 10 and 11)', () => {
  test('a key is marked for a while, and no other is', () => {
    const clock = createTestClock();
    const uncacheable = createUncacheable(clock);
    expect(isMarked(uncacheable, 'a')).toBe(false);
    uncacheable.mark('a', 'zero-lifetime', false);
    expect(isMarked(uncacheable, 'a')).toBe(true);
    expect(isMarked(uncacheable, 'b')).toBe(false);
    clock.advance(UNCACHEABLE_MS - 1);
    expect(isMarked(uncacheable, 'a')).toBe(true);
    clock.advance(1);
    expect(isMarked(uncacheable, 'a')).toBe(false);
  });

  test('a look at it does not prolong the mark, and another mark does', () => {
    const clock = createTestClock();
    const uncacheable = createUncacheable(clock);
    uncacheable.mark('looked at', 'cursor-loop', true);
    uncacheable.mark('marked again', 'cursor-loop', true);
    clock.advance(UNCACHEABLE_MS - 1);
    expect(isMarked(uncacheable, 'looked at')).toBe(true);
    uncacheable.mark('marked again', 'cursor-loop', true);
    clock.advance(1);
    expect(isMarked(uncacheable, 'looked at')).toBe(false);
    expect(isMarked(uncacheable, 'marked again')).toBe(true);
    clock.advance(UNCACHEABLE_MS - 1);
    expect(isMarked(uncacheable, 'marked again')).toBe(false);
  });

  test('marks are bounded, and the oldest is forgotten first', () => {
    const uncacheable = createUncacheable(createTestClock());
    for (let n = 0; n <= MAX_MARKS; n += 1) uncacheable.mark(String(n), 'zero-lifetime', false);
    expect(isMarked(uncacheable, '0')).toBe(false);
    expect(isMarked(uncacheable, '1')).toBe(true);
    expect(isMarked(uncacheable, String(MAX_MARKS))).toBe(true);
  });
});
