import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  decodeString,
  hasDoubledKey,
  JsonSyntaxError,
  MAX_DEPTH,
  readArray,
  readObject,
  type Span,
  scanText,
  sliceText,
} from '../../src/core/json.js';

const space = fc.stringMatching(/^[ \n\r\t]{0,3}$/);
const numberText = fc.stringMatching(/^-?(0|[1-9]\d{0,20})(\.\d{1,20})?([eE][+-]?\d{1,3})?$/);
const hexEscape = fc.stringMatching(/^[0-9a-fA-F]{4}$/).map((hex) => `\\u${hex}`);
const shortEscape = fc.constantFrom('\\"', '\\\\', '\\/', '\\b', '\\f', '\\n', '\\r', '\\t');
const plainChar = fc.constantFrom(
  'a',
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  ' ',
  'é',
  '世',
  '😀',
  '\u2028',
  '\u007f',
);
const stringText = fc
  .array(fc.oneof(plainChar, shortEscape, hexEscape), { maxLength: 8 })
  .map((parts) => `"${parts.join('')}"`);

/** JSON texts in every spelling that RFC 8259 allows. */
const { jsonText } = fc.letrec<{ jsonText: string; container: string }>((tie) => ({
  jsonText: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom('true', 'false', 'null'),
    numberText,
    stringText,
    tie('container'),
  ),
  container: fc.oneof(
    fc.array(spaced(tie('jsonText')), { maxLength: 4 }).map((items) => `[${items.join(',')}]`),
    fc
      .array(fc.tuple(spaced(stringText), spaced(tie('jsonText'))), { maxLength: 4 })
      .map((members) => `{${members.map(([key, value]) => `${key}:${value}`).join(',')}}`),
    space.map((blank) => `[${blank}]`),
    space.map((blank) => `{${blank}}`),
  ),
}));

function spaced(text: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(space, text, space).map((parts) => parts.join(''));
}

/** A JSON text with one character put in, taken out or changed. */
const almostJson = fc
  .tuple(
    jsonText,
    fc.nat(),
    fc.constantFrom('insert', 'delete', 'replace', 'cut'),
    fc.constantFrom(...'"\\{}[],:0-+.eEtrufalsn \n\u0000\u001f\u00a0\ufeff/xé'),
  )
  .map(([text, place, how, char]) => {
    const at = place % (text.length + 1);
    if (how === 'cut') return text.slice(0, at);
    const rest = text.slice(how === 'insert' ? at : at + 1);
    return text.slice(0, at) + (how === 'delete' ? '' : char) + rest;
  });

function accepts(bytes: Uint8Array): boolean {
  try {
    scanText(bytes);
    return true;
  } catch (error) {
    if (error instanceof JsonSyntaxError) return false;
    throw error;
  }
}

