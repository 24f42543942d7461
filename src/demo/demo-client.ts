/**
 * Owns: the demo's client: lists resources and listens for changes as any client of MCP 2026-07-28 may, and
 * reads the field that tells what the gateway did.
 */
import { isObject } from '../core/change.js';
import { createEventScanner } from '../core/sse.js';
import { mcpRequest, send } from './mcp-request.js';

export interface Listing {
  readonly count: number;
  /** Name and URI of the last resource. */
  readonly last: string;
  readonly cacheStatus: string;
}

const MAX_EVENT_BYTES = 65_536;

/** @throws Error where the answer is no list */
export async function listResources(endpoint: string): Promise<Listing> {
  const response = await send(endpoint, mcpRequest('resources/list'));
  const text = await response.text();
  const answer: unknown = JSON.parse(text);
  const result = isObject(answer) && isObject(answer.result) ? answer.result : {};
  if (!Array.isArray(result.resources)) throw new Error(`status ${response.status}, and no list: ${text}`);
  const last: unknown = result.resources.at(-1);
  return {
    count: result.resources.length,
    last: isObject(last) ? `"${last.name}", ${last.uri}` : 'none',
    cacheStatus: response.headers.get('cache-status') ?? 'none',
  };
}

/**
 * Listens, has `cause` happen once the upstream has agreed to tell, and gives the name of the notification that
 * comes of it.
 * @throws Error where the stream ends without one
 */
export async function changeHeard(endpoint: string, cause: () => Promise<void>): Promise<string> {
  const leaving = new AbortController();
  const request = mcpRequest('subscriptions/listen', { notifications: { resourcesListChanged: true } });
  const response = await send(endpoint, request, leaving.signal);
  try {
    for await (const method of methodsIn(response)) {
      if (method === 'notifications/subscriptions/acknowledged') await cause();
      else if (method.endsWith('/list_changed')) return method;
    }
  } finally {
    leaving.abort();
  }
  throw new Error(`status ${response.status}, and no change was announced`);
}

/** The methods of the notifications on an event stream. */
async function* methodsIn(response: Response): AsyncIterable<string> {
  const scanner = createEventScanner({ maxDataBytes: MAX_EVENT_BYTES });
  for await (const chunk of response.body ?? []) {
    for (const { data } of scanner.feed(Buffer.from(chunk))) {
      const message: unknown = JSON.parse(data.toString('utf8'));
      if (isObject(message) && typeof message.method === 'string') yield message.method;
    }
  }
}
