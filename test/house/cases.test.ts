/** The table of cases in test/README.md says which tests name them: held against the tests, in both directions. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const TEST = fileURLToPath(new URL('..', import.meta.url));

const rows = [...readFileSync(`${TEST}README.md`, 'utf8').matchAll(/^\| (C\d\d) +\|.*\| (.*?) *\|$/gm)].map(
  ([, id = '', files = '']) => ({ id, files: [...files.matchAll(/`([^`]+)`/g)].map(([, file]) => file) }),
);

const tests = readdirSync(TEST, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.test.ts') && !path.startsWith('house'))
  .map((path) => ({ path, text: readFileSync(`${TEST}${path}`, 'utf8') }));

test('the table has every case once', () => {
  expect(rows.length).toBeGreaterThan(40);
  expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
});

test.each(rows)('$id is named by the tests that stand beside it, and by no other', ({ id, files }) => {
  const naming = tests.filter(({ text }) => new RegExp(`\\b${id}\\b`).test(text)).map(({ path }) => path);
  expect(files.sort()).toEqual(naming.sort());
});

test('no test names a case that the table does not have', () => {
  const known = new Set(rows.map(({ id }) => id));
  const named = tests.flatMap(({ text }) => text.match(/\bC\d\d\b/g) ?? []);
  expect(named.filter((id) => !known.has(id))).toEqual([]);
});
