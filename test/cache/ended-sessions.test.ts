import { expect, test } from 'vitest';
import { createEndedSessions } from '../../src/cache/ended-sessions.js';

const of = (context: string) => () => context;

test('a session is over once an answer has said so, at one upstream and in one context', () => {
  const sessions = createEndedSessions();
  sessions.observe('u', of('a'), 'ended');
  expect(sessions.has('u', 'a')).toBe(true);
  expect(sessions.has('u', 'b')).toBe(false);
  expect(sessions.has('v', 'a')).toBe(false);
});

test('one that is answered after all is not over: a 404 can have been for something else', () => {
  const sessions = createEndedSessions();
  for (const context of ['a', 'b']) sessions.observe('u', of(context), 'ended');
  sessions.observe('u', of('a'), 'alive');
  expect(sessions.has('u', 'a')).toBe(false);
  expect(sessions.has('u', 'b')).toBe(true);
});

test('while none is over, no context is even digested', () => {
  const unread = () => {
    throw new Error('read');
  };
  createEndedSessions().observe('u', unread, 'alive');
});

test('a bounded number is remembered, the oldest forgotten first', () => {
  const sessions = createEndedSessions();
  for (let i = 0; i <= 10_000; i += 1) sessions.observe('u', of(`s${i}`), 'ended');
  expect(sessions.has('u', 's0')).toBe(false);
  expect(sessions.has('u', 's1')).toBe(true);
  expect(sessions.has('u', 's10000')).toBe(true);
});
