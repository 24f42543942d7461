/** Inputs as large as the bounds let in, and made to cost the most: their time and memory grow with their bytes alone. */

import { Readable } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { createClock } from '../../src/clock.js';
import { classify } from '../../src/core/classify.js';
import { readMessage } from '../../src/core/message.js';
import { readReply } from '../../src/core/page.js';
import { renameChallenges } from '../../src/core/resource-metadata.js';
import { createEventScanner } from '../../src/core/sse.js';
import { createPageSource } from '../../src/upstream/page-source.js';
import { countInputs } from './runs.js';

/** CACHE_MAX_ENTRY_BYTES and MAX_BODY_BYTES as they are by default. */
const MAX_ANSWER = 16_777_216;
/** A bound on streams that is reached sooner. */
const MAX_STREAM = 2_097_152;
const MAX_BODY = 4_194_304;

/** Many times what it takes, on a machine that others use as well; what grows with the square takes minutes. */
const MAX_MS = 10_000;

setFlagsFromString('--expose-gc');
const gc: () => void = runInNewContext('gc');

function expectQuick<T>(run: () => T): T {
  countInputs();
  const startedAt = performance.now();
  const result = run();
  expect(performance.now() - startedAt).toBeLessThan(MAX_MS);
  return result;
}

/** Bytes that are held, of JavaScript's own and outside it. */
function heldBytes(): number {
  gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const filled = (unit: string, bytes: number) => unit.repeat(Math.floor(bytes / unit.length));

describe('an event stream without end', { timeout: 60_000 }, () => {
  const UNITS = [
    'data\n',
    'data:\r',
    'data:x\n',
    ':\n',
    ': comment\r\n',
    'id:1\n',
    'x',
    'data: }\n',
    '\r',
    'data\r\n\r\n',
  ];

  test.each(UNITS)('of %j is held within its bound, with little beside it', (unit) => {
    const chunk = Buffer.from(filled(unit, 65_536));
    const before = heldBytes();
    const scanner = createEventScanner({ maxDataBytes: MAX_STREAM });
    expectQuick(() => {
      for (let fed = 0; fed < 1.2 * MAX_STREAM; fed += chunk.length) {
        scanner.feed(Buffer.from(chunk));
        if (fed > MAX_STREAM - chunk.length && fed <= MAX_STREAM)
          expect(heldBytes() - before).toBeLessThan(8 * MAX_STREAM);
      }
    });
    expect(heldBytes() - before).toBeLessThan(8 * MAX_STREAM);
    scanner.feed(Buffer.from('\n\n'));
    expect(scanner.feed(Buffer.from('data: next\n\n')).map(({ data }) => data.toString())).toEqual(['next']);
  });

  test.each(['data: }\n', 'data: {}\n', 'data: [{},\ndata: {}\n', ': }\n'])(
    'that could be an answer after each of its chunks is read for no longer: %j',
    async (unit) => {
      const chunk = Buffer.from(unit);
      const source = createPageSource({
        clock: createClock(),
        maxBytes: MAX_ANSWER,
        transport: {
          send: async () => ({
            status: 200,
            statusText: 'OK',
            headers: ['content-type', 'text/event-stream'],
            body: Readable.from(Array<Buffer>(30_000).fill(chunk)),
          }),
          close: async () => {},
        },
      });
      countInputs();
      const startedAt = performance.now();
      const outgoing = { method: 'POST', origin: 'http://u', path: '/', headers: [] } as const;
      const signal = new AbortController().signal;
      const read = await source(
        { outgoing, method: 'tools/list', id: 1 },
        { signal, onChange: async () => {} },
      );
      expect(read).toMatchObject({ kind: 'other', reason: 'unexpected' });
      expect(performance.now() - startedAt).toBeLessThan(MAX_MS);
    },
  );
});

const reply = (result: string) => Buffer.from(`{"jsonrpc":"2.0","id":1,"result":${result}}`);

describe('a large document', { timeout: 60_000 }, () => {
  test.each([
    ['items of one byte', reply(`{"tools":[${filled('0,', MAX_ANSWER - 100)}0]}`), 'page'],
    ['items of objects', reply(`{"tools":[${filled('{"a":[]},', MAX_ANSWER - 100)}{}]}`), 'page'],
    ['one long text', reply(`{"tools":["${filled('\\u0041', MAX_ANSWER - 100)}"]}`), 'page'],
    ['nesting without end', reply(filled('[', MAX_ANSWER - 100)), 'no-answer'],
    [
      'nesting to the bound, again and again',
      reply(`{"tools":[${filled(`${'['.repeat(5_000)}${']'.repeat(5_000)},`, MAX_ANSWER - 100)}0]}`),
      'page',
    ],
    ['white space', reply(`{"tools":[${filled(' \t\r\n', MAX_ANSWER - 100)}]}`), 'page'],
    ['digits', reply(`{"tools":[${filled('1', MAX_ANSWER - 100)}]}`), 'page'],
    ['digits for a lifetime', reply(`{"tools":[],"ttlMs":${filled('1', MAX_ANSWER - 100)}}`), 'page'],
  ] as const)('of an upstream, of %s, is read in a time that grows with its bytes', (_title, bytes, kind) => {
    const before = heldBytes();
    const found = expectQuick(() => readReply(bytes, 'tools/list', 1));
    expect(found.kind).toBe(kind);
    expect(heldBytes() - before).toBeLessThan(3 * MAX_ANSWER);
  });

  const request = (rest: string) => `{"jsonrpc":"2.0","id":1,"method":"tools/list"${rest}}`;
  test.each([
    ['members', `{${filled('"":0,', MAX_BODY - 10)}"a":0}`],
    ['members of other names', `{${Array.from({ length: 350_000 }, (_, i) => `"${i}":0`).join(',')}}`],
    ['parameters', request(`,"params":{${filled('"a":{},', MAX_BODY - 200)}"b":0}`)],
    [
      'metadata',
      request(`,"params":{"_meta":{${Array.from({ length: 300_000 }, (_, i) => `"${i}":[]`).join(',')}}}`),
    ],
    ['nesting', request(`,"params":${filled('{"a":', MAX_BODY - 200)}`)],
    ['an id of digits', `{"jsonrpc":"2.0","id":${filled('9', MAX_BODY - 100)},"method":"tools/list"}`],
    [
      'an id of escapes',
      `{"jsonrpc":"2.0","id":"${filled('\\u0000', MAX_BODY - 100)}","method":"tools/list"}`,
    ],
    ['a batch', `[${filled('{},', MAX_BODY - 10)}{}]`],
    [
      'nesting that is compared',
      request(`,"params":{"a":${'['.repeat(60)}${filled('{"x":1},', 60_000)}0${']'.repeat(60)}}`),
    ],
  ])('of a client, of %s, as well', (_title, text) => {
    const bytes = Buffer.from(text);
    const message = expectQuick(() => readMessage(bytes));
    expectQuick(() => classify(message, []));
  });

  test.each(['\\"', '"', 'resource_metadata="\\', 'resource_metadata ', ' ', ','])(
    'of fields, a challenge of %j, as well',
    (unit) => {
      const value = `Bearer resource_metadata="${filled(unit, 16_000)}`;
      expectQuick(() => renameChallenges(['www-authenticate', value], { resource: 'r', metadata: 'm' }));
    },
  );
});
