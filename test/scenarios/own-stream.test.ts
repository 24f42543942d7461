/** A change that is told on the stream of the very answer that it concerns: design, law 11; case C24. */
import { describe, expect, test } from 'vitest';
import { rpcRequest } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { flushes } from '../support/flushes.js';
import { createGate } from '../support/gate.js';
import {
  catalogue,
  cursorOf,
  cursors,
  namesOf,
  page,
  paged,
  sendResultAsEvents,
  sixNames,
  threePages,
  tools,
} from '../support/lists.js';
import { type Scenario, useScenario } from '../support/scenario.js';
import { messagesIn, openStream } from '../support/stream.js';
import { beginEvents, type Respond, sendEvent } from '../support/upstream.js';

const start = useScenario();
const closing = useClosers();

const METHOD = 'notifications/tools/list_changed';
const CHANGED = { jsonrpc: '2.0', method: METHOD };

describe('a notification on the fetch’s own stream (law 11)', () => {
  /** Answers `tools/list` with a stream, and everything else from the catalogue. */
  const onTools =
    (respond: Respond): Respond =>
    (request, res) =>
      (request.json.method === 'tools/list' ? respond : catalogue())(request, res);
  const env = { UPSTREAM_U_WATCH: 'off' };

  test('before its result flushes what was cached, but not that result', async () => {
    const respond = onTools((request, res) => sendResultAsEvents(res, request, page(['a']), [CHANGED]));
    const { list, ask, gateway } = await start(respond, { env });
    await ask('prompts/list');
    const answer = await list();
    expect(messagesIn(answer.text)).toMatchObject([CHANGED, { id: 1, result: page(['a']) }]);
    expect(flushes(gateway, 'tap')).toBe(1);
    expect((await list()).asked, 'no loop, however often it shouts (C24)').toBe(0);
    expect((await ask('prompts/list')).asked).toBe(1);
  });

  test('of the first page does not end the walk either', async () => {
    const { list, upstream } = await start(
      paged(threePages('t'), (res, request, result) =>
        sendResultAsEvents(res, request, result, cursorOf(request) === '-' ? [CHANGED] : []),
      ),
      { env },
    );
    const messages = messagesIn((await list()).text);
    expect(messages).toMatchObject([CHANGED, { id: 1, result: { tools: tools(...sixNames('t')) } }]);
    expect(messages[1]?.result).not.toHaveProperty('nextCursor');
    expect(cursors(upstream)).toEqual(['-', 'c1', 'c2']);
    expect((await list()).asked).toBe(0);
  });

  test('after its result, in one write with it, makes it untrue', async () => {
    const { list, ask } = await start(
      onTools((request, res) => {
        const answer = { jsonrpc: '2.0', id: request.json.id, result: page(['a']) };
        beginEvents(res);
        res.end(`data: ${JSON.stringify(answer)}\n\ndata: ${JSON.stringify(CHANGED)}\n\n`);
      }),
      { env },
    );
    await ask('prompts/list');
    const first = await list();
    expect(first.asked, 'what is known to be untrue is asked for once more').toBe(2);
    expect(first.json.result).toMatchObject({ tools: tools('a'), ttlMs: 0 });
    expect((await list()).asked).toBe(1);
    expect((await ask('prompts/list')).asked).toBe(1);
  });

  test('after its result was sent on makes untrue what was stored', async () => {
    const gate = createGate();
    const { list, ask, gateway, upstream }: Scenario = await start(
      onTools(async (request, res) => {
        beginEvents(res);
        sendEvent(res, { jsonrpc: '2.0', id: request.json.id, result: page(['a']) });
        if (upstream.count('tools/list') === 1) {
          await gate.pass();
          sendEvent(res, CHANGED);
        }
        res.end();
      }),
      { env },
    );
    await ask('prompts/list');
    const init = { method: 'POST', ...rpcRequest('tools/list') };
    const client = closing(await openStream(gateway.endpoint('u'), init));
    expect((await client.next()).result).toEqual(page(['a']));
    expect((await list()).asked, 'so far it is fresh').toBe(0);
    gate.open();
    expect((await client.next()).method).toBe(METHOD);
    expect((await ask('prompts/list')).asked).toBe(1);
    expect((await list()).asked).toBe(1);
    expect(upstream.count()).toBe(4);
  });

  test('of a later page comes after the pages before it: the walk starts again', async () => {
    let shouts = 1;
    const { list, upstream } = await start(
      paged(threePages('t'), (res, request, result) => {
        const isShouting = cursorOf(request) === 'c1' && shouts-- > 0;
        sendResultAsEvents(res, request, result, isShouting ? [CHANGED] : []);
      }),
      { env },
    );
    expect(namesOf(await list())).toEqual(sixNames('t'));
    expect(cursors(upstream)).toEqual(['-', 'c1', '-', 'c1', 'c2']);
    expect((await list()).asked).toBe(0);
  });
});