function parseAccepts(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Builds the value anew from nothing but spans. */
function rebuild(bytes: Buffer, span: Span): unknown {
  if (bytes[span.start] === 0x7b) {
    const { members, end } = readObject(bytes, span.start);
    expect(end).toBe(span.end);
    return Object.fromEntries(members.map((member) => [member.key, rebuild(bytes, member)]));
  }
  if (bytes[span.start] === 0x5b) {
    const { elements, end } = readArray(bytes, span.start);
    expect(end).toBe(span.end);
    return elements.map((element) => rebuild(bytes, element));
  }
  if (bytes[span.start] === 0x22) return decodeString(bytes, span);
  return JSON.parse(sliceText(bytes, span));
}

describe('reading JSON by spans (law 12)', () => {
  test('every JSON text is accepted, and its spans reproduce the value that JSON.parse reads', () => {
    fc.assert(
      fc.property(spaced(jsonText), (text) => {
        const bytes = Buffer.from(text);
        const whole = scanText(bytes);
        expect(sliceText(bytes, whole)).toBe(bytes.toString('utf8').trim());
        expect(rebuild(bytes, whole)).toEqual(JSON.parse(bytes.toString('utf8')));
      }),
      { numRuns: 500 },
    );
  });

  test('exactly what JSON.parse accepts is accepted', () => {
    fc.assert(
      fc.property(fc.oneof(almostJson, fc.string({ unit: 'binary', maxLength: 12 })), (text) => {
        const bytes = Buffer.from(text);
        expect(accepts(bytes)).toBe(parseAccepts(bytes.toString('utf8')));
      }),
      { numRuns: 3_000 },
    );
  });

  const REFUSED = [
    '',
    ' ',
    '{',
    '}',
    '[',
    '[1',
    '[1,]',
    '[,1]',
    '[1 2]',
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{,}',
    '{a:1}',
    '{1:2}',
    '{"a":1 "b":2}',
    '[1}',
    '{"a":1]',
    '01',
    '-',
    '+1',
    '.5',
    '1.',
    '1e',
    '1e+',
    '-a',
    'NaN',
    'Infinity',
    'tru',
    'nul',
    'True',
    "'a'",
    '"',
    '"\\"',
    '"\\x"',
    '"\\u12g4"',
    '"\\u123"',
    '"\n"',
    '"\u0000"',
    '1 2',
    '{}{}',
    'null,',
    '\ufeff{}',
    '\u00a0{}',
    '// a\n1',
  ];
  test.each(REFUSED)('%j is refused', (text) => {
    expect(accepts(Buffer.from(text))).toBe(false);
    expect(parseAccepts(text)).toBe(false);
  });

  test('nesting is accepted to the bound and refused beyond it, without a crash (C53)', () => {
    const nested = (depth: number) => Buffer.from(`${'[{"a":'.repeat(depth / 2)}0${'}]'.repeat(depth / 2)}`);
    expect(accepts(nested(MAX_DEPTH))).toBe(true);
    expect(accepts(nested(MAX_DEPTH + 2))).toBe(false);
    expect(accepts(Buffer.from('['.repeat(1_000_000)))).toBe(false);
  });

  test('a span inside a larger buffer is read from that buffer', () => {
    const inside = Buffer.from('xx{"k":"v"}').subarray(2);
    expect(sliceText(inside, scanText(inside))).toBe('{"k":"v"}');
  });
});

describe('members of an object', () => {
  test('members stand in their order with decoded names, doubles included', () => {
    const bytes = Buffer.from('{ "b" : 1, "\\u0061":2 ,"b":3, "__proto__":4, "":5}');
    const { members } = readObject(bytes, 0);
    expect(members.map((m) => [m.key, sliceText(bytes, m)])).toEqual([
      ['b', '1'],
      ['a', '2'],
      ['b', '3'],
      ['__proto__', '4'],
      ['', '5'],
    ]);
    const keys = members.map((m) => sliceText(bytes, { start: m.keyStart, end: m.end }));
    expect(keys).toEqual(['"b" : 1', '"\\u0061":2', '"b":3', '"__proto__":4', '"":5']);
  });

  test.each([
    ['{}', false],
    ['{"a":1,"b":2}', false],
    ['{"a":1,"A":2}', false],
    ['{"a":{"x":1},"b":{"x":1}}', false],
    ['{"a":1,"a":1}', true],
    ['{"a":1,"\\u0061":2}', true],
    ['{"😀":1,"\\ud83d\\ude00":2}', true],
    ['{"\\ud800":1,"\\ud801":2}', false],
    ['{"__proto__":1,"__proto__":2}', true],
  ])('%s has a doubled key: %s (C38)', (text, doubled) => {
    expect(hasDoubledKey(readObject(Buffer.from(text), 0).members)).toBe(doubled);
  });

  test.each(['[]', '1', 'null', '', '{"a":1', '{"a" 1}', '{"a":1;"b":2}', '{"a":tru}'])(
    '%j is not read as an object',
    (text) => {
      expect(() => readObject(Buffer.from(text), 0)).toThrow(JsonSyntaxError);
    },
  );

  test.each(['{}', '1', 'null', '', '[1', '[1;2]', '[x]'])('%j is not read as an array', (text) => {
    expect(() => readArray(Buffer.from(text), 0)).toThrow(JsonSyntaxError);
  });
});
