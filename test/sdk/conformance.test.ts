/**
 * The official conformance suite against a server of the official SDK, directly and through the gateway: a server is
 * as conformant behind the gateway as before it, answers from the cache included (design, laws 2, 12, 14, 19, 23).
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { useClosers } from '../support/closers.js';
import { type ConformanceServer, startConformanceServer } from '../support/conformance-server.js';
import { requiredScenarios, runSuite, type Verdicts } from '../support/conformance-suite.js';
import { watching } from '../support/flushes.js';
import { type RunningGateway, startGateway } from '../support/gateway.js';

const TIME_LIMIT_MS = 120_000;

interface Way {
  readonly way: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Checks that only apply where nothing is cached, with the reason. */
  readonly exceptions?: Readonly<Record<string, string>>;
}

const REVISIONS: readonly { revision: string; scenarios: number; ways: readonly Way[] }[] = [
  { revision: '2026-07-28', scenarios: 40, ways: [{ way: 'by its hints' }] },
  {
    revision: '2025-11-25',
    scenarios: 33,
    ways: [
      { way: 'for each session', env: { UPSTREAM_U_TTL_MS: '60000' } },
      {
        way: 'for all sessions',
        env: { UPSTREAM_U_TTL_MS: '60000', UPSTREAM_U_SCOPE: 'public' },
        exceptions: {
          'server-sse-streams-functional':
            'it reads the event streams that lists came in; a hit is JSON, and then it says that this is optional',
        },
      },
    ],
  },
];

const closing = useClosers();

describe.each(REVISIONS)('the conformance suite for $revision', ({ revision, scenarios, ways }) => {
  let server: ConformanceServer;
  let direct: Verdicts;
  beforeAll(async () => {
    server = await startConformanceServer();
    direct = await runSuite(server.url, revision);
  }, TIME_LIMIT_MS);
  afterAll(() => server.close());

  test('runs every scenario that the revision demands, and the server passes them all', () => {
    expect(Object.keys(direct).length).toBeGreaterThanOrEqual(scenarios);
    expect(Object.keys(direct)).toEqual(expect.arrayContaining([...requiredScenarios(revision)]));
    for (const [scenario, verdicts] of Object.entries(direct)) {
      expect(verdicts, scenario).not.toEqual([]);
      expect(verdicts.filter((verdict) => !verdict.endsWith(' SUCCESS'))).toEqual([]);
    }
  });

  test.each(ways)(
    'has the same result through a gateway that caches $way',
    async ({ env = {}, exceptions = {} }) => {
      const gateway = closing(await startGateway({ upstreams: { u: server.url }, env }));
      await watching(gateway);
      const expected = without(direct, Object.keys(exceptions));
      // The second time it begins with what the first has left in the cache.
      expect(await runSuite(gateway.endpoint('u'), revision)).toEqual(expected);
      expect(await runSuite(gateway.endpoint('u'), revision)).toEqual(expected);
      expect(await callsSaved(gateway)).toBeGreaterThan(0);
    },
    TIME_LIMIT_MS,
  );
});

/** The verdicts but for these checks: each has to be missing from what they are compared with. */
function without(verdicts: Verdicts, checks: readonly string[]): Verdicts {
  return Object.fromEntries(
    Object.entries(verdicts).map(([scenario, all]) => [
      scenario,
      all.filter((verdict) => !checks.some((check) => verdict.startsWith(`${check} `))),
    ]),
  );
}

async function callsSaved({ adminUrl }: RunningGateway): Promise<number> {
  const cache = await (await fetch(`${adminUrl}/cache`)).text();
  return JSON.parse(cache).upstreams[0].upstreamCallsSaved;
}
