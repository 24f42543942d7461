/**
 * A legacy session that is over is told so, even where sessions share what is cached: before it opens another, its
 * client would else learn of that from a call alone (2025-11-25 basic/transports, Session Management).
 */
import { expect, test } from 'vitest';
import { rpc } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { type Pair, startPair, toolsResult } from '../support/pair.js';
import { sendError, sendResult } from '../support/upstream.js';

const closing = useClosers();
const HIT = '; hit;';

interface Sessions extends Pair {
  /** What the upstream refuses as a session that it does not have. */
  readonly over: Set<string>;
  listIn(session: string): ReturnType<Pair['list']>;
  callIn(session: string): ReturnType<Pair['list']>;
}

async function startSessions(): Promise<Sessions> {
  const over = new Set<string>();
  const pair = closing(
    await startPair(
      (req, res) => {
        const session = String(req.headers['mcp-session-id']);
        if (over.has(session)) sendError(res, req, -32001, 404);
        else if (req.httpMethod === 'DELETE') {
          over.add(session);
          res.writeHead(204).end();
        } else if (req.json?.method === 'tools/list') sendResult(res, req, toolsResult(['a']));
        else sendResult(res, req, { content: [] });
      },
      { UPSTREAM_U_SCOPE: 'public' },
    ),
  );
  const legacy = (session: string) => ({ era: 'legacy' as const, headers: { 'mcp-session-id': session } });
  return {
    ...pair,
    over,
    listIn: (session) => rpc(pair.url, 'tools/list', legacy(session)),
    callIn: (session) => rpc(pair.url, 'tools/call', { ...legacy(session), params: { name: 'a' } }),
  };
}

test('one that its client ended is refused by the upstream, and the others still share', async () => {
  const { url, upstream, listIn } = await startSessions();
  await listIn('one');
  expect((await listIn('two')).cacheStatus).toContain(HIT);
  await fetch(url, { method: 'DELETE', headers: { 'mcp-session-id': 'one' } });
  expect((await listIn('one')).status).toBe(404);
  expect((await listIn('one')).status).toBe(404);
  expect((await listIn('two')).cacheStatus).toContain(HIT);
  expect(upstream.count('tools/list')).toBe(3);
});

test('so is one that the upstream forgot, from the first 404 on', async () => {
  const { over, listIn, callIn } = await startSessions();
  await listIn('one');
  await listIn('two');
  over.add('one');
  expect((await callIn('one')).status).toBe(404);
  expect((await listIn('one')).status).toBe(404);
  expect((await listIn('two')).cacheStatus).toContain(HIT);
});

test('one that is answered after a 404 shares again', async () => {
  const { over, listIn, callIn } = await startSessions();
  await listIn('two');
  over.add('one');
  await callIn('one');
  over.delete('one');
  await callIn('one');
  expect((await listIn('one')).cacheStatus).toContain(HIT);
});
