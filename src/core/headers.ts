/**
 * Owns: what of a message's header fields travels on, and how their values are read. Pure functions over
 * names; fields are kept in the flat raw form of node:http, so order, case and doubles survive.
 * Rests on RFC 9110 section 7.6.1 (hop-by-hop) and section 8.3.1 (media types).
 */

/** Field names and values in turn: name, value, name, value … as they stood on the wire. */
export type RawHeaders = readonly string[];

const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** What the gateway's own HTTP client writes itself, or answers on its own (Expect). */
const SET_BY_US = new Set(['host', 'content-length', 'expect', 'http2-settings']);

/** The values of one field, in order; `name` in lower case. */
export function valuesOf(headers: RawHeaders, name: string): string[] {
  const values: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (headers[i]?.toLowerCase() === name) values.push(headers[i + 1] ?? '');
  }
  return values;
}

/** The one value of a field; undefined where it is missing or stands there more than once. */
export function singleValue(headers: RawHeaders, name: string): string | undefined {
  const values = valuesOf(headers, name);
  return values.length === 1 ? values[0] : undefined;
}

/** The fields whose name passes `keep`, which is given the name in lower case. */
export function filterHeaders(headers: RawHeaders, keep: (name: string) => boolean): string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (keep(name.toLowerCase())) kept.push(name, headers[i + 1] ?? '');
  }
  return kept;
}

/** The end-to-end fields of a message: without hop-by-hop fields and without those that `Connection` lists. */
export function endToEnd(headers: RawHeaders): string[] {
  const listed = new Set(
    valuesOf(headers, 'connection').flatMap((value) =>
      value.split(',').map((name) => name.trim().toLowerCase()),
    ),
  );
  return filterHeaders(headers, (name) => !HOP_BY_HOP.has(name) && !listed.has(name));
}

/** What the operator adds to requests to one upstream. */
export interface InjectedHeaders {
  /** Sent where the client sends no `Authorization`. */
  readonly authorization?: string | undefined;
  /** Sent always; they replace what the client sends under the same names. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A client's request fields as they are sent to the upstream. */
export function upstreamHeaders(headers: RawHeaders, injected: InjectedHeaders): string[] {
  const replaced = new Set(Object.keys(injected.headers).map((name) => name.toLowerCase()));
  const sent = filterHeaders(endToEnd(headers), (name) => !SET_BY_US.has(name) && !replaced.has(name));
  for (const [name, value] of Object.entries(injected.headers)) sent.push(name, value);
  if (injected.authorization !== undefined && valuesOf(sent, 'authorization').length === 0) {
    sent.push('authorization', injected.authorization);
  }
  return sent;
}

/** The media type without its parameters, in lower case: `application/json; charset=utf-8` is `application/json`. */
export function mediaType(value: string | undefined): string {
  return (value ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** The media type of a message by its `Content-Type`; empty where there is none, or more than one. */
export function contentTypeOf(headers: RawHeaders): string {
  return mediaType(singleValue(headers, 'content-type'));
}

export const JSON_TYPE = 'application/json';
export const EVENT_STREAM_TYPE = 'text/event-stream';

/**
 * Whether `Accept` names both media types in which a server may answer a request. MCP demands that a
 * client lists both, and servers answer 406 where it does not; wildcards are therefore left to the upstream.
 */
export function acceptsBoth(headers: RawHeaders): boolean {
  const named = new Set<string>();
  for (const value of valuesOf(headers, 'accept')) {
    for (const range of value.split(',')) {
      if (!/;\s*q=0(\.0{0,3})?\s*(;|$)/i.test(range)) named.add(mediaType(range));
    }
  }
  return named.has(JSON_TYPE) && named.has(EVENT_STREAM_TYPE);
}

/** The content codings of a message in the order they were applied; `identity` left out. */
export function contentCodings(headers: RawHeaders): string[] {
  return valuesOf(headers, 'content-encoding')
    .flatMap((value) => value.split(','))
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== '' && coding !== 'identity');
}
