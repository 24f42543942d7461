/** Answers of upstreams: what is a page, what becomes of pages, what an answer from the cache says (laws 4 to 7, 12, 18). */
import { isUtf8 } from 'node:buffer';
import { describe, expect, test } from 'vitest';
import { changesIn } from '../../src/core/change.js';
import { grant } from '../../src/core/freshness.js';
import { MAX_DEPTH } from '../../src/core/json.js';
import { type Page, readReply } from '../../src/core/page.js';
import { renameResource } from '../../src/core/resource-metadata.js';
import { assemble } from '../../src/core/snapshot.js';
import { splice, toEvent } from '../../src/core/splice.js';
import { createEventScanner } from '../../src/core/sse.js';
import { DEFAULT_POLICY, pageOf } from '../support/core.js';
import { ANSWERS, JSON_TEXTS } from './corpus.js';
import { hasDoubledMember, jsonFacts, memberTexts, parseJson } from './reference.js';
import { countInputs, fuzz, TIMEOUT_MS } from './runs.js';
import { expectSame } from './same.js';

type Json = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Own members alone: `__proto__` is none that every object has. */
const own = (value: Json, name: string) => (Object.hasOwn(value, name) ? value[name] : undefined);

/** The result in an answer to `tools/list` under the id 1, where law 4 lets it be stored. */
function storable(bytes: Buffer): Json | undefined {
  const value = isUtf8(bytes) ? parseJson(bytes) : undefined;
  const text = bytes.toString('utf8');
  if (!isObject(value) || jsonFacts(text).depth > MAX_DEPTH || hasDoubledMember(text)) return undefined;
  if (own(value, 'id') !== 1 || own(value, 'jsonrpc') !== '2.0' || Object.hasOwn(value, 'error'))
    return undefined;
  const result = own(value, 'result');
  if (!isObject(result) || hasDoubledMember(memberTexts(text, 'result')[0] ?? '')) return undefined;
  if (Object.hasOwn(result, 'resultType') && result.resultType !== 'complete') return undefined;
  const cursor = own(result, 'nextCursor') ?? null;
  if (!Array.isArray(own(result, 'tools'))) return undefined;
  return cursor === null || typeof cursor === 'string' ? result : undefined;
}

function readPage(bytes: Buffer): Page | undefined {
  const reply = readReply(bytes, 'tools/list', 1);
  return reply.kind === 'page' ? reply.page : undefined;
}

const hint = (result: Json, name: string) =>
  Object.hasOwn(result, name) ? { sent: true, value: result[name] } : { sent: false };

describe('an answer', { timeout: TIMEOUT_MS }, () => {
  test('is a page exactly where law 4 lets it be stored, with the hints and the items that JSON.parse sees', () => {
    let pages = 0;
    fuzz({ name: 'reply', corpus: ANSWERS, runs: 15_000 }, (bytes) => {
      const wanted = storable(bytes);
      const page = readPage(bytes);
      expect(page !== undefined).toBe(wanted !== undefined);
      if (page === undefined || wanted === undefined) return;
      pages += 1;
      expectSame(page.hints, { ttlMs: hint(wanted, 'ttlMs'), cacheScope: hint(wanted, 'cacheScope') });
      const { tools } = wanted;
      expect(page.items?.count).toBe(Array.isArray(tools) ? tools.length : -1);
      const cursor = own(wanted, 'nextCursor') ?? undefined;
      expectSame(page.nextCursorRaw === undefined ? undefined : JSON.parse(page.nextCursorRaw), cursor);
      const { lifetimeMs, scope } = grant(page.hints, DEFAULT_POLICY);
      expect(Number.isInteger(lifetimeMs) && lifetimeMs >= 0 && lifetimeMs <= DEFAULT_POLICY.maxTtlMs).toBe(
        true,
      );
      expect(scope === 'public').toBe(
        (own(wanted, 'cacheScope') ??
          (hint(wanted, 'ttlMs').sent && !Object.hasOwn(wanted, 'cacheScope') ? 'public' : '')) === 'public',
      );
    });
    expect(pages).toBeGreaterThan(1_000);
  });

  test('is never taken for one of another id or for a method of another shape', () => {
    fuzz({ name: 'other reply', corpus: ANSWERS, runs: 5_000 }, (bytes) => {
      const value = parseJson(bytes);
      for (const id of [0, '1', '', 2]) {
        const reply = readReply(bytes, 'tools/list', id);
        if (reply.kind === 'page') expectSame(isObject(value) ? own(value, 'id') : undefined, id);
      }
      const read = readReply(bytes, 'resources/read', 1);
      if (read.kind !== 'page') return;
      const result = isObject(value) && isObject(value.result) ? value.result : {};
      const contents: unknown = own(result, 'contents');
      const uris = Array.isArray(contents) ? contents.filter(isObject).map((one) => own(one, 'uri')) : [];
      const named = uris.filter((uri): uri is string => typeof uri === 'string');
      // Where a key is doubled, more are named than JSON.parse sees.
      expect(read.page.uris).toEqual(expect.arrayContaining(named));
    });
  });
});

