/**
 * How the fuzzers run. Every input follows from the seed, the fuzzer's name and the input's number; what fails is cut
 * down as far as it still fails, and shown so that it can be typed in again. FUZZ_RUNS multiplies the number of mutated
 * inputs, FUZZ_SEED gives other ones (`any` draws a seed); the seed and the number of inputs are printed at the end.
 */
import { randomInt } from 'node:crypto';
import { basename } from 'node:path';
import { afterAll, expect } from 'vitest';
import { mutate } from './mutate.js';
import { createRandom, type Random } from './random.js';

const { FUZZ_RUNS = '1', FUZZ_SEED = '1' } = process.env;

export const FACTOR = Number(FUZZ_RUNS);
export const SEED = FUZZ_SEED === 'any' ? randomInt(2 ** 31) : Number(FUZZ_SEED);
if (!(FACTOR > 0) || !Number.isInteger(SEED)) throw new Error('FUZZ_RUNS and FUZZ_SEED are numbers');

/** For each test; a longer run is given longer. */
export const TIMEOUT_MS = 60_000 * Math.max(1, FACTOR);

/** One input must be dealt with in this time, in milliseconds: generous, since the machine may be shared. */
export const MAX_INPUT_MS = 2_000;

let inputs = 0;

/** Counts what a test tried on its own account. */
export function countInputs(count = 1): void {
  inputs += count;
}

afterAll(() => {
  const file = basename(expect.getState().testPath ?? '', '.test.ts');
  process.stdout.write(`fuzz ${file}: ${inputs} inputs, FUZZ_SEED=${SEED} FUZZ_RUNS=${FACTOR}\n`);
});

export interface Fuzz {
  readonly name: string;
  readonly corpus: readonly Buffer[];
  /** How many mutated inputs there are, beside the corpus as it is. */
  readonly runs: number;
}

/** Tries every input of the corpus, then mutated ones; fails with the smallest input found on which `check` throws. */
export function fuzz({ name, corpus, runs }: Fuzz, check: (input: Buffer, random: Random) => void): void {
  for (let i = 0; i < corpus.length + runs * FACTOR; i += 1) {
    const input = inputAt(name, corpus, i);
    const attempt = (bytes: Buffer) => timed(() => check(bytes, createRandom(SEED, `${name} check`, i)));
    const error = failureOf(attempt, input);
    if (error === undefined) continue;
    const small = shrink(input, (bytes) => failureOf(attempt, bytes) !== undefined);
    throw failed(name, i, small, failureOf(attempt, small) ?? error);
  }
}

/** The same where a check has to wait; what fails is shown as it was. */
export async function fuzzSlowly(
  { name, corpus, runs }: Fuzz,
  check: (input: Buffer, random: Random) => Promise<void>,
): Promise<void> {
  for (let i = 0; i < corpus.length + runs * FACTOR; i += 1) {
    const input = inputAt(name, corpus, i);
    try {
      await check(input, createRandom(SEED, `${name} check`, i));
    } catch (error) {
      throw failed(name, i, input, error);
    }
  }
}

function inputAt(name: string, corpus: readonly Buffer[], i: number): Buffer {
  inputs += 1;
  return corpus[i] ?? mutate(corpus, createRandom(SEED, name, i));
}

function timed(run: () => void): void {
  const startedAt = performance.now();
  run();
  const took = performance.now() - startedAt;
  if (took > MAX_INPUT_MS) throw new Error(`took ${Math.round(took)} ms`);
}

function failureOf(attempt: (bytes: Buffer) => void, input: Buffer): unknown {
  try {
    attempt(input);
    return undefined;
  } catch (error) {
    return error ?? new Error('nothing was thrown');
  }
}

/** Takes out ever smaller pieces, as long as what is left fails too. */
function shrink(input: Buffer, fails: (bytes: Buffer) => boolean): Buffer {
  let small = input;
  let tries = 2_000;
  for (let size = small.length >> 1; size >= 1 && tries > 0; size >>= 1) {
    for (let at = 0; at < small.length && tries > 0; tries -= 1) {
      const less = Buffer.concat([small.subarray(0, at), small.subarray(at + size)]);
      if (fails(less)) small = less;
      else at += size;
    }
  }
  return small;
}

function failed(name: string, i: number, input: Buffer, cause: unknown): Error {
  const why = cause instanceof Error ? cause.message : String(cause);
  const shown = JSON.stringify(input.toString('latin1').slice(0, 2_000));
  return new Error(`${name}, FUZZ_SEED=${SEED}, input ${i}, as latin1 ${shown}: ${why}`, { cause });
}
