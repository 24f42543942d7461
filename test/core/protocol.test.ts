import { describe, expect, test } from 'vitest';
import { CACHEABLE_METHODS, isCacheableMethod, knownMethod, methodShape } from '../../src/core/protocol.js';

describe('methods that the gateway knows', () => {
  test('the cacheable ones are those of law 1', () => {
    expect(Object.keys(CACHEABLE_METHODS).sort()).toEqual([
      'prompts/list',
      'resources/list',
      'resources/read',
      'resources/templates/list',
      'server/discover',
      'tools/list',
    ]);
  });

  test.each(['toString', 'constructor', '__proto__', 'hasOwnProperty', '', 'tools/call'])(
    '%j is not one of them (C39)',
    (method) => {
      expect(isCacheableMethod(method)).toBe(false);
    },
  );

  test('the lists are the methods that have pages', () => {
    const lists = Object.keys(CACHEABLE_METHODS).filter(
      (method) => isCacheableMethod(method) && methodShape(method).itemsField !== undefined,
    );
    expect(lists.sort()).toEqual([
      'prompts/list',
      'resources/list',
      'resources/templates/list',
      'tools/list',
    ]);
  });

  test('a method of a client’s own invention has no name in a log', () => {
    expect(knownMethod('tools/list')).toBe('tools/list');
    expect(knownMethod('tools/call')).toBe('tools/call');
    expect(knownMethod('Bearer s3cret')).toBe('other');
    expect(knownMethod('toString')).toBe('other');
  });
});
