/**
 * Owns: what a request body is as a JSON-RPC message, read beside the raw bytes, which stay as they came.
 * Refuses to guess: what is not one well-formed message with keys of one meaning is named for what it is
 * and left to the upstream (design, law 1).
 */
import { isUtf8 } from 'node:buffer';
import {
  hasDoubledKey,
  JsonSyntaxError,
  type Member,
  readObject,
  scanText,
  skipSpace,
  sliceText,
} from './json.js';

/** A single JSON-RPC request with an id that can be echoed exactly. */
export interface RpcRequest {
  readonly kind: 'request';
  readonly bytes: Buffer;
  readonly members: readonly Member[];
  readonly method: string;
  readonly id: string | number;
  /** The id as it stood in the body, digit for digit. */
  readonly idRaw: string;
  /** The members of `params`, none where it is absent. */
  readonly params: readonly Member[];
  /** The members of `params._meta`, none where it is absent. */
  readonly meta: readonly Member[];
}

export type RpcMessage =
  | RpcRequest
  | {
      readonly kind: 'other';
      readonly what: OtherMessage;
      readonly method?: string;
      readonly idRaw?: string;
    };

export type OtherMessage =
  | 'not-json-rpc'
  | 'batch'
  | 'notification'
  | 'response'
  | 'unusable-id'
  | 'ambiguous-params';

/** What the body is; never throws. */
export function readMessage(bytes: Buffer): RpcMessage {
  try {
    if (!isUtf8(bytes)) return { kind: 'other', what: 'not-json-rpc' };
    const start = skipSpace(bytes, 0);
    if (bytes[start] === 0x5b) {
      scanText(bytes);
      return { kind: 'other', what: 'batch' };
    }
    const { members, end } = readObject(bytes, start);
    const isWhole = skipSpace(bytes, end) === bytes.length;
    return isWhole ? readEnvelope(bytes, members) : { kind: 'other', what: 'not-json-rpc' };
  } catch (error) {
    if (error instanceof JsonSyntaxError) return { kind: 'other', what: 'not-json-rpc' };
    throw error;
  }
}

function readEnvelope(bytes: Buffer, members: readonly Member[]): RpcMessage {
  if (hasDoubledKey(members)) return { kind: 'other', what: 'ambiguous-params' };
  const method = parseMember(bytes, members, 'method');
  const hasAnswer = members.some((m) => m.key === 'result' || m.key === 'error');
  if (method === undefined && hasAnswer) return { kind: 'other', what: 'response' };
  if (typeof method !== 'string' || parseMember(bytes, members, 'jsonrpc') !== '2.0') {
    return { kind: 'other', what: 'not-json-rpc' };
  }
  const idMember = members.find((m) => m.key === 'id');
  if (idMember === undefined) return { kind: 'other', what: 'notification', method };
  const idRaw = sliceText(bytes, idMember);
  const id = exactId(idRaw);
  if (id === undefined) return { kind: 'other', what: 'unusable-id', method };
  if (hasAnswer) return { kind: 'other', what: 'not-json-rpc', method, idRaw };
  const params = objectMembers(bytes, members, 'params');
  const meta = params && objectMembers(bytes, params, '_meta');
  if (params === undefined || meta === undefined || hasDoubledKey(params) || hasDoubledKey(meta)) {
    return { kind: 'other', what: 'ambiguous-params', method, idRaw };
  }
  return { kind: 'request', bytes, members, method, id, idRaw, params, meta };
}

/** An id that is a string, or an integer that JavaScript carries exactly; undefined for any other. */
function exactId(raw: string): string | number | undefined {
  if (raw.startsWith('"')) {
    const text: unknown = JSON.parse(raw);
    return typeof text === 'string' ? text : undefined;
  }
  if (!/^-?(0|[1-9]\d*)$/.test(raw)) return undefined;
  const value = Number(raw);
  return Number.isSafeInteger(value) ? value : undefined;
}

/** The value of a member as JSON.parse reads it; undefined where it is absent. */
export function parseMember(bytes: Buffer, members: readonly Member[], key: string): unknown {
  const member = members.find((m) => m.key === key);
  return member === undefined ? undefined : JSON.parse(sliceText(bytes, member));
}

/** The members of an object-valued member: none where it is absent, undefined where it is no object. */
function objectMembers(
  bytes: Buffer,
  members: readonly Member[],
  key: string,
): readonly Member[] | undefined {
  const member = members.find((m) => m.key === key);
  if (member === undefined) return [];
  return bytes[member.start] === 0x7b ? readObject(bytes, member.start).members : undefined;
}
