import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalText, MAX_CANONICAL_DEPTH, NotCanonicalError } from '../../src/core/canonical.js';
import { scanText } from '../../src/core/json.js';

function canonical(text: string): string {
  const bytes = Buffer.from(text);
  return canonicalText(bytes, scanText(bytes));
}

/** Prints a value in another of its spellings: keys turned round, blanks between tokens, letters escaped. */
function respell(value: unknown): string {
  if (Array.isArray(value)) return `[ ${value.map(respell).join(' ,\t')}\n]`;
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).reverse();
    return `{\r${members.map(([key, item]) => `${escapeAll(key)} : ${respell(item)}`).join(' , ')} }`;
  }
  return typeof value === 'string' ? escapeAll(value) : JSON.stringify(value);
}

function escapeAll(text: string): string {
  const units = Array.from({ length: text.length }, (_, i) => text.charCodeAt(i));
  return `"${units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')}"`;
}

describe('one canonical text for what means the same (law 3)', () => {
  test('neither key order nor white space nor escapes split a value', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
        expect(canonical(respell(value))).toBe(canonical(JSON.stringify(value)));
      }),
      { numRuns: 300 },
    );
  });

  test('the canonical text means what the value means', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
        const text = JSON.stringify(value);
        expect(JSON.parse(canonical(text))).toEqual(JSON.parse(text));
      }),
      { numRuns: 300 },
    );
  });

  test.each([
    ['key order', '{"a":1,"b":2}', '{"b":2,"a":1}'],
    ['key order in depth', '[{"x":{"a":1,"b":2}}]', '[{"x":{"b":2,"a":1}}]'],
    ['white space', '{"a":[1,{}]}', ' {\n"a" :\t[ 1 , { } ] } '],
    ['escaped letters', '{"uri":"file:///a"}', '{"\\u0075ri":"file:\\/\\/\\/\\u0061"}'],
    ['an escaped pair', '"😀"', '"\\ud83d\\ude00"'],
    ['an escaped control character', '"\\n"', '"\\u000a"'],
  ])('%s makes no difference', (_name, one, other) => {
    expect(canonical(one)).toBe(canonical(other));
  });

  test.each([
    ['integers beyond 2^53', '9007199254740993', '9007199254740992'],
    ['decimals beyond a double', '0.1', '0.10000000000000000001'],
    ['huge exponents', '1e999', '1e998'],
    ['a number and its string', '1', '"1"'],
    ['null and its string', 'null', '"null"'],
    ['lone surrogates', '"\\ud800"', '"\\ud801"'],
    ['a lone surrogate and U+FFFD', '"\\ud800"', '"\ufffd"'],
    ['surrogates in the wrong order', '"\\ude00\\ud83d"', '"\\ud83d\\ude00"'],
    ['lone surrogates as keys', '{"\\ud800":1}', '{"\\ud801":1}'],
    ['composed and decomposed letters', '"\u00e9"', '"e\u0301"'],
    ['order in an array', '[1,2]', '[2,1]'],
    ['nesting of arrays', '[[1],2]', '[[1,2]]'],
    ['an empty array and an empty object', '[]', '{}'],
    ['a quote in a string', '["a","b"]', '["a\\",\\"b"]'],
    ['absent and null', '{}', '{"a":null}'],
    ['__proto__ and nothing', '{"__proto__":{"x":1}}', '{}'],
    ['values of __proto__', '{"__proto__":{"x":1}}', '{"__proto__":{"x":2}}'],
    ['constructor and __proto__', '{"constructor":1}', '{"__proto__":1}'],
  ])('%s are kept apart', (_name, one, other) => {
    expect(canonical(one)).not.toBe(canonical(other));
  });

  test.each([
    ['at the top', '{"a":1,"a":1}'],
    ['in depth', '{"x":[{"a":1,"a":2}]}'],
    ['behind an escape', '{"uri":1,"\\u0075ri":2}'],
    ['named __proto__', '{"__proto__":1,"__proto__":2}'],
  ])('a doubled key %s is refused (C38)', (_name, text) => {
    expect(() => canonical(text)).toThrow(NotCanonicalError);
  });

  test('nesting is compared to the bound and refused beyond it', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
    expect(canonical(nested(MAX_CANONICAL_DEPTH))).toBe(nested(MAX_CANONICAL_DEPTH));
    expect(() => canonical(nested(MAX_CANONICAL_DEPTH + 2))).toThrow(NotCanonicalError);
  });

  test('no prototype is touched (C39)', () => {
    canonical('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":2}}}');
    expect('polluted' in {}).toBe(false);
  });
});
