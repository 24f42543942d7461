/** Looking into streams that pass: laws 18 and 19, cases C28, C30, C44. */
import { describe, expect, test } from 'vitest';
import { type Change, changesIn } from '../../src/core/change.js';
import { MAX_NOTIFICATION_BYTES, tap, tappedChunks } from '../../src/upstream/tap.js';
import { createGate } from '../support/gate.js';
import { cut, PACKINGS, packEvents } from '../support/packed.js';

const CHANGED = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}';

async function* stream(chunks: readonly Buffer[]): AsyncIterable<Buffer> {
  yield* chunks;
}

/** How many changes a client has been shown that reads the bytes so far as the WHATWG says. */
function shownIn(text: string): number {
  const lines = text.replace(/^\ufeff/, '').replace(/\r\n|\r|\n/g, '\n');
  return lines
    .split('\n\n')
    .slice(0, -1)
    .filter((event) => event.includes('list_changed')).length;
}

/** Lets the chunks pass; fails where a client is shown a change that has not taken effect. */
async function passing(
  chunks: readonly Buffer[],
  unpacked: readonly string[],
  codings: readonly string[] = [],
) {
  let applied = 0;
  let text = '';
  const given: Buffer[] = [];
  const onEvent = async (data: Buffer) => {
    await Promise.resolve();
    applied += changesIn(data).length;
  };
  for await (const chunk of tappedChunks(stream(chunks), { codings, onEvent })) {
    text += unpacked[given.length] ?? '';
    given.push(chunk);
    expect(applied, `before the client has ${JSON.stringify(text)}`).toBeGreaterThanOrEqual(shownIn(text));
  }
  return { applied, given };
}

const LINE_ENDS = { LF: '\n', CR: '\r', CRLF: '\r\n' };
const EVENTS = [
  ': ping',
  '',
  'id: 1',
  'retry: 3000',
  'data:',
  '',
  'event: message',
  `data: ${CHANGED}`,
  '',
  `data:${CHANGED.slice(0, 17)}`,
  `data: ${CHANGED.slice(17)}`,
  'other: x',
  '',
  'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}',
  '',
];

describe('a change takes effect before any byte that shows it goes on (law 19)', () => {
  test.each(Object.entries(LINE_ENDS))(
    'with lines that end in %s, wherever the stream is cut',
    async (_, end) => {
      const whole = Buffer.from(EVENTS.map((line) => line + end).join(''));
      for (let at = 1; at < whole.length; at += 1) {
        const chunks = [whole.subarray(0, at), whole.subarray(at)];
        const { applied, given } = await passing(chunks, chunks.map(String));
        expect(applied).toBe(2);
        expect(given).toEqual(chunks);
      }
      const bytes = cut(whole, 1);
      expect((await passing(bytes, bytes.map(String))).applied).toBe(2);
    },
  );

  test('with line ends of all kinds, and a byte order mark', async () => {
    const ends = ['\r\n', '\r', '\r\n', '\n', '\n'];
    const whole = Buffer.from(`\ufeff${EVENTS.map((line, i) => line + ends[i % ends.length]).join('')}`);
    const chunks = cut(whole, 1);
    const { applied } = await passing(
      chunks,
      chunks.map((chunk) => chunk.toString('latin1')),
    );
    expect(applied).toBe(2);
  });

  test('and the chunk waits for it', async () => {
    const gate = createGate();
    const chunks = tappedChunks(stream([Buffer.from(`data: ${CHANGED}\n\n`)]), {
      codings: [],
      onEvent: () => gate.pass(),
    });
    let isGiven = false;
    const first = chunks[Symbol.asyncIterator]()
      .next()
      .then(() => {
        isGiven = true;
      });
    await gate.arrivals(1);
    await new Promise(setImmediate);
    expect(isGiven).toBe(false);
    gate.open();
    await first;
  });

  test.each(PACKINGS)('in a stream packed with %s, whole events or single bytes', async (coding) => {
    const events = [': ping\n\n', `data: ${CHANGED}\n\n`, 'data: {}\n\n', `data: ${CHANGED}\n\n`];
    const chunks = await packEvents(coding, events);
    const whole = await passing(chunks, events, [coding]);
    expect(whole).toEqual({ applied: 2, given: chunks });
    const bytes = cut(Buffer.concat(chunks), 1);
    expect(await passing(bytes, [], [coding])).toEqual({ applied: 2, given: bytes });
  });
});

describe('the changes of a stream (law 18)', () => {
  async function changesOf(text: string): Promise<Change[]> {
    const changes: Change[] = [];
    const onEvent = async (data: Buffer) => {
      changes.push(...changesIn(data));
    };
    for await (const _ of tappedChunks(stream([Buffer.from(text)]), { codings: [], onEvent }));
    return changes;
  }

  test('are told in their order, with the resource that each names', async () => {
    const updated = { jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'x:é' } };
    const other = { jsonrpc: '2.0', method: 'notifications/foo/list_changed' };
    const text = [JSON.stringify(updated), JSON.stringify(other), CHANGED].map((data) => `data: ${data}\n\n`);
    expect(await changesOf(text.join(''))).toEqual([
      { kind: 'resource-updated', uri: 'x:é' },
      { kind: 'list-changed', method: 'notifications/tools/list_changed' },
    ]);
  });

  test('behind data too large to be one are still seen', async () => {
    const large = JSON.stringify({ result: 'list_changed '.repeat(MAX_NOTIFICATION_BYTES / 10) });
    expect(await changesOf(`data: ${large}\n\ndata: ${CHANGED}\n\n`)).toHaveLength(1);
  });

  test('in an event that never ends are none', async () => {
    expect(await changesOf(`data: ${CHANGED}\n`)).toEqual([]);
  });
});

describe('what cannot be read', () => {
  test.each([
    ['packed with what is not known here', ['zstd'], [Buffer.from('(zstd)'), Buffer.from('(bytes)')]],
    ['packed twice', ['gzip', 'br'], [Buffer.from('(packed)')]],
    ['said to be packed and not', ['gzip'], [Buffer.from(`data: ${CHANGED}\n\n`), Buffer.from('more')]],
  ])('%s goes on byte for byte', async (_, codings, chunks) => {
    expect(await passing(chunks, [], codings)).toEqual({ applied: 0, given: chunks });
  });

  test('behind the end of a packed stream goes on byte for byte', async () => {
    const chunks = [
      ...(await packEvents('gzip', [`data: ${CHANGED}\n\n`])),
      Buffer.from('\0\0 rest'),
      Buffer.from('!'),
    ];
    expect(await passing(chunks, [`data: ${CHANGED}\n\n`], ['gzip'])).toEqual({ applied: 1, given: chunks });
  });
});

describe('the end of a stream', () => {
  test('that breaks off is the end of what is given on', async () => {
    async function* broken(): AsyncIterable<Buffer> {
      yield Buffer.from('data: 1\n\n');
      throw new Error('reset');
    }
    const { chunks } = tap(broken(), { codings: [], maxDataBytes: 100 });
    expect((await chunks.next()).value?.events).toHaveLength(1);
    await expect(chunks.next()).rejects.toThrow('reset');
  });

  test('comes to the upstream when whoever reads it ends first', async () => {
    let isEnded = false;
    async function* endless(): AsyncIterable<Buffer> {
      try {
        for (;;) yield Buffer.from('data: 1\n\n');
      } finally {
        isEnded = true;
      }
    }
    for await (const _ of tappedChunks(endless(), { codings: [], onEvent: async () => {} })) break;
    expect(isEnded).toBe(true);
  });
});
