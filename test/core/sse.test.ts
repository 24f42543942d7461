import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createEventScanner, type EventScanner } from '../../src/core/sse.js';

const BOM = '\ufeff';
const REPLY = '{"jsonrpc":"2.0","id":1,"result":{}}';

const newScanner = (maxDataBytes = 1_000_000) => createEventScanner({ maxDataBytes });

/** The data of the events that end in these chunks. */
function feed(scanner: EventScanner, ...chunks: readonly (string | Buffer)[]): string[] {
  return chunks.flatMap((chunk) => scanner.feed(Buffer.from(chunk)).map(({ data }) => data.toString('utf8')));
}

const events = (...chunks: readonly (string | Buffer)[]) => feed(newScanner(), ...chunks);

/** The algorithm of WHATWG HTML 9.2.6 on a whole stream, line by line; events without data are left out. */
function reference(stream: string): string[] {
  const found: string[] = [];
  let data = '';
  for (const line of stream
    .replace(/^\ufeff/, '')
    .split(/\r\n|\n|\r/)
    .slice(0, -1)) {
    if (line === '') {
      if (data.length > 1) found.push(data.slice(0, -1));
      data = '';
      continue;
    }
    const [field = '', value = ''] = line.includes(':')
      ? [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]
      : [line];
    if (field === 'data') data += `${value.replace(/^ /, '')}\n`;
  }
  return found;
}

describe.each([
  ['LF', '\n'],
  ['CR', '\r'],
  ['CRLF', '\r\n'],
])('lines that end with %s (C28)', (_name, eol) => {
  const stream = `${[
    `: ping`,
    `id: 1`,
    `retry: 3000`,
    `data:`,
    ``,
    `event: message`,
    `data: {"jsonrpc":"2.0",`,
    `data: "id":1,`,
    `data:"result":{"é":"世界"}}`,
    ``,
    `data: second`,
    ``,
  ].join(eol)}${eol}`;
  const expected = ['{"jsonrpc":"2.0",\n"id":1,\n"result":{"é":"世界"}}', 'second'];

  test('events of several data lines are found', () => {
    expect(events(stream)).toEqual(expected);
  });

  test('a cut at any byte makes no difference', () => {
    const bytes = Buffer.from(stream);
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      expect(events(bytes.subarray(0, cut), bytes.subarray(cut))).toEqual(expected);
    }
  });

  test('nor do writes of one byte each', () => {
    expect(events(...[...Buffer.from(stream)].map((byte) => Buffer.of(byte)))).toEqual(expected);
  });

  test('an event is known with its last line end, at once', () => {
    const scanner = newScanner();
    expect(feed(scanner, `data: x${eol}`)).toEqual([]);
    expect(feed(scanner, eol.slice(0, 1))).toEqual(['x']);
    expect(feed(scanner, eol.slice(1))).toEqual([]);
  });
});

describe('line ends and chunks (C28)', () => {
  test('line ends of all kinds may be mixed', () => {
    expect(events('data: a\r\ndata: b\rdata: c\n\r\ndata: d\r\r')).toEqual(['a\nb\nc', 'd']);
  });

  test('a CRLF cut in two is one line end', () => {
    expect(events('data: a\r', '\ndata: b\r', '\n\r', '\n')).toEqual(['a\nb']);
    expect(events('data: a\r\n\r', '\ndata: b\r\n\r\n')).toEqual(['a', 'b']);
  });

  test('a CR, a chunk and another line are two line ends', () => {
    expect(events('data: a\r', 'data: b\r', '\r')).toEqual(['a\nb']);
    expect(events('data: a\r', '', '\ndata: b\n\n')).toEqual(['a\nb']);
  });

  test('any stream in any chunks is read as the standard says', () => {
    const piece = fc.constantFrom(
      ...[
        '\n',
        '\r',
        '\r\n',
        'data',
        'data:',
        'data: ',
        ': c',
        ':',
        ' ',
        'id: 1',
        'event',
        'é',
        BOM,
        'x',
        '{}',
      ],
    );
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 30 }),
        fc.array(fc.nat(60), { maxLength: 6 }),
        (pieces, cuts) => {
          const bytes = Buffer.from(pieces.join(''));
          const ends = [...cuts.filter((cut) => cut < bytes.length), bytes.length].sort((a, b) => a - b);
          const chunks = ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end));
          expect(events(...chunks)).toEqual(reference(pieces.join('')));
        },
      ),
      { numRuns: 2_000 },
    );
  });

  test('each event is told with the place where it ended in its chunk', () => {
    const scanner = newScanner();
    const chunk = Buffer.from('data: a\r\n\r\n: c\r\ndata: b\n\ndata: c');
    const found = scanner.feed(chunk);
    expect(found.map(({ data, end }) => [data.toString(), end])).toEqual([
      ['a', chunk.indexOf(': c')],
      ['b', chunk.indexOf('data: c')],
    ]);
    expect(scanner.feed(Buffer.from('\r\r')).map(({ end }) => end)).toEqual([2]);
  });

  test('the data are those bytes, whatever becomes of later chunks', () => {
    const scanner = newScanner();
    const [event] = scanner.feed(Buffer.from('data: first\n\n'));
    scanner.feed(Buffer.from('data: later\n\n'));
    expect(event?.data.toString()).toBe('first');
  });
});

