/**
 * Owns: what may be answered from the cache, what is refused, and what passes through (design, laws 1 and 2;
 * MCP 2026-07-28 basic/transports/streamable-http, Server Validation). Only what is positively recognised
 * as a cacheable request is one.
 */
import { isUtf8 } from 'node:buffer';
import { canonicalMembers, NotCanonicalError } from './canonical.js';
import { acceptsBoth, contentTypeOf, JSON_TYPE, type RawHeaders, singleValue, valuesOf } from './headers.js';
import type { Member } from './json.js';
import { parseMember, type RpcMessage, type RpcRequest } from './message.js';
import {
  type CacheableMethod,
  type Era,
  eraOf,
  HEADER,
  isCacheableMethod,
  META,
  methodShape,
  NAMED_BY,
  NEUTRAL_META,
} from './protocol.js';
import type { BypassReason } from './reasons.js';

/** A request that the cache may answer. */
export interface CacheableRequest {
  readonly kind: 'cacheable';
  readonly rpc: RpcRequest;
  readonly method: CacheableMethod;
  readonly era: Era;
  /** The declared protocol version; absent where a legacy request declares none. */
  readonly version: string | undefined;
  /** The cursor of the page that is asked for; absent for the first. */
  readonly cursor: string | undefined;
  /** The canonical text of params without `_meta` and `cursor`. */
  readonly paramsText: string;
  /** The canonical text of those `_meta` fields that can change a result. */
  readonly metaText: string;
  /** The `uri` of a `resources/read`. */
  readonly uri: string | undefined;
}

export type Classified =
  | CacheableRequest
  | { readonly kind: 'bypass'; readonly reason: BypassReason }
  | { readonly kind: 'refused'; readonly header: string };

/** Decides on one message; `headers` are the client's own fields. */
export function classify(message: RpcMessage, headers: RawHeaders): Classified {
  if (message.kind === 'other') return { kind: 'bypass', reason: message.what };
  const declared = declaredVersion(message, headers);
  if (declared.era === 'modern') {
    const header = contradictedHeader(message, headers);
    if (header !== undefined) return { kind: 'refused', header };
  }
  const reason = bypassReason(message, headers, declared);
  if (reason !== undefined) return { kind: 'bypass', reason };
  if (!isCacheableMethod(message.method) || declared.era === undefined) {
    return { kind: 'bypass', reason: 'not-cacheable-method' };
  }
  return cacheableOrAmbiguous(message, message.method, declared.era, declared.version);
}

interface Declared {
  readonly era: Era | undefined;
  readonly version: string | undefined;
}

/** Modern if the header or the body says so (law 2); without either, legacy (streamable-http, 2025-11-25). */
function declaredVersion(rpc: RpcRequest, headers: RawHeaders): Declared {
  const inHeader = valuesOf(headers, HEADER.protocolVersion);
  const inBody = parseMember(rpc.bytes, rpc.meta, META.protocolVersion);
  const declared = inBody === undefined ? inHeader : [...inHeader, inBody];
  if (declared.length === 0) return { era: 'legacy', version: undefined };
  const eras = declared.map((version) => (typeof version === 'string' ? eraOf(version) : undefined));
  const era = eras.includes('modern') ? 'modern' : eras.includes(undefined) ? undefined : 'legacy';
  return { era, version: inHeader[0] };
}

/** Law 2: the header that is present and contradicts the body, if any. */
function contradictedHeader(rpc: RpcRequest, headers: RawHeaders): string | undefined {
  const version = parseMember(rpc.bytes, rpc.meta, META.protocolVersion);
  if (version !== undefined && contradicts(headers, HEADER.protocolVersion, version))
    return 'MCP-Protocol-Version';
  if (contradicts(headers, HEADER.method, rpc.method)) return 'Mcp-Method';
  const nameField = NAMED_BY[rpc.method];
  if (nameField === undefined) return undefined;
  const name = parseMember(rpc.bytes, rpc.params, nameField);
  if (name === undefined) return undefined;
  return valuesOf(headers, HEADER.name).every((value) => decodeName(value) === name) ? undefined : 'Mcp-Name';
}

function contradicts(headers: RawHeaders, name: string, expected: unknown): boolean {
  return valuesOf(headers, name).some((value) => value !== expected);
}

