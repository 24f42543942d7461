/**
 * Owns: what the gateway learns from answers that it sends on: announced changes, accepted and refused
 * credentials, things that the upstream does not know (design, laws 17 and 18).
 */
import { type AskedFor, shownParam } from '../cache/changes.js';
import { changesIn } from '../core/change.js';
import { singleValue } from '../core/headers.js';
import { authContextOf } from '../core/key.js';
import { parseMember, type RpcMessage } from '../core/message.js';
import { type Era, eraOf, HEADER } from '../core/protocol.js';
import { errorCodeOf, parseObject } from '../upstream/body.js';
import type { Observer } from './passthrough.js';
import type { ServeDeps, Task } from './task.js';

export interface TaskObserver extends Observer {
  /** The upstream answered the request with this JSON-RPC error. */
  onError(code: number): Promise<void>;
}

export function createObserver(deps: ServeDeps, task: Task): TaskObserver {
  const { name } = task.upstream;
  const { changes, verified, endedSessions } = deps;
  const asked = shownThing(task.message);

  async function onError(code: number): Promise<void> {
    if (asked === undefined) return;
    await changes.unknown(
      name,
      { ...asked, authContext: authContextOfTask(deps, task, eraOfTask(task)) },
      code,
    );
  }

  async function onAnswer(data: Buffer): Promise<void> {
    if (!data.includes('"error"')) return;
    const message = parseObject(data);
    const code = errorCodeOf(message);
    if (code !== undefined && task.message?.kind === 'request' && message?.id === task.message.id)
      await onError(code);
  }

  return {
    onError,
    onBody: asked === undefined ? undefined : onAnswer,
    async onStatus(status) {
      const isAccepted = status >= 200 && status < 300;
      const isRefused = status === 401 || status === 403;
      if (isAccepted || isRefused) verified.observe(name, () => credentialsOf(deps, task), status);
      const session = sessionAfter(task, status);
      if (session !== undefined)
        endedSessions.observe(name, () => authContextOfTask(deps, task, 'legacy'), session);
      if (!isRefused && session !== 'ended') return;
      const eras: readonly Era[] = isRefused ? ['modern', 'legacy'] : ['legacy'];
      const contexts = new Set(eras.map((era) => authContextOfTask(deps, task, era)));
      await Promise.all([...contexts].map((context) => changes.refused(name, context)));
    },
    async onEvent(data) {
      for (const change of changesIn(data)) await changes.apply(name, change, 'tap');
      if (asked !== undefined) await onAnswer(data);
    },
  };
}

/**
 * What the status of an answer says of the legacy session it belongs to (2025-11-25 basic/transports, Session
 * Management). One that is over, by its client's word or the upstream's, is served nothing from the cache any more.
 */
function sessionAfter({ outgoing }: Task, status: number): 'ended' | 'alive' | undefined {
  if (singleValue(outgoing.headers, HEADER.session) === undefined) return undefined;
  if (status === 404) return 'ended';
  if (status < 200 || status >= 300) return undefined;
  return outgoing.method === 'DELETE' ? 'ended' : 'alive';
}

/** The digest of the authorization context in which a task is asked (law 8). */
export function authContextOfTask(deps: ServeDeps, task: Task, era: Era): string {
  const { authHeaders } = deps;
  return authContextOf({
    headers: task.outgoing.headers,
    authHeaders,
    era,
    injected: task.upstream.injected,
  });
}

/** The digest of the credentials alone, without the session in which they are used. */
export function credentialsOf(deps: ServeDeps, task: Task): string {
  return authContextOfTask(deps, task, 'modern');
}

function eraOfTask(task: Task): Era {
  return eraOf(singleValue(task.outgoing.headers, HEADER.protocolVersion) ?? '') ?? 'legacy';
}

function shownThing(message: RpcMessage | undefined): Omit<AskedFor, 'authContext'> | undefined {
  const param = message?.kind === 'request' ? shownParam(message.method) : undefined;
  if (message?.kind !== 'request' || param === undefined) return undefined;
  const name = parseMember(message.bytes, message.params, param);
  return typeof name === 'string' ? { method: message.method, name } : undefined;
}
