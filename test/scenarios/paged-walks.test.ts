import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RpcAnswer } from '../support/client.js';
import { startPair } from '../support/pair.js';
import { sendJson } from '../support/upstream.js';

/** What happens between two pages of a walk. */
const EVENTS = ['nothing', 'expiry', 'replacement', 'flush', 'other-list'] as const;
type Event = (typeof EVENTS)[number];

/** The text of one item, with what a careless copy would lose: key order, digits, spaces, escapes, nesting. */
const item = fc
  .tuple(
    fc.constantFrom('9007199254740993', '1.10', '-0', '1e400', '[1, [2,3]]', '"a,]}b"', '{"b":1 ,"a":2}'),
    fc.string({ maxLength: 8 }),
  )
  .map(([value, text]) => `{ "n":${value},"name":${JSON.stringify(text)} }`);

const walkPlan = fc.record({
  pageSize: fc.integer({ min: 1, max: 5 }),
  upstreamPageSize: fc.integer({ min: 1, max: 7 }),
  scope: fc.constantFrom('public', 'private'),
  /** The list as it is at first, and after each change. */
  versions: fc.array(fc.array(item, { maxLength: 12 }), { minLength: 1, maxLength: 4 }),
  events: fc.array(fc.constantFrom(...EVENTS), { maxLength: 12 }),
});

/** The text of the items of a list, as they stood in the answer. */
function itemsText(answer: RpcAnswer): string {
  const start = answer.text.indexOf('"tools":[') + '"tools":['.length;
  return answer.text.slice(start, answer.text.lastIndexOf('],"_tail":1'));
}

describe('law 13: a walk that began on a snapshot ends on it, whole and without doubles', () => {
  test('whatever expires, is replaced or flushed between the pages, or it ends with -32602', async () => {
    await fc.assert(
      fc.asyncProperty(walkPlan, async ({ pageSize, upstreamPageSize, scope, versions, events }) => {
        let version = 0;
        const current = () => versions[version % versions.length] ?? [];
        const pair = await startPair(
          (req, res) => {
            const items = req.json.method === 'tools/list' ? current() : [];
            const start = Number(req.json.params.cursor ?? 0);
            const end = start + upstreamPageSize;
            const next = end < items.length ? `,"nextCursor":"${end}"` : '';
            const field = req.json.method === 'tools/list' ? 'tools' : 'prompts';
            sendJson(
              res,
              `{"jsonrpc":"2.0","id":${JSON.stringify(req.json.id)},"result":{"${field}":[${items
                .slice(start, end)
                .join(',')}],"_tail":1,"ttlMs":60000,"cacheScope":"${scope}"${next}}}`,
            );
          },
          { PAGE_SIZE: String(pageSize) },
        );

        const happen: Record<Event, () => Promise<unknown>> = {
          nothing: async () => {},
          expiry: async () => pair.clock.advance(60_000),
          replacement: async () => {
            pair.clock.advance(60_000);
            version += 1;
            await pair.list();
          },
          flush: async () => {
            version += 1;
            await pair.flush();
          },
          'other-list': () => pair.list({ params: { unknown: version } }),
        };

        try {
          const began = current();
          let isFlushed = false;
          let got: string[] = [];
          let answer = await pair.list();
          for (let n = 0; ; n += 1) {
            const page = began.slice(n * pageSize, (n + 1) * pageSize);
            expect(itemsText(answer)).toBe(page.join(','));
            got = got.concat(page);
            const cursor: unknown = answer.json.result.nextCursor;
            if (typeof cursor !== 'string') break;
            const event = events[n] ?? 'nothing';
            await happen[event]();
            isFlushed ||= event === 'flush';
            const asked = pair.upstream.count();
            answer = await pair.list({ params: { cursor } });
            expect(pair.upstream.count()).toBe(asked);
            if (isFlushed) {
              expect(answer.json.error.code).toBe(-32602);
              return;
            }
          }
          expect(got).toEqual(began);
        } finally {
          await pair.close();
        }
      }),
      { numRuns: 60 },
    );
  }, 60_000);
});
