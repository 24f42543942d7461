/** The scanner of JSON, and the canonical text, against JSON.parse and a slow reader (law 3, law 12). */
import { describe, expect, test } from 'vitest';
import { canonicalText, MAX_CANONICAL_DEPTH, NotCanonicalError } from '../../src/core/canonical.js';
import {
  decodeString,
  JsonSyntaxError,
  MAX_DEPTH,
  readArray,
  readObject,
  type Span,
  scanText,
  sliceText,
} from '../../src/core/json.js';
import { JSON_TEXTS, REQUEST_BODIES } from './corpus.js';
import { jsonFacts, parseJson } from './reference.js';
import { fuzz, TIMEOUT_MS } from './runs.js';
import { expectSame } from './same.js';

/** Deeper values are not built anew: the test's own recursion is no matter of the scanner's. */
const MAX_REBUILT = 500;

const CORPUS = [...JSON_TEXTS, ...REQUEST_BODIES];

/** What the scanner makes of the bytes; any other error than its own gets out. */
function scan(bytes: Buffer): Span | undefined {
  try {
    return scanText(bytes);
  } catch (error) {
    if (error instanceof JsonSyntaxError) return undefined;
    throw error;
  }
}

/** The value, from nothing but spans. */
function rebuild(bytes: Buffer, span: Span): unknown {
  const first = bytes[span.start];
  if (first === 0x7b) {
    const { members, end } = readObject(bytes, span.start);
    expect(end).toBe(span.end);
    for (const { key, keyStart } of members)
      expect(JSON.parse(/^"(?:[^"\\]|\\.)*"/.exec(bytes.toString('utf8', keyStart))?.[0] ?? '')).toBe(key);
    return Object.fromEntries(members.map((member) => [member.key, rebuild(bytes, member)]));
  }
  if (first === 0x5b) {
    const { elements, end } = readArray(bytes, span.start);
    expect(end).toBe(span.end);
    return elements.map((element) => rebuild(bytes, element));
  }
  return first === 0x22 ? decodeString(bytes, span) : JSON.parse(sliceText(bytes, span));
}

function canonical(bytes: Buffer, span: Span): string | undefined {
  try {
    return canonicalText(bytes, span);
  } catch (error) {
    if (error instanceof NotCanonicalError) return undefined;
    throw error;
  }
}

describe('the scanner', { timeout: TIMEOUT_MS }, () => {
  test('accepts what JSON.parse accepts, but for nesting beyond its bound, and finds the same values', () => {
    fuzz({ name: 'scanner', corpus: CORPUS, runs: 20_000 }, (bytes) => {
      const span = scan(bytes);
      const value = parseJson(bytes);
      if (span === undefined) {
        if (value !== undefined) expect(jsonFacts(bytes.toString()).depth).toBeGreaterThan(MAX_DEPTH);
        return;
      }
      if (value === undefined) throw new Error('JSON.parse refuses this');
      const text = bytes.toString('utf8');
      expect(sliceText(bytes, span)).toBe(text.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, ''));
      if (jsonFacts(text).depth <= MAX_REBUILT) expectSame(rebuild(bytes, span), value);
    });
  });

  test('reads a value in the middle of other bytes as it reads it alone', () => {
    fuzz({ name: 'middle', corpus: CORPUS, runs: 5_000 }, (bytes) => {
      const alone = scan(bytes);
      const inside = Buffer.concat([Buffer.from('xx"{'), bytes, Buffer.from('}]"')]);
      expectSame(scan(inside.subarray(4, 4 + bytes.length)), alone);
    });
  });
});

describe('the canonical text', { timeout: TIMEOUT_MS }, () => {
  test('is what a slow reader makes of it, and there is none for doubled keys or deep nesting', () => {
    fuzz({ name: 'canonical', corpus: CORPUS, runs: 15_000 }, (bytes) => {
      const span = scan(bytes);
      if (span === undefined) return;
      const facts = jsonFacts(bytes.toString('utf8'));
      const text = canonical(bytes, span);
      if (text === undefined) {
        expect(facts.isDoubled || facts.depth > MAX_CANONICAL_DEPTH).toBe(true);
        return;
      }
      expect(facts.isDoubled).toBe(false);
      expect(facts.depth).toBeLessThanOrEqual(MAX_CANONICAL_DEPTH + 1);
      expect(text).toBe(facts.canonical);
      expectSame(JSON.parse(text), parseJson(bytes));
      const again = Buffer.from(text);
      expect(canonical(again, scanText(again))).toBe(text);
    });
  });
});
