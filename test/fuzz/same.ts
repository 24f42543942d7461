/** Comparing values as JSON has them: own `__proto__` and `constructor` members are members like any other. */
import { isDeepStrictEqual } from 'node:util';

/** Throws where the two differ in anything, the sign of a zero included; quick enough for every input. */
export function expectSame(found: unknown, wanted: unknown): void {
  if (isDeepStrictEqual(found, wanted)) return;
  throw new Error(`${show(found)} instead of ${show(wanted)}`);
}

function show(value: unknown): string {
  return (JSON.stringify(value) ?? String(value)).slice(0, 500);
}
