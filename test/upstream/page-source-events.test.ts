/** Answers to cacheable requests that come as event streams: laws 4, 11, 19; cases C28, C30, C31, C44. */
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { useClosers } from '../support/closers.js';
import { type FetchSetup, relayed, startFetch } from '../support/fetching.js';
import { createGate, until } from '../support/gate.js';
import { page } from '../support/lists.js';
import { cut, PACKINGS, packEvents } from '../support/packed.js';
import { beginEvents, startUpstream } from '../support/upstream.js';

const closing = useClosers();

const ANSWER = JSON.stringify({ jsonrpc: '2.0', id: 1, result: page(['a', 'b']) });
const PROGRESS = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}';
const CHANGED = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}';
const event = (data: string) => `event: message\ndata: ${data}\n\n`;

type Script = (res: ServerResponse) => void | Promise<void>;

/** Fetches from an upstream that begins an event stream and goes on as the script says. */
async function fetching(script: Script, setup: FetchSetup = {}, coding?: string) {
  const upstream = closing(
    await startUpstream((_request, res) => {
      beginEvents(res, coding === undefined ? {} : { 'content-encoding': coding });
      return script(res);
    }),
  );
  return startFetch(upstream.url, setup);
}

function inPieces(pieces: readonly (string | Buffer)[], last: 'end' | 'keep' | 'reset' = 'end'): Script {
  return async (res) => {
    for (const piece of pieces) {
      res.write(piece);
      await new Promise(setImmediate);
    }
    if (last === 'end') res.end();
    if (last === 'reset') res.destroy();
  };
}

const LINES = [
  ...[': ping', '', 'id: 1', 'retry: 3000', 'data:', '', 'event: message', '', 'unknown: x', ''],
  ...[
    'id: 2',
    `data:${ANSWER.slice(0, 17)}`,
    `data: ${ANSWER.slice(17, 24)}`,
    `data:${ANSWER.slice(24)}`,
    '',
  ],
];
const SPELLINGS = {
  LF: LINES.map((line) => `${line}\n`).join(''),
  CR: LINES.map((line) => `${line}\r`).join(''),
  CRLF: LINES.map((line) => `${line}\r\n`).join(''),
  'CRLF and a byte order mark': `\ufeff${LINES.map((line) => `${line}\r\n`).join('')}`,
  'a mixture': LINES.map((line, i) => line + (i % 2 === 0 ? '\r\n' : '\n')).join(''),
};

describe('the answer is found (C28, C30)', () => {
  test.each(Object.entries(SPELLINGS))('with lines that end in %s, in single bytes', async (_title, text) => {
    const { fetched, interim } = await fetching(inPieces(cut(Buffer.from(text), 1)));
    const got = await fetched;
    expect(got).toMatchObject({ kind: 'page', received: { page: { items: { count: 2 } } } });
    expect(interim.text, 'comments and priming are no messages').toBe('');
    expect(Buffer.from(await relayed(got), 'latin1').toString(), 'nothing is lost').toBe(text);
  });

  test('at once, and not at the end of the stream, where a CR ends it', async () => {
    const { fetched } = await fetching(inPieces([`data: ${ANSWER}\r\r`], 'keep'));
    expect((await fetched).kind).toBe('page');
  });

  test('behind answers to others, and behind a request of the server’s under the same id', async () => {
    const before = [ANSWER.replace('"id":1', '"id":2'), '{"jsonrpc":"2.0","id":1,"method":"roots/list"}'];
    const { fetched, interim } = await fetching(inPieces([...before, ANSWER].map(event)));
    expect((await fetched).kind).toBe('page');
    expect(interim.text).toBe(before.map(event).join(''));
  });
});