const BASE64 = /^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/**
 * The value that an `Mcp-Name` field carries (streamable-http, Value Encoding); undefined for broken Base64,
 * and for bytes that are no UTF-8, which no name is.
 */
export function decodeName(value: string): string | undefined {
  const encoded = /^=\?base64\?(.*)\?=$/.exec(value)?.[1];
  if (encoded === undefined) return value;
  const bytes = Buffer.from(encoded, 'base64');
  return BASE64.test(encoded) && isUtf8(bytes) ? bytes.toString('utf8') : undefined;
}

/** A larger request is no list's: to compare its parameters would cost more than it saves. */
export const MAX_REQUEST_BYTES = 65_536;

/** The members of a JSON-RPC request; one more is not part of the key, and an upstream may refuse it. */
const ENVELOPE = new Set(['jsonrpc', 'id', 'method', 'params']);

function bypassReason(rpc: RpcRequest, headers: RawHeaders, declared: Declared): BypassReason | undefined {
  if (!isCacheableMethod(rpc.method)) return 'not-cacheable-method';
  if (rpc.bytes.length > MAX_REQUEST_BYTES) return 'large-request';
  if (rpc.members.some((member) => !ENVELOPE.has(member.key))) return 'unexpected-member';
  const has = (key: string) => rpc.params.some((member) => member.key === key);
  if (has('inputResponses') || has('requestState')) return 'multi-round-trip';
  if (has('cursor') && !isUsableCursor(rpc, rpc.method)) return 'has-cursor';
  if (declared.era === undefined) return 'unknown-version';
  if (!isComplete(rpc, headers, declared.era)) return 'incomplete-request';
  return undefined;
}

/** Only lists have pages; a cursor that is no string is the upstream's to refuse. */
function isUsableCursor(rpc: RpcRequest, method: CacheableMethod): boolean {
  const cursor = parseMember(rpc.bytes, rpc.params, 'cursor');
  return methodShape(method).itemsField !== undefined && (cursor === null || typeof cursor === 'string');
}

/** Law 2: whether the request has all that its revision requires, so that no upstream would refuse its form. */
function isComplete(rpc: RpcRequest, headers: RawHeaders, era: Era): boolean {
  if (contentTypeOf(headers) !== JSON_TYPE || !acceptsBoth(headers)) return false;
  if (valuesOf(headers, 'content-encoding').length > 0) return false;
  if (rpc.method === 'resources/read' && typeof parseMember(rpc.bytes, rpc.params, 'uri') !== 'string')
    return false;
  if (era === 'legacy') return valuesOf(headers, HEADER.protocolVersion).length <= 1;
  const capabilities = rpc.meta.find((member) => member.key === META.clientCapabilities);
  return (
    typeof parseMember(rpc.bytes, rpc.meta, META.protocolVersion) === 'string' &&
    capabilities !== undefined &&
    rpc.bytes[capabilities.start] === 0x7b &&
    singleValue(headers, HEADER.protocolVersion) !== undefined &&
    singleValue(headers, HEADER.method) !== undefined &&
    (NAMED_BY[rpc.method] === undefined || singleValue(headers, HEADER.name) !== undefined)
  );
}

function cacheableOrAmbiguous(
  rpc: RpcRequest,
  method: CacheableMethod,
  era: Era,
  version: string | undefined,
): Classified {
  const cursor = parseMember(rpc.bytes, rpc.params, 'cursor');
  // A null cursor is no cursor, but not the form that every upstream takes: it stays part of the key.
  const isParam = (member: Member) => member.key !== '_meta' && (member.key !== 'cursor' || cursor === null);
  const isTelling = (member: Member) => !NEUTRAL_META.has(member.key);
  try {
    const uri = parseMember(rpc.bytes, rpc.params, 'uri');
    return {
      kind: 'cacheable',
      rpc,
      method,
      era,
      version,
      cursor: typeof cursor === 'string' ? cursor : undefined,
      paramsText: canonicalMembers(rpc.bytes, rpc.params.filter(isParam)),
      metaText: canonicalMembers(rpc.bytes, rpc.meta.filter(isTelling)),
      uri: method === 'resources/read' && typeof uri === 'string' ? uri : undefined,
    };
  } catch (error) {
    if (error instanceof NotCanonicalError) return { kind: 'bypass', reason: 'ambiguous-params' };
    throw error;
  }
}