describe('lines of an event stream (C30)', () => {
  test.each<[string, string, string[]]>([
    ['no blank after the colon', `data:${REPLY}\n\n`, [REPLY]],
    ['two blanks', 'data:  x\n\n', [' x']],
    ['three lines', 'data: {"a":\ndata: 1\ndata: }\n\n', ['{"a":\n1\n}']],
    ['other fields between', 'data: a\nid: 7\ndata: b\nretry: 3000\nfoo: bar\nevent: message\n\n', ['a\nb']],
    ['comments between', 'data: a\n: ping\n:\n:data: no\ndata: b\n\n', ['a\nb']],
    ['comments alone', ': ping\n\n:\r\n\r\n', []],
    ['a priming event', 'id: 1\nretry: 3000\ndata:\n\n', []],
    ['a data line without a colon', 'data\n\n', []],
    ['an event of a type only', 'event: message\n\n', []],
    ['an event after a priming event', `id: 1\ndata: \n\ndata: ${REPLY}\n\n`, [REPLY]],
    ['an empty line of data between two', 'data: a\ndata:\ndata: b\n\n', ['a\n\nb']],
    ['a field that begins alike', 'database: x\ndata : y\nDATA: z\n data: w\n\n', []],
    ['a colon in the value', 'data: a: b\n\n', ['a: b']],
    ['many blank lines', '\n\n\ndata: a\n\n\n\ndata: b\n\n', ['a', 'b']],
    ['a byte order mark', `${BOM}data: a\n\n`, ['a']],
    ['a byte order mark before a blank line', `${BOM}\ndata: a\n\n`, ['a']],
    ['two byte order marks', `${BOM}${BOM}data: a\n\n`, []],
    ['a byte order mark on a later line', `\n${BOM}data: a\n\n`, []],
    ['a byte order mark in a later event', `data: a\n\n${BOM}data: b\n\n`, ['a']],
    ['a byte order mark in the data', `data: ${BOM}a\n\n`, [`${BOM}a`]],
  ])('%s', (_name, stream, expected) => {
    expect(events(stream)).toEqual(expected);
    expect(events(...[...Buffer.from(stream)].map((byte) => Buffer.of(byte)))).toEqual(expected);
  });
});

describe('an event that has not ended (C31)', () => {
  test('its complete lines can be looked at', () => {
    const scanner = newScanner();
    expect(scanner.pending()).toBeUndefined();
    feed(scanner, 'data: {"a":\n');
    expect(scanner.pending()?.toString()).toBe('{"a":');
    feed(scanner, 'data: 1}');
    expect(scanner.pending()?.toString()).toBe('{"a":');
    feed(scanner, '\n');
    expect(scanner.pending()?.toString()).toBe('{"a":\n1}');
    expect(feed(scanner, '\n')).toEqual(['{"a":\n1}']);
    expect(scanner.pending()).toBeUndefined();
  });

  test('it is no event, and neither is one that is cut within a line', () => {
    expect(events(`data: ${REPLY}\n`)).toEqual([]);
    expect(events(`data: ${REPLY.slice(0, 9)}`)).toEqual([]);
  });
});

describe('the bound on what is held', () => {
  const LINE = `data: ${'x'.repeat(90)}\n`;

  test('data up to it come through, whole or in chunks', () => {
    const max = LINE.length * 3;
    expect(feed(newScanner(max), LINE.repeat(3), '\n')[0]).toHaveLength(90 * 3 + 2);
    const bytes = [...Buffer.from(LINE.repeat(3))].map((byte) => Buffer.of(byte));
    expect(feed(newScanner(max), ...bytes, '\n')[0]).toHaveLength(90 * 3 + 2);
  });

  test.each([
    ['one long line', [`data: ${'x'.repeat(1_000)}\n\n`]],
    ['one long line in chunks', [`data: `, ...Array<string>(100).fill('x'.repeat(10)), '\n', '\n']],
    ['many lines', [LINE.repeat(20), '\n']],
    ['a line without end before its event', [`data: ok\n`, 'x'.repeat(1_000), '\n\n']],
  ])('%s beyond it is dropped as a whole, and the next event is found', (_name, chunks) => {
    const scanner = newScanner(500);
    expect(feed(scanner, ...chunks)).toEqual([]);
    expect(scanner.pending()).toBeUndefined();
    expect(feed(scanner, 'data: next\n\n')).toEqual(['next']);
  });

  test('an event beyond it does not show what came within it', () => {
    const scanner = newScanner(500);
    feed(scanner, 'data: small\n', `data: ${'x'.repeat(600)}`);
    expect(scanner.pending()).toBeUndefined();
    expect(feed(scanner, '\ndata: tail\n\n')).toEqual([]);
  });

  test('comments that keep a stream alive for long do not use it up', () => {
    const scanner = newScanner(500);
    expect(feed(scanner, ...Array<string>(10_000).fill(': keep-alive\n'), 'data: a\n\n')).toEqual(['a']);
  });
});
