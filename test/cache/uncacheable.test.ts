import { describe, expect, test } from 'vitest';
import { createUncacheable, MAX_MARKS, UNCACHEABLE_MS } from '../../src/cache/uncacheable.js';
import { createTestClock } from '../support/clock.js';

describe('keys that proved uncacheable (laws 10 and 11)', () => {
  test('a key is marked for a while, and no other is', () => {
    const clock = createTestClock();
    const uncacheable = createUncacheable(clock);
    expect(uncacheable.isMarked('a')).toBe(false);
    uncacheable.mark('a');
    expect(uncacheable.isMarked('a')).toBe(true);
    expect(uncacheable.isMarked('b')).toBe(false);
    clock.advance(UNCACHEABLE_MS - 1);
    expect(uncacheable.isMarked('a')).toBe(true);
    clock.advance(1);
    expect(uncacheable.isMarked('a')).toBe(false);
  });

  test('a look at it does not prolong the mark, and another mark does', () => {
    const clock = createTestClock();
    const uncacheable = createUncacheable(clock);
    uncacheable.mark('looked at');
    uncacheable.mark('marked again');
    clock.advance(UNCACHEABLE_MS - 1);
    expect(uncacheable.isMarked('looked at')).toBe(true);
    uncacheable.mark('marked again');
    clock.advance(1);
    expect(uncacheable.isMarked('looked at')).toBe(false);
    expect(uncacheable.isMarked('marked again')).toBe(true);
    clock.advance(UNCACHEABLE_MS - 1);
    expect(uncacheable.isMarked('marked again')).toBe(false);
  });

  test('marks are bounded, and the oldest is forgotten first', () => {
    const uncacheable = createUncacheable(createTestClock());
    for (let n = 0; n <= MAX_MARKS; n += 1) uncacheable.mark(String(n));
    expect(uncacheable.isMarked('0')).toBe(false);
    expect(uncacheable.isMarked('1')).toBe(true);
    expect(uncacheable.isMarked(String(MAX_MARKS))).toBe(true);
  });
});
