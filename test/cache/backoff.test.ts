import { describe, expect, test } from 'vitest';
import { type Backoff, createBackoff, FIRST_BACKOFF_MS, MAX_BACKOFF_MS } from '../../src/cache/backoff.js';
import { MAX_RETRY_AFTER_MS, retryAfterMs } from '../../src/cache/retry-after.js';
import { createTestClock, type TestClock } from '../support/clock.js';

/** How long the key still waits, in whole milliseconds; the clock stands there afterwards. */
function waitOf(clock: TestClock, backoff: Backoff, key = 'k'): number {
  let ms = 0;
  for (; backoff.isWaiting(key); ms += 1) clock.advance(1);
  return ms;
}

function create(random: number) {
  const clock = createTestClock();
  return { clock, backoff: createBackoff(clock, () => random) };
}

describe('law 17: 1 s doubling to 30 s, jittered', () => {
  test.each([
    ['the longest jitter', 0.999_999, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]],
    ['the shortest', 0, [750, 1_500, 3_000, 6_000, 12_000, 22_500, 22_500]],
  ])('with %s', (_what, random, expected) => {
    const { clock, backoff } = create(random);
    const waits = expected.map(() => {
      backoff.failed('k');
      return waitOf(clock, backoff);
    });
    expect(waits).toEqual(expected);
    expect([FIRST_BACKOFF_MS, MAX_BACKOFF_MS]).toEqual([1_000, 30_000]);
  });

  test('a success begins it anew', () => {
    const { clock, backoff } = create(0);
    backoff.failed('k');
    waitOf(clock, backoff);
    backoff.failed('k');
    backoff.succeeded('k');
    expect(backoff.isWaiting('k')).toBe(false);
    backoff.failed('k');
    expect(waitOf(clock, backoff)).toBe(750);
  });

  test('failures while it lasts are no further ones, and do not prolong it', () => {
    const { clock, backoff } = create(0);
    for (let i = 0; i < 7; i += 1) {
      backoff.failed('k');
      clock.advance(100);
    }
    expect(waitOf(clock, backoff)).toBe(50);
    backoff.failed('k');
    expect(waitOf(clock, backoff)).toBe(1_500);
  });

  test('keys know nothing of each other', () => {
    const { backoff } = create(0);
    backoff.failed('a');
    expect(backoff.isWaiting('b')).toBe(false);
  });

  test('a bounded number of keys is remembered, the oldest forgotten first', () => {
    const { backoff } = create(0);
    for (let i = 0; i <= 10_000; i += 1) backoff.failed(`k${i}`);
    expect(backoff.isWaiting('k0')).toBe(false);
    expect(backoff.isWaiting('k1')).toBe(true);
    expect(backoff.isWaiting('k10000')).toBe(true);
  });
});

describe('law 17: Retry-After', () => {
  test('a longer wait than the backoff is kept, a shorter one is not', () => {
    const { clock, backoff } = create(0);
    backoff.failed('long', 5_000);
    backoff.failed('short', 10);
    expect(waitOf(clock, backoff, 'short')).toBe(750);
    expect(waitOf(clock, backoff, 'long')).toBe(4_250);
  });

  test('one that comes during the backoff prolongs it', () => {
    const { clock, backoff } = create(0);
    backoff.failed('k');
    backoff.failed('k', 5_000);
    expect(waitOf(clock, backoff)).toBe(5_000);
  });

  const date = 'Sun, 06 Nov 1994 08:49:37 GMT';
  const later = 'Sun, 06 Nov 1994 08:50:07 GMT';
  test.each<[string, string[], number]>([
    ['seconds', ['Retry-After', '120'], 120_000],
    ['seconds with spaces', ['retry-after', ' 7 '], 7_000],
    ['0', ['Retry-After', '0'], 0],
    ['a date', ['Retry-After', later, 'Date', date], 30_000],
    ['a date in the past', ['Retry-After', date, 'Date', later], 0],
    ['a date without a Date to measure it by', ['Retry-After', later], 0],
    ['more than is believed', ['Retry-After', '999999999'], MAX_RETRY_AFTER_MS],
    ['a far date', ['Retry-After', 'Fri, 06 Nov 2099 08:49:37 GMT', 'Date', date], MAX_RETRY_AFTER_MS],
    ['two of them', ['Retry-After', '5', 'Retry-After', '6'], 0],
    ['nonsense', ['Retry-After', 'soon', 'Date', date], 0],
    ['none', ['Date', date], 0],
  ])('%s is %#', (_what, headers, ms) => {
    expect(retryAfterMs(headers)).toBe(ms);
  });
});
