/**
 * Random sequences against the laws: whatever is asked, answered, changed and broken in whatever order, each answer
 * obeys them (design, laws 3 to 20). The gateway's own code, without sockets, on a clock that the test moves.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { program } from './program.js';
import { createRig } from './rig.js';
import { run, type Tally } from './run.js';

const RUNS = Number(process.env.MODEL_RUNS ?? 20_000);
const SEED = Number(process.env.MODEL_SEED ?? Math.trunc(Math.random() * 2 ** 31));

test(
  `no answer breaks a law in ${RUNS} sequences (seed ${SEED})`,
  async () => {
    const tally: Tally = new Map();
    const property = fc.asyncProperty(program, (one) => run(one, { start: createRig, tally }));
    await fc.assert(property, { numRuns: RUNS, seed: SEED });
    const told = [...tally].sort(([, a], [, b]) => b - a).map(([what, times]) => `${times} ${what}`);
    process.stdout.write(`model: ${RUNS} sequences, seed ${SEED}\n${told.join('\n')}\n`);
    expect(told.length).toBeGreaterThan(10);
  },
  RUNS * 100,
);
