import { describe, expect, test } from 'vitest';
import { decodeEntry, encodeEntry } from '../../src/cache/redis-value.js';
import { createTestClock } from '../support/clock.js';
import { entryOf } from '../support/redis-stores.js';

const clock = createTestClock();
const KEEP_MS = 5_000;
const entry = entryOf(clock, { lifetimeMs: 3_000, uris: ['x:a'], scope: 'private' });
const { value, keepMs } = encodeEntry(entry, 'key', clock.now(), KEEP_MS);
const line = value.subarray(0, value.indexOf(0x0a)).toString();
const head: Record<string, unknown> = JSON.parse(line);

function decode(bytes: Buffer, { key = 'key', leftMs = keepMs } = {}) {
  return decodeEntry(bytes, key, { leftMs, askedAt: clock.now() });
}

function withHead(fields: Record<string, unknown>): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify({ ...head, ...fields })}\n`), entry.body]);
}

describe('a value in Redis (law 26, C64)', () => {
  test('carries its version, and no instant of any clock', () => {
    expect(head.v).toBe(1);
    expect(head).toMatchObject({ lifetimeMs: 3_000, ageMs: 0, keepMs: 8_000 });
    expect(line).not.toMatch(/expiresAt|receivedAt/);
  });

  test('comes back as it went, at the time of whoever reads it', () => {
    expect(decode(value)).toEqual(entry);
  });

  test('has lived for as long as Redis says that it was there, on whichever clock', () => {
    const later = createTestClock();
    later.advance(123_456);
    const found = decodeEntry(value, 'key', { leftMs: keepMs - 2_000, askedAt: later.now() });
    expect(found).toMatchObject({ expiresAt: later.now() + 1_000, receivedAt: later.now() - 2_000 });
    const stale = decodeEntry(value, 'key', { leftMs: 1_000, askedAt: later.now() });
    expect(stale?.expiresAt).toBe(later.now() - 4_000);
  });

  test('keeps its age when it was old already', () => {
    const old = encodeEntry(
      { ...entry, receivedAt: clock.now() - 700, expiresAt: clock.now() + 300 },
      'key',
      clock.now(),
      KEEP_MS,
    );
    const found = decode(old.value, { leftMs: old.keepMs });
    expect(found).toMatchObject({ receivedAt: clock.now() - 700, expiresAt: clock.now() + 300 });
  });

  test.each([
    ['nothing', Buffer.alloc(0)],
    ['an opening brace', Buffer.from('{')],
    ['null', Buffer.from('null\n')],
    ['an array', Buffer.from('[]\n')],
    ['a JSON string', Buffer.from('"text"\n')],
    ['bytes of no meaning', Buffer.from([0, 255, 10, 254, 1, 10])],
    ['a value without its body', Buffer.from(line)],
    ['a value cut short', value.subarray(0, value.length - 1)],
    ['a value with more behind it', Buffer.concat([value, Buffer.from('}')])],
    ['a changed byte in the body', Buffer.from(value.toString().replace('"a"', '"b"'))],
    ['another version', withHead({ v: 2 })],
    ['no version', withHead({ v: undefined })],
    ['another scope', withHead({ scope: 'public' })],
    ['another context', withHead({ authContext: 'context-b' })],
    ['a longer lifetime', withHead({ lifetimeMs: 9_000 })],
    ['a lifetime in the past', withHead({ lifetimeMs: -1 })],
    ['no sum', withHead({ sum: undefined })],
  ])('is none where there is %s', (_what, bytes) => {
    expect(decode(bytes)).toBeUndefined();
  });

  test.each([
    ['in a member of an item', '[1]'],
    ['in a text', '[2]'],
    ['from one array to the end of another', '[{"x":[1]}],"y":"[2]","z":[3]'],
    ['around an object', '{"w":[4]}'],
  ])('is none where its items would lie %s', (_what, span) => {
    const body = Buffer.from('"tools":[{"x":[1]}],"y":"[2]","z":[3],"v":{"w":[4]}}');
    const start = body.indexOf(span) + 1;
    const strange = { ...entry, body, itemsAt: { start, end: start + span.length - 2 } };
    expect(decode(encodeEntry(strange, 'key', clock.now(), KEEP_MS).value)).toBeUndefined();
    const right = { ...entry, body, itemsAt: { start: 9, end: 18 } };
    expect(decode(encodeEntry(right, 'key', clock.now(), KEEP_MS).value)).toEqual(right);
  });

  test('is none under another key, without an end, or with more time left than it was given', () => {
    expect(decode(value, { key: 'other' })).toBeUndefined();
    expect(decode(value, { leftMs: -1 })).toBeUndefined();
    expect(decode(value, { leftMs: keepMs + 1 })).toBeUndefined();
  });
});
