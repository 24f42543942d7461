/** Values in Redis: what is damaged is none, and what is read is whole (law 26). */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createMemoryStore } from '../../src/cache/memory-store.js';
import { createPaging } from '../../src/cache/paging.js';
import { decodeEntry, encodeEntry } from '../../src/cache/redis-value.js';
import type { Entry } from '../../src/core/snapshot.js';
import { splice } from '../../src/core/splice.js';
import { entryOf } from '../support/core.js';
import type { Random } from './random.js';
import { parseJson } from './reference.js';
import { countInputs, fuzz, TIMEOUT_MS } from './runs.js';
import { expectSame } from './same.js';

const KEY = 'key\ufffd';
const BODY = Buffer.from('"tools":[{"name":"é"},{"n":1.10}],"x":"[1,2]"}');
const AT = { start: BODY.indexOf('[') + 1, end: BODY.indexOf(']') };
const ENTRIES: readonly Entry[] = [
  entryOf(0, { body: BODY, itemsAt: AT, items: 2, uris: ['x:a', '\ud800', 'é\ufffd'], scope: 'private' }),
  entryOf(0, { body: Buffer.from('}'), method: 'resources/read', pages: 3, uris: [] }),
];
const VALUES = ENTRIES.map((entry) => encodeEntry(entry, KEY, 0, 1_000));

const decode = (value: Buffer, leftMs: number) => decodeEntry(value, KEY, { leftMs, askedAt: 0 });

describe('a value in Redis', { timeout: TIMEOUT_MS }, () => {
  test.each([0, 1])(
    'with any byte changed, or cut anywhere, is refused or exactly what was stored (%i)',
    (i) => {
      const { value, keepMs } = VALUES[i] ?? { value: Buffer.alloc(0), keepMs: 0 };
      const check = (bytes: Buffer) => {
        countInputs();
        const found = decode(bytes, keepMs);
        if (found !== undefined) expectSame(found, ENTRIES[i]);
      };
      expectSame(decode(value, keepMs), ENTRIES[i]);
      for (let at = 0; at < value.length; at += 1) {
        const cut = value.subarray(0, at);
        expect(decode(cut, keepMs)).toBeUndefined();
        check(value.subarray(at + 1));
        check(Buffer.concat([cut, value.subarray(at + 1)]));
        for (const byte of [0, 0x0a, 0x20, 0x22, 0x30, 0x5d, 0x7d, 0xff]) {
          check(Buffer.concat([cut, Buffer.of(byte), value.subarray(at + 1)]));
          check(Buffer.concat([cut, Buffer.of(byte), value.subarray(at)]));
        }
        for (let bit = 0; bit < 8; bit += 1) {
          const flipped = Buffer.from(value);
          flipped[at] = (flipped[at] ?? 0) ^ (1 << bit);
          check(flipped);
        }
      }
    },
  );

  test('mutated is refused or exactly what was stored', () => {
    const corpus = [...VALUES.map(({ value }) => value), Buffer.from('{"v":1}\n}'), Buffer.from('\n')];
    fuzz({ name: 'redis', corpus, runs: 10_000 }, (bytes) => {
      const found = decode(bytes, 1_000);
      if (found === undefined) return;
      const wanted = ENTRIES.map((_, i) => decode(VALUES[i]?.value ?? Buffer.alloc(0), 1_000));
      expectSame(
        wanted.some((one) => Buffer.compare(one?.body ?? BODY, found.body) === 0),
        true,
      );
      expectSame(
        found,
        wanted.find((one) => one?.method === found.method),
      );
    });
  });
});

/** Between some brackets of the body. */
function someSpan(body: Buffer, random: Random): { start: number; end: number } {
  const text = body.toString('latin1');
  const at = (bracket: RegExp) => [...text.matchAll(bracket)].map(({ index }) => index);
  return { start: random.pick([-1, ...at(/\[/g)]) + 1, end: random.pick([0, ...at(/\]/g)]) };
}

/** A value whose sum is right, whatever its head says: the work of a hand, not of chance. */
function withSum(head: object, body: Buffer): Buffer {
  const text = JSON.stringify(head);
  const sum = createHash('sha256').update(`${text}\n`).update(body).digest('base64url');
  return Buffer.concat([Buffer.from(`${JSON.stringify({ ...head, sum })}\n`), body]);
}

describe('a value in Redis with a sum that is right', { timeout: TIMEOUT_MS }, () => {
  const { sum: _sum, ...head } = JSON.parse(VALUES[0]?.value.toString().split('\n')[0] ?? '');
  const fields = Object.keys(head);
  const ODD = [0, -1, 1.5, 1e300, 2, null, '', 'public', [], ['x'], {}, 'tools/list', { start: 1, end: 0 }];
  const OTHERS = [
    '"x":[],"tools":[1,[2],{"a":[3]}]}',
    '"tools":["[","]"],"tools":[[]]}',
    '"tools":[]}',
    '"tools":{"tools":[1]}}',
    '}',
  ];
  const bodies = [BODY, ...OTHERS.map((text) => Buffer.from(text))];

  test('is refused, or can be served and walked in pages as JSON', async () => {
    const caught: unknown[] = [];
    const walks: (() => Promise<unknown>)[] = [];
    fuzz({ name: 'redis head', corpus: bodies, runs: 10_000 }, (body, random) => {
      const changed = { ...head, itemsAt: someSpan(body, random), items: random.below(4) };
      if (random.below(2) === 0) Object.assign(changed, { [random.pick(fields)]: random.pick(ODD) });
      const found = decode(withSum(changed, body), 1_000);
      if (found === undefined) return;
      expect(Number.isFinite(found.expiresAt) && Number.isFinite(found.receivedAt)).toBe(true);
      const spliced = splice(found, { idRaw: '1', era: 'modern', remainingMs: 1 });
      const text = Buffer.concat([Buffer.from(spliced.head), ...spliced.body, Buffer.from(spliced.tail)]);
      expect(parseJson(text)).toMatchObject({ jsonrpc: '2.0', id: 1, result: {} });
      walks.push(() => firstPage(found, text));
    });
    for (const walk of walks) await walk().catch((error) => caught.push(error));
    expect(walks.length).toBeGreaterThan(100);
    expectSame(caught.map(String).slice(0, 3), []);
  });
});

const UPSTREAM = { name: 'u', url: 'http://u' };

/** The first page of it, which must be JSON as well. */
async function firstPage(entry: Entry, whole: Buffer): Promise<void> {
  const store = createMemoryStore({ maxBytes: 1e7, maxEntryBytes: 1e6 });
  const paging = createPaging({ store, pageSize: 1, staleIfErrorMs: 0, upstreams: [UPSTREAM] });
  const { stamp } = await store.look('u', [], () => true);
  const answer = { kind: 'entry', entry, remainingMs: 1, status: {}, pages: 1 } as const;
  const first = await paging.firstPage({ upstream: 'u', ownKey: 'k', mayShare: () => true }, answer, stamp);
  if (first.kind !== 'entry') throw new Error(first.kind);
  const spliced = splice(entry, { idRaw: '1', era: 'modern', remainingMs: 1, slice: first.slice });
  const text = Buffer.concat([Buffer.from(spliced.head), ...spliced.body, Buffer.from(spliced.tail)]);
  if (parseJson(text) === undefined) throw new Error(`no JSON: ${text} of ${whole}`);
}