describe('messages before the answer', () => {
  test('go on at once, with the head of the answer', async () => {
    const gate = createGate();
    const { fetched, interim } = await fetching(async (res) => {
      res.write(`: ping\n\n${event(PROGRESS)}`);
      await gate.pass();
      res.end(`: pong\n\n${event(ANSWER)}`);
    });
    await until(() => interim.text.includes('progress'));
    expect(interim).toMatchObject({ status: 200, text: `: ping\n\n${event(PROGRESS)}` });
    expect(interim.headers).toEqual(expect.arrayContaining(['x-accel-buffering', 'no']));
    gate.open();
    expect(await relayed(await fetched)).toBe(`: pong\n\n${event(ANSWER)}`);
  });

  test('are not sent where nobody could read them, as with a later page of a walk', async () => {
    const { fetched, interim } = await fetching(inPieces([event(PROGRESS), event(ANSWER)]), {
      isLaterPage: true,
    });
    expect((await fetched).kind).toBe('page');
    expect(interim).toEqual({ text: '' });
  });

  test.each(PACKINGS)('packed with %s arrive unpacked, each at once, and nothing is lost', async (coding) => {
    const events = [event(PROGRESS), event(CHANGED), event(ANSWER), ': after\n\n'];
    const chunks = await packEvents(coding, events);
    const gate = createGate();
    const { fetched, interim } = await fetching(
      async (res) => {
        res.write(chunks[0]);
        await gate.pass();
        for (const chunk of chunks.slice(1)) res.write(chunk);
        res.end();
      },
      {},
      coding,
    );
    await until(() => interim.text === event(PROGRESS));
    expect(interim.headers?.map((name) => name.toLowerCase())).not.toContain('content-encoding');
    gate.open();
    const rest = await relayed(await fetched);
    expect(interim.text + rest).toBe(events.join(''));
  });

  test.each(PACKINGS)(
    'packed with %s come with a whole answer though it is too large to keep',
    async (coding) => {
      const large = event(JSON.stringify({ jsonrpc: '2.0', id: 1, result: page(['x'.repeat(300_000)]) }));
      const chunks = await packEvents(coding, [
        event(PROGRESS),
        large.slice(0, 150_000),
        large.slice(150_000),
      ]);
      const { fetched, interim } = await fetching(inPieces(chunks), { maxBytes: 100_000 }, coding);
      const got = await fetched;
      expect(got).toMatchObject({ kind: 'other', reason: 'too-large' });
      const whole = interim.text + (await relayed(got));
      expect(whole === event(PROGRESS) + large, 'the whole answer').toBe(true);
    },
  );

  test('whose packing is broken go on as they came', async () => {
    const text = `no gzip ${event(PROGRESS)}${event(ANSWER)}`;
    const { fetched, interim } = await fetching(inPieces(cut(Buffer.from(text), 9)), {}, 'gzip');
    const got = await fetched;
    expect(got).toMatchObject({ kind: 'other', reason: 'unexpected' });
    expect(interim.text + (await relayed(got))).toBe(text);
  });

  test('whose packing breaks after some went on unpacked end in a failure', async () => {
    const gate = createGate();
    const [first] = await packEvents('gzip', [event(PROGRESS)]);
    const script: Script = async (res) => {
      res.write(first);
      await gate.pass();
      res.end(`no gzip${event(ANSWER)}`);
    };
    const { fetched, interim } = await fetching(script, {}, 'gzip');
    await until(() => interim.text === event(PROGRESS));
    gate.open();
    await expect(fetched).rejects.toThrow();
    expect(interim.text).toBe(event(PROGRESS));
  });

  test('make a change take effect before they go on, and before the answer', async () => {
    const { fetched, interim, changes } = await fetching(inPieces([event(CHANGED) + event(ANSWER)]));
    await fetched;
    expect(changes).toEqual([
      [{ kind: 'list-changed', method: 'notifications/tools/list_changed' }, 'before'],
    ]);
    expect(interim.text).toBe(event(CHANGED));
  });
});

describe('messages behind the answer', () => {
  test.each([
    ['in the same chunk', [event(ANSWER) + event(CHANGED)]],
    ['later', [event(ANSWER), event(CHANGED)]],
  ])('that come %s go on, and tell their changes as such', async (_title, pieces) => {
    const { fetched, changes } = await fetching(inPieces(pieces));
    expect(await relayed(await fetched)).toBe(event(ANSWER) + event(CHANGED));
    expect(changes.map(([, place]) => place)).toEqual(['after']);
  });
});

describe('a last event without a blank line (C31)', () => {
  test('is an answer though the stream stays open', async () => {
    const { fetched } = await fetching(inPieces([`data: ${ANSWER}\n`], 'keep'));
    const got = await fetched;
    expect(got.kind).toBe('page');
    expect(Buffer.concat(got.response.held).toString()).toBe(`data: ${ANSWER}\n`);
    got.response.discard();
  });

  test.each(['\n', '\r', '\r\n'])('is an answer where the stream ends after %j', async (end) => {
    const { fetched } = await fetching(inPieces([`data: ${ANSWER}${end}`]));
    expect((await fetched).kind).toBe('page');
  });

  test('is none where it ends in the middle, and what came goes on', async () => {
    const half = `data: ${ANSWER.slice(0, 40)}`;
    const got = await (await fetching(inPieces([half]))).fetched;
    expect(got).toMatchObject({ kind: 'other', reason: 'unexpected' });
    expect(await relayed(got)).toBe(half);
  });

  test('is a failure of the upstream where the connection breaks', async () => {
    const { fetched } = await fetching(inPieces([`data: ${ANSWER.slice(0, 40)}`], 'reset'));
    await expect(fetched).rejects.toMatchObject({ code: 'upstream-unreachable' });
  });
});

describe('a stream that brings no page', () => {
  test.each([
    ['an error', 'error-reply', event('{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}')],
    ['no answer', 'unexpected', ': ping\n\n'],
    ['nothing', 'unexpected', ''],
  ])('but %s is other (%s), as it came', async (_title, reason, text) => {
    const got = await (await fetching(inPieces([text]))).fetched;
    expect(got).toMatchObject({ kind: 'other', reason });
    expect(await relayed(got)).toBe(text);
  });

  test.each([
    ['an answer too large to keep', `data: ${'x'.repeat(200)}`],
    ['comments without end', ': ping\n\n'.repeat(40)],
  ])('but %s goes on before it ends', async (_title, text) => {
    const gate = createGate();
    const { fetched } = await fetching(
      async (res) => {
        res.write(text);
        await gate.pass();
        res.end(': end\n\n');
      },
      { maxBytes: 150 },
    );
    const got = await fetched;
    expect(got).toMatchObject({ kind: 'other', reason: 'too-large' });
    gate.open();
    expect(await relayed(got)).toBe(`${text}: end\n\n`);
  });

  test('under another status is tapped and goes on', async () => {
    const upstream = closing(
      await startUpstream((_request, res) => {
        res.writeHead(500, { 'content-type': 'text/event-stream' }).end(event(CHANGED));
      }),
    );
    const { fetched, changes } = startFetch(upstream.url);
    const got = await fetched;
    expect(got).toMatchObject({ kind: 'other', reason: 'status' });
    expect(await relayed(got)).toBe(event(CHANGED));
    expect(changes).toHaveLength(1);
  });
});
