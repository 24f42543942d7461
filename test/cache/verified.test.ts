import { describe, expect, test } from 'vitest';
import { createVerified } from '../../src/cache/verified.js';
import { createTestClock } from '../support/clock.js';

const TTL_MS = 1_000;
const of = (credentials: string) => () => credentials;

function create(sharing: 'any' | 'verified' = 'verified') {
  const clock = createTestClock();
  return { clock, verified: createVerified(clock, { sharing, ttlMs: TTL_MS }) };
}

describe('PUBLIC_SHARING', () => {
  test('any: everybody may share, whatever was observed, and no credentials are even digested', () => {
    const { verified } = create('any');
    const unread = () => {
      throw new Error('read');
    };
    verified.observe('u', unread, 401);
    expect(verified.mayShare('u', unread)).toBe(true);
  });

  test('verified: nobody may before the upstream accepted the credentials', () => {
    const { verified } = create();
    expect(verified.mayShare('u', of('a'))).toBe(false);
  });

  test.each([200, 202, 204, 299])('%i accepts, for one upstream', (status) => {
    const { verified } = create();
    verified.observe('u', of('a'), status);
    expect(verified.mayShare('u', of('a'))).toBe(true);
    expect(verified.mayShare('u', of('b'))).toBe(false);
    expect(verified.mayShare('v', of('a'))).toBe(false);
  });

  test.each([101, 199, 300, 302, 304, 400, 404, 429, 500, 503])('%i says nothing', (status) => {
    const { verified } = create();
    verified.observe('u', of('a'), status);
    expect(verified.mayShare('u', of('a'))).toBe(false);
    verified.observe('u', of('b'), 200);
    verified.observe('u', of('b'), status);
    expect(verified.mayShare('u', of('b'))).toBe(true);
  });

  test.each([401, 403])('%i forgets at once', (status) => {
    const { verified } = create();
    for (const name of ['a', 'b']) verified.observe('u', of(name), 200);
    verified.observe('u', of('a'), status);
    expect(verified.mayShare('u', of('a'))).toBe(false);
    expect(verified.mayShare('u', of('b'))).toBe(true);
  });

  test('it holds for VERIFIED_TTL_MS from the last time', () => {
    const { clock, verified } = create();
    verified.observe('u', of('a'), 200);
    clock.advance(TTL_MS - 1);
    expect(verified.mayShare('u', of('a'))).toBe(true);
    verified.observe('u', of('a'), 200);
    clock.advance(TTL_MS - 1);
    expect(verified.mayShare('u', of('a'))).toBe(true);
    clock.advance(1);
    expect(verified.mayShare('u', of('a'))).toBe(false);
  });

  test('a bounded number is remembered, the oldest forgotten first', () => {
    const { verified } = create();
    for (let i = 0; i <= 100_000; i += 1) verified.observe('u', of(`c${i}`), 200);
    expect(verified.mayShare('u', of('c0'))).toBe(false);
    expect(verified.mayShare('u', of('c1'))).toBe(true);
    expect(verified.mayShare('u', of('c100000'))).toBe(true);
  });
});
