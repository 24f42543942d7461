import { describe, expect, test } from 'vitest';
import { useClosers } from '../support/closers.js';
import { namesIn, type Pair, startPair, toolsResult } from '../support/pair.js';
import { sendResult, startUpstream } from '../support/upstream.js';

const closing = useClosers();

const CALLERS = 8;
const ROUNDS = 40;

interface Round {
  readonly versions: Set<string>;
  readonly statuses: Set<number>;
  /** The 99th percentile of the time of an answer, in milliseconds. */
  readonly p99: number;
}

/** Callers that ask again and again, side by side; `beforeEach` runs before each round of all. */
async function load({ list }: Pair, beforeEach: () => void = () => {}): Promise<Round> {
  const versions = new Set<string>();
  const statuses = new Set<number>();
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    beforeEach();
    await Promise.all(
      Array.from({ length: CALLERS }, async (_, id) => {
        const startedAt = performance.now();
        const answer = await list({ id });
        times.push(performance.now() - startedAt);
        statuses.add(answer.status);
        expect(answer.json.id).toBe(id);
        for (const name of namesIn(answer)) versions.add(name);
      }),
    );
  }
  times.sort((a, b) => a - b);
  return { versions, statuses, p99: times[Math.floor(times.length * 0.99)] ?? Number.NaN };
}

describe('law 17: an upstream that is killed under load', () => {
  test('every caller with a servable entry is answered, and the first success replaces the entry', async () => {
    const pair = closing(
      await startPair((req, res) => sendResult(res, req, toolsResult(['old'])), {
        STALE_IF_ERROR_MS: '3600000',
      }),
    );
    await pair.list();
    await load(pair);
    const hits = await load(pair);

    const { port } = new URL(pair.upstream.origin);
    pair.clock.advance(60_000);
    const dying = load(pair);
    await pair.upstream.close();
    const death = await dying;
    // Time passes with each round, so that the upstream is asked again, in vain, as often as the backoff has it.
    const outage = await load(pair, () => pair.clock.advance(5_000));
    for (const round of [death, outage]) {
      expect(round.statuses).toEqual(new Set([200]));
      expect(round.versions).toEqual(new Set(['old']));
    }

    pair.upstream = await startUpstream((req, res) => sendResult(res, req, toolsResult(['new'])), {
      port: Number(port),
    });
    pair.clock.advance(30_000);
    const after = await load(pair);
    expect(after.statuses).toEqual(new Set([200]));
    expect(after.versions).toEqual(new Set(['new']));
    expect(pair.upstream.count()).toBe(1);

    const ratio = (outage.p99 / hits.p99).toFixed(2);
    process.stdout.write(
      `p99 of a hit ${hits.p99.toFixed(1)} ms, during the outage ${outage.p99.toFixed(1)} ms: ${ratio} times\n`,
    );
  }, 60_000);
});
