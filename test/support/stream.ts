/** The client's end of an event stream, read message by message. */
import { rpcRequest } from './client.js';

/** A JSON-RPC message as a test looks at it. */
export interface SeenMessage {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
}

export interface ClientStream {
  readonly status: number;
  readonly headers: Headers;
  /** The next message; rejects where the stream ends first. */
  next(): Promise<SeenMessage>;
  /** All of it as text, once it has ended; rejects where it breaks off. */
  rest(): Promise<string>;
  close(): Promise<void>;
}

/** The messages of the complete events in `text`. */
export function messagesIn(text: string): SeenMessage[] {
  return text.split('\n\n').slice(0, -1).flatMap(messageOf);
}

function messageOf(event: string): SeenMessage[] {
  const data = event
    .split('\n')
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5).trimStart())
    .join('\n');
  return data === '' ? [] : [JSON.parse(data)];
}

/** Sends a request whose answer is an event stream; resolves with its head. */
export async function openStream(url: string, init: RequestInit): Promise<ClientStream> {
  const abort = new AbortController();
  const response = await fetch(url, { ...init, signal: abort.signal });
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let given = 0;

  async function readOn(): Promise<boolean> {
    const chunk = await reader?.read();
    if (chunk?.value === undefined) return false;
    text += decoder.decode(chunk.value, { stream: true });
    return true;
  }

  return {
    status: response.status,
    headers: response.headers,
    async next() {
      for (;;) {
        const message = messagesIn(text)[given];
        if (message !== undefined) {
          given += 1;
          return message;
        }
        if (!(await readOn())) throw new Error(`the stream ended after: ${text}`);
      }
    },
    async rest() {
      while (await readOn());
      return text;
    },
    close: async () => abort.abort(),
  };
}

/** Opens a modern `subscriptions/listen` stream. */
export function listen(
  url: string,
  notifications: object = { toolsListChanged: true },
): Promise<ClientStream> {
  return openStream(url, {
    method: 'POST',
    ...rpcRequest('subscriptions/listen', { params: { notifications } }),
  });
}

/** Opens the GET stream of a legacy session. */
export function getStream(url: string): Promise<ClientStream> {
  return openStream(url, {
    headers: {
      accept: 'text/event-stream',
      'mcp-protocol-version': '2025-11-25',
      'mcp-session-id': 's1',
    },
  });
}
