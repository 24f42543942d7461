/**
 * Owns: the watch on a modern upstream: one `subscriptions/listen` stream (2026-07-28
 * basic/patterns/subscriptions). Tells apart an upstream that has no such thing from one of the older era.
 */

import { isObject } from '../core/change.js';
import { ACKNOWLEDGED, ERROR_CODE, HEADER, LISTEN_METHOD, META, MODERN_VERSION } from '../core/protocol.js';
import { errorCodeOf, parseObject } from './body.js';
import type { UpstreamResponse } from './transport.js';
import { isEventStream, messagesOf, readAnswer, type Wire } from './watch-wire.js';

export interface StreamHandlers {
  /** The stream stands: from now on changes will be told. `watched` names what the upstream agreed to tell. */
  connected(watched: readonly string[]): Promise<void>;
  message(data: Buffer): Promise<void>;
}

/** How an attempt ended. `lost`: a stream that stood, or never came to stand for a passing reason. */
export type AttemptEnd =
  | { readonly kind: 'lost'; readonly cause?: unknown }
  /** `code`: of the JSON-RPC error by which it refused. */
  | { readonly kind: 'refused'; readonly status: number; readonly code?: number | undefined }
  | { readonly kind: 'other-era' };

export interface AttemptContext {
  readonly wire: Wire;
  readonly clientInfo: { readonly name: string; readonly version: string };
  readonly handlers: StreamHandlers;
  readonly signal: AbortSignal;
  /** Bounds the wait for the head of each answer; called when it has come. */
  readonly headTimer: () => () => void;
}

const ASKED_FOR = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true } as const;

/** JSON-RPC errors by which a modern server says that it is one (basic/versioning, Backward Compatibility). */
const MODERN_ERRORS: ReadonlySet<number> = new Set([
  ERROR_CODE.headerMismatch,
  ERROR_CODE.missingCapability,
  ERROR_CODE.unsupportedVersion,
]);

/** Opens the stream and reads it to its end. Rejects where the connection fails. */
export async function watchModern(context: AttemptContext, id: string): Promise<AttemptEnd> {
  const stopTimer = context.headTimer();
  const response = await context.wire
    .post(
      listenRequest(id, context.clientInfo),
      ['mcp-protocol-version', MODERN_VERSION, HEADER.method, LISTEN_METHOD],
      context.signal,
    )
    .finally(stopTimer);
  if (response.status === 200 && isEventStream(response)) return readStream(context, response, id);
  return judgeRefusal(response, id);
}

function listenRequest(id: string, clientInfo: AttemptContext['clientInfo']): object {
  return {
    jsonrpc: '2.0',
    id,
    method: LISTEN_METHOD,
    params: {
      _meta: {
        [META.protocolVersion]: MODERN_VERSION,
        [META.clientInfo]: clientInfo,
        [META.clientCapabilities]: {},
      },
      notifications: ASKED_FOR,
    },
  };
}

async function readStream(
  context: AttemptContext,
  response: UpstreamResponse,
  id: string,
): Promise<AttemptEnd> {
  let isConnected = false;
  for await (const data of messagesOf(response)) {
    const message = parseObject(data);
    if (message === undefined) continue;
    if (message.id === id) {
      response.body.destroy();
      const code = errorCodeOf(message);
      if (code === undefined || isConnected) return { kind: 'lost' };
      // A modern server answers an unknown method with 404; with 200 it is an older one that knows no better.
      return code === ERROR_CODE.methodNotFound
        ? { kind: 'other-era' }
        : { kind: 'lost', cause: `error ${code}` };
    }
    if (!isConnected && message.method === ACKNOWLEDGED) {
      isConnected = true;
      await context.handlers.connected(agreedTo(message));
    } else {
      await context.handlers.message(data);
    }
  }
  return { kind: 'lost' };
}

function agreedTo(message: Readonly<Record<string, unknown>>): string[] {
  const agreed = isObject(message.params) ? message.params.notifications : undefined;
  return isObject(agreed) ? Object.keys(ASKED_FOR).filter((name) => agreed[name] === true) : [];
}

async function judgeRefusal(response: UpstreamResponse, id: string): Promise<AttemptEnd> {
  const { status } = response;
  const answer = await readAnswer(response, id);
  const code = errorCodeOf(answer);
  if (status === 401 || status === 403) return { kind: 'refused', status, code };
  if (status >= 500 || status === 429 || status === 408) return { kind: 'lost', cause: `status ${status}` };
  if (code === ERROR_CODE.unsupportedVersion)
    return speaksOnlyLegacy(answer) ? { kind: 'other-era' } : { kind: 'refused', status, code };
  if (code !== undefined && MODERN_ERRORS.has(code)) return { kind: 'refused', status, code };
  if (code === ERROR_CODE.methodNotFound && status === 404) return { kind: 'refused', status, code };
  return { kind: 'other-era' };
}

function speaksOnlyLegacy(answer: Readonly<Record<string, unknown>> | undefined): boolean {
  const data = isObject(answer?.error) ? answer.error.data : undefined;
  const supported = isObject(data) && Array.isArray(data.supported) ? data.supported : [];
  return (
    supported.length > 0 &&
    supported.every((version) => typeof version === 'string' && version < MODERN_VERSION)
  );
}
