import { describe, expect, test } from 'vitest';
import {
  createUncacheable,
  LIMITED_MS,
  MAX_MARKS,
  type Mark,
  SUPERSEDED_MS,
  UNCACHEABLE_MS,
} from '../../src/cache/uncacheable.js';
import { NOT_STORED_REASONS, type NotStoredReason } from '../../src/core/reasons.js';
import { createTestClock } from '../support/clock.js';

function createMarks() {
  const clock = createTestClock();
  return { clock, marks: createUncacheable(clock) };
}

/** Law 10: limits and failures of a walk; law 16: whatever else was not stored. */
const LIMITS: readonly NotStoredReason[] = ['max-pages', 'max-items', 'too-large', 'deadline'];
const UNSOUND: readonly NotStoredReason[] = ['cursor-loop', 'page-stale', 'page-failed'];

function markOfList(reason: NotStoredReason): Mark {
  if (reason === 'superseded') return 'keep';
  if (LIMITS.includes(reason)) return 'paged';
  return UNSOUND.includes(reason) ? 'walk' : 'wait';
}

describe('laws 10 and 16: keys that proved uncacheable are remembered for a while', () => {
  test.each(NOT_STORED_REASONS)('%s', (reason) => {
    const { clock, marks } = createMarks();
    marks.mark('k', reason, true);
    const mark = markOfList(reason);
    expect(marks.get('k')).toBe(mark);
    expect(marks.get('other')).toBeUndefined();
    const forMs = { paged: LIMITED_MS, keep: SUPERSEDED_MS, wait: UNCACHEABLE_MS, walk: UNCACHEABLE_MS }[
      mark
    ];
    clock.advance(forMs - 1);
    expect(marks.get('k')).toBe(mark);
    clock.advance(1);
    expect(marks.get('k')).toBeUndefined();
  });

  test('for long only where flushes overtake it again and again', () => {
    const { clock, marks } = createMarks();
    const supersede = () => {
      marks.mark('k', 'superseded', true);
      let forMs = 0;
      for (; marks.get('k') !== undefined; forMs += 500) clock.advance(500);
      return forMs;
    };
    expect([supersede(), supersede(), supersede()]).toEqual([1_000, 2_000, 4_000]);
    for (let i = 0; i < 10; i += 1) supersede();
    expect(supersede()).toBe(UNCACHEABLE_MS);
    clock.advance(UNCACHEABLE_MS + 1);
    expect(supersede(), 'after a quiet while').toBe(SUPERSEDED_MS);
    marks.mark('k', 'superseded', true);
    marks.mark('k', 'superseded', true);
    clock.advance(2 * SUPERSEDED_MS);
    expect(marks.get('k'), 'two fetches of one time count once').toBeUndefined();
  });

  test.each(LIMITS)('%s of a single page leaves nothing to be kept by pages', (reason) => {
    const { marks } = createMarks();
    marks.mark('k', reason, false);
    expect(marks.get('k')).toBe('wait');
  });

  test.each(['cursor-loop', 'max-pages'] as const)(
    'a weaker mark neither weakens nor prolongs %s',
    (reason) => {
      const { clock, marks } = createMarks();
      marks.mark('k', reason, true);
      const strong = markOfList(reason);
      clock.advance((strong === 'paged' ? LIMITED_MS : UNCACHEABLE_MS) - 1);
      marks.mark('k', 'uncacheable', true);
      expect(marks.get('k')).toBe(strong);
      clock.advance(1);
      expect(marks.get('k')).toBeUndefined();
    },
  );

  test('a result that is stored after all ends it', () => {
    const { marks } = createMarks();
    marks.mark('k', 'zero-lifetime', false);
    marks.clear('k');
    expect(marks.get('k')).toBeUndefined();
  });

  test('they are bounded in number, the oldest forgotten first', () => {
    const { marks } = createMarks();
    for (let i = 0; i <= MAX_MARKS; i += 1) marks.mark(`k${i}`, 'zero-lifetime', false);
    expect(marks.get('k0')).toBeUndefined();
    expect(marks.get('k1')).toBe('wait');
    expect(marks.get(`k${MAX_MARKS}`)).toBe('wait');
  });
});
