/**
 * Owns: the watch on an upstream of the older era: a session of the gateway's own and its GET stream
 * (2025-11-25 basic/lifecycle, basic/transports). A client's session is never used for it.
 */
import { isObject } from '../core/change.js';
import { singleValue } from '../core/headers.js';
import { ERROR_CODE, HEADER, LEGACY_VERSION } from '../core/protocol.js';
import { errorCodeOf, parseObject } from './body.js';
import type { UpstreamResponse } from './transport.js';
import type { AttemptContext, AttemptEnd } from './watch-modern.js';
import { isEventStream, messagesOf, readAnswer } from './watch-wire.js';

/** The gateway's own session, as the fields that each further request bears. */
export interface LegacySession {
  readonly headers: readonly string[];
}

/** The session that is open, from one attempt to the next: it outlives an attempt, even one that fails. */
export interface SessionSlot {
  current: LegacySession | undefined;
}

/** Opens a session unless one is kept, then the stream, and reads it to its end. Rejects where the connection fails. */
export async function watchLegacy(
  context: AttemptContext,
  id: string,
  slot: SessionSlot,
): Promise<AttemptEnd> {
  const known = slot.current;
  const opened = known === undefined ? await openSession(context, id) : { session: known };
  if (opened.session === undefined) return opened.end;
  const { session } = opened;
  slot.current = session;
  const response = await withHeadTimer(context, context.wire.get(session.headers, context.signal));
  if (response.status === 200 && isEventStream(response)) {
    await context.handlers.connected([]);
    return readStream(context, response, session);
  }
  response.body.destroy();
  // The session is gone: a fresh one may be had at once (2025-11-25, Session Management 4).
  if (known !== undefined && (response.status === 404 || response.status === 400)) {
    slot.current = undefined;
    return watchLegacy(context, id, slot);
  }
  const end = refusal(response.status);
  if (end.kind !== 'refused') return end;
  // Without a stream the session serves nothing, and the upstream need not keep it.
  slot.current = undefined;
  await closeSession(context, session);
  return end;
}

async function openSession(
  context: AttemptContext,
  id: string,
): Promise<{ readonly session: LegacySession } | { readonly session?: undefined; readonly end: AttemptEnd }> {
  const request = {
    jsonrpc: '2.0',
    id,
    method: 'initialize',
    params: { protocolVersion: LEGACY_VERSION, capabilities: {}, clientInfo: context.clientInfo },
  };
  const response = await withHeadTimer(context, context.wire.post(request, [], context.signal));
  const sessionId = singleValue(response.headers, HEADER.session);
  const answer = await readAnswer(response, id);
  const result = answer?.result;
  if (response.status !== 200 || !isObject(result) || typeof result.protocolVersion !== 'string') {
    return { end: refusal(response.status, errorCodeOf(answer)) };
  }
  const headers = [HEADER.protocolVersion, result.protocolVersion];
  if (sessionId !== undefined) headers.push(HEADER.session, sessionId);
  const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' };
  const accepted = await withHeadTimer(context, context.wire.post(initialized, headers, context.signal));
  accepted.body.destroy();
  if (accepted.status < 300) return { session: { headers } };
  // Never to be used, and the upstream need not keep it.
  await closeSession(context, { headers });
  return { end: refusal(accepted.status) };
}

/** Ends the gateway's own session; what the upstream says to it does not matter. */
export async function closeSession(
  context: Pick<AttemptContext, 'wire' | 'signal'>,
  session: LegacySession,
): Promise<void> {
  if (session.headers.includes(HEADER.session)) {
    (await context.wire.delete(session.headers, context.signal)).body.destroy();
  }
}

async function readStream(
  context: AttemptContext,
  response: UpstreamResponse,
  session: LegacySession,
): Promise<AttemptEnd> {
  for await (const data of messagesOf(response)) {
    const message = parseObject(data);
    const isRequest = message?.id !== undefined && typeof message.method === 'string';
    if (isRequest) await answerRequest(context, session, message);
    else await context.handlers.message(data);
  }
  return { kind: 'lost' };
}

/** A server may ask its clients: a ping is answered, all else is beyond the capabilities that were declared. */
async function answerRequest(
  context: AttemptContext,
  session: LegacySession,
  request: Readonly<Record<string, unknown>>,
): Promise<void> {
  const answer =
    request.method === 'ping'
      ? { jsonrpc: '2.0', id: request.id, result: {} }
      : {
          jsonrpc: '2.0',
          id: request.id,
          error: { code: ERROR_CODE.methodNotFound, message: 'Method not found' },
        };
  (await withHeadTimer(context, context.wire.post(answer, session.headers, context.signal))).body.destroy();
}

function refusal(status: number, code?: number): AttemptEnd {
  const isPassing = status >= 500 || status === 429 || status === 408;
  return isPassing ? { kind: 'lost', cause: `status ${status}` } : { kind: 'refused', status, code };
}

async function withHeadTimer<T>(context: AttemptContext, response: Promise<T>): Promise<T> {
  const stopTimer = context.headTimer();
  try {
    return await response;
  } finally {
    stopTimer();
  }
}
