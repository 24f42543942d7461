/** Answers of scripted upstreams: lists in pages, and a catalogue that changes. */
import type { ServerResponse } from 'node:http';
import {
  beginEvents,
  goodResult,
  type Respond,
  type SeenRequest,
  sendError,
  sendEvent,
  sendResult,
} from './upstream.js';

/** Tools with these names, in the form that MCP gives them. */
export function tools(...names: readonly string[]): object[] {
  return names.map((name) => ({ name, inputSchema: { type: 'object' } }));
}

export function namesOf(answer: { readonly json: { result: { tools: { name: string }[] } } }): string[] {
  return answer.json.result.tools.map((tool) => tool.name);
}

/** The cursor of a request, or `-` where it has none. */
export function cursorOf(request: SeenRequest): string {
  return request.json.params?.cursor ?? '-';
}

/** The cursors that an upstream was asked for, in order. */
export function cursors(upstream: { readonly requests: readonly SeenRequest[] }): string[] {
  return upstream.requests.map(cursorOf);
}

/** One page: its tools and, where `next` is given, the cursor of the page behind it. */
export function page(names: readonly string[], next?: unknown, fields: object = {}): object {
  return {
    ...goodResult({ tools: tools(...names) }),
    ...(next !== undefined && { nextCursor: next }),
    ...fields,
  };
}

/** Answers with an event stream: the messages given, then the result, then the end. */
export function sendResultAsEvents(
  res: ServerResponse,
  request: SeenRequest,
  result: unknown,
  before: readonly object[] = [],
): void {
  beginEvents(res);
  for (const message of before) sendEvent(res, message);
  sendEvent(res, { jsonrpc: '2.0', id: request.json.id, result });
  res.end();
}

/** Pages by the cursor that asks for them; `-` is the first. An unknown cursor is invalid params. */
export function paged(
  pages: Readonly<Record<string, object>>,
  send: (res: ServerResponse, request: SeenRequest, result: unknown) => void = sendResult,
): Respond {
  return (request, res) => {
    const result = pages[cursorOf(request)];
    if (result === undefined) sendError(res, request, -32602);
    else send(res, request, result);
  };
}

/** Three pages of two tools each, whose names begin with `p`. */
export function threePages(p: string): Readonly<Record<string, object>> {
  return {
    '-': page([`${p}0`, `${p}1`], 'c1'),
    c1: page([`${p}2`, `${p}3`], 'c2'),
    c2: page([`${p}4`, `${p}5`]),
  };
}

/** The names on them, in order. */
export function sixNames(p: string): string[] {
  return [0, 1, 2, 3, 4, 5].map((i) => `${p}${i}`);
}

/** The cacheable methods, with the parameters that each needs. */
export const CACHEABLE: readonly (readonly [string, Record<string, unknown>])[] = [
  ['tools/list', {}],
  ['prompts/list', {}],
  ['resources/list', {}],
  ['resources/templates/list', {}],
  ['resources/read', { uri: 'file:///a' }],
  ['server/discover', {}],
];

/** What a request of a cacheable method gets; every result tells `version` somewhere. */
export function resultOf(request: SeenRequest, version: string): Record<string, unknown> {
  const { method, params } = request.json;
  const byMethod: Record<string, Record<string, unknown>> = {
    'tools/list': { tools: tools(version) },
    'prompts/list': { prompts: [{ name: version }] },
    'resources/list': { resources: [{ uri: 'file:///a', name: version }] },
    'resources/templates/list': { resourceTemplates: [{ uriTemplate: 'file:///{p}', name: version }] },
    'resources/read': { contents: [{ uri: params?.uri, text: version }] },
    'server/discover': {
      supportedVersions: ['2026-07-28'],
      capabilities: {},
      instructions: version,
    },
  };
  return goodResult(byMethod[method] ?? {});
}

/** An upstream of one version at a time: whatever is asked tells which. */
export function catalogue(version: () => string = () => 'v1'): Respond {
  return (request, res) => sendResult(res, request, resultOf(request, version()));
}