const FIRST =
  '{"resultType":"complete","tools":[{"name":"first","n":1.10}],"ttlMs":60000,"cacheScope":"public","x":{"y":[]},"nextCursor":"c"}';

describe('a snapshot', { timeout: TIMEOUT_MS }, () => {
  test('of whatever pages is served as one result, every item as it was, under whatever id', () => {
    fuzz({ name: 'snapshot', corpus: ANSWERS, runs: 10_000 }, (bytes, random) => {
      const last = readPage(bytes);
      const wanted = storable(bytes);
      if (last === undefined || wanted === undefined) return;
      const idRaw = random.pick(['1', '"\\u0000"', '"é\\"}"', '-9007199254740991', '""']);
      for (const pages of [[last], [pageOf('tools/list', FIRST), last]]) {
        const [one, ...more] = pages.map((page) => ({ page, receivedAt: 0 }));
        if (one === undefined) throw new Error('no page');
        const entry = assemble([one, ...more], {
          method: 'tools/list',
          policy: { ...DEFAULT_POLICY, minTtlMs: 1 },
          uri: undefined,
          authContext: 'a',
          seed: 's',
          asPage: false,
        });
        const spliced = splice(entry, { idRaw, era: 'modern', remainingMs: 17 });
        const text = Buffer.concat([Buffer.from(spliced.head), ...spliced.body, Buffer.from(spliced.tail)]);
        const [first, before] =
          more.length === 0 ? [wanted, []] : [JSON.parse(FIRST), JSON.parse(FIRST).tools];
        const { ttlMs: _t, cacheScope: _s, nextCursor: _c, ...rest } = first;
        const all = [...before, ...(Array.isArray(wanted.tools) ? wanted.tools : [])];
        const result = { ...rest, tools: all, ttlMs: 17, cacheScope: entry.scope };
        expectSame(parseJson(text), { jsonrpc: '2.0', id: JSON.parse(idRaw), result });
        const items = last.bytes.subarray(last.items?.start, last.items?.end);
        expect(text.includes(items)).toBe(true);
        const [event, ...none] = createEventScanner({ maxDataBytes: 1e6 }).feed(
          Buffer.from(toEvent(spliced)),
        );
        expectSame(none, []);
        expectSame(parseJson(event?.data ?? Buffer.alloc(0)), parseJson(text));
      }
    });
  });
});

/** The changes in a message, by JSON.parse alone. */
function changesBy(value: unknown): unknown[] {
  if (Array.isArray(value)) return value.flatMap((one) => (Array.isArray(one) ? [] : changesBy(one)));
  if (!isObject(value) || Object.hasOwn(value, 'id')) return [];
  const method = own(value, 'method');
  if (typeof method !== 'string') return [];
  if (/^notifications\/(resources|tools|prompts)\/list_changed$/.test(method))
    return [{ kind: 'list-changed', method }];
  const params = own(value, 'params');
  const uri = isObject(params) ? own(params, 'uri') : undefined;
  const isUpdate = method === 'notifications/resources/updated' && typeof uri === 'string';
  return isUpdate ? [{ kind: 'resource-updated', uri }] : [];
}

describe('other documents of upstreams', { timeout: TIMEOUT_MS }, () => {
  test('announce the changes that JSON.parse finds in them', () => {
    fuzz({ name: 'changes', corpus: ANSWERS, runs: 10_000 }, (bytes) => {
      expectSame(changesIn(bytes), changesBy(parseJson(bytes)));
    });
  });

  test('name this gateway as their resource, and are else as they were', () => {
    const names = { resource: 'https://g.example/mcp/u"\\', metadata: 'm' };
    const documents = [
      '{}',
      ' { } ',
      '{"resource":"https://u.example","a":[1.10]}',
      '{"a":1,"re\\u0073ource":{"resource":1}}',
    ];
    const corpus = [...documents.map((text) => Buffer.from(text)), ...JSON_TEXTS];
    fuzz({ name: 'metadata', corpus, runs: 7_500 }, (bytes) => {
      const value = parseJson(bytes);
      const renamed = renameResource(bytes, names);
      const isDocument = isObject(value) && jsonFacts(bytes.toString('utf8')).depth <= MAX_DEPTH;
      expect(renamed !== undefined).toBe(isDocument);
      if (renamed === undefined || !isObject(value)) return;
      const wanted = { ...value, resource: names.resource };
      expectSame(parseJson(renamed), wanted);
    });
  });

  test('cut at every byte are no page, and never the end of one', () => {
    for (const whole of ANSWERS.filter((bytes) => bytes.length < 2_000 && storable(bytes) !== undefined)) {
      for (let cut = 0; cut < whole.length; cut += 1) {
        countInputs();
        const page = readPage(whole.subarray(0, cut));
        if (page !== undefined) throw new Error(`a page after ${cut} bytes`);
      }
    }
  });
});
