/** Request bodies: what they are, whether the cache may answer them, under which key, and as what they are sent on. */
import { isUtf8 } from 'node:buffer';
import { describe, expect, test } from 'vitest';
import { MAX_CANONICAL_DEPTH } from '../../src/core/canonical.js';
import { classify } from '../../src/core/classify.js';
import { MAX_DEPTH } from '../../src/core/json.js';
import { cacheKeys } from '../../src/core/key.js';
import { type RpcMessage, type RpcRequest, readMessage } from '../../src/core/message.js';
import { CACHEABLE_METHODS, META, NEUTRAL_META } from '../../src/core/protocol.js';
import { bodyForPage } from '../../src/core/request-body.js';
import { rpcRequest } from '../support/client.js';
import { rawHeaders } from '../support/core.js';
import { REQUEST_BODIES } from './corpus.js';
import { hasDoubledMember, jsonFacts, memberTexts, parseJson } from './reference.js';
import { fuzz, TIMEOUT_MS } from './runs.js';
import { expectSame } from './same.js';

type Json = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What a body is, by JSON.parse and law 1. */
function kindOf(bytes: Buffer): string {
  const value = isUtf8(bytes) ? parseJson(bytes) : undefined;
  const text = bytes.toString('utf8');
  if (value === undefined || jsonFacts(text).depth > MAX_DEPTH) return 'not-json-rpc';
  if (Array.isArray(value)) return 'batch';
  if (!isObject(value)) return 'not-json-rpc';
  if (hasDoubledMember(text)) return 'ambiguous-params';
  const has = (name: string) => Object.hasOwn(value, name);
  const isAnswer = has('result') || has('error');
  if (!has('method') && isAnswer) return 'response';
  if (!has('method') || typeof value.method !== 'string') return 'not-json-rpc';
  if (!has('jsonrpc') || value.jsonrpc !== '2.0') return 'not-json-rpc';
  if (!has('id')) return 'notification';
  const isExact = typeof value.id === 'string' || Number.isSafeInteger(value.id);
  const [idText = ''] = memberTexts(text, 'id');
  if (!isExact || /^-?\d*[.eE]/.test(idText)) return 'unusable-id';
  if (isAnswer) return 'not-json-rpc';
  const [paramsText = '{}'] = memberTexts(text, 'params');
  const [metaText = '{}'] = paramsText.startsWith('{') ? memberTexts(paramsText, '_meta') : [];
  const areObjects = paramsText.startsWith('{') && metaText.startsWith('{');
  const isPlain = areObjects && !hasDoubledMember(paramsText) && !hasDoubledMember(metaText);
  return isPlain ? 'request' : 'ambiguous-params';
}

const readKind = (message: RpcMessage) => (message.kind === 'request' ? 'request' : message.what);

function requestIn(bytes: Buffer): RpcRequest | undefined {
  const message = readMessage(bytes);
  return message.kind === 'request' ? message : undefined;
}

/** The fields that would make this message a well-formed request. */
function fittingHeaders(rpc: RpcRequest): string[] {
  const value = parseJson(rpc.bytes);
  const params = isObject(value) && isObject(value.params) ? value.params : {};
  const name = params[rpc.method === 'tools/call' ? 'name' : 'uri'];
  const meta = isObject(params._meta) ? params._meta : {};
  const version = meta[META.protocolVersion];
  const { headers } = rpcRequest(rpc.method, {
    ...(typeof version === 'string' ? { version } : { era: 'legacy' as const }),
    ...(typeof name === 'string' && { params: { uri: name } }),
  });
  return rawHeaders(headers);
}

const KEY = { upstream: { name: 'u', url: 'http://u.example/mcp' }, query: '', headers: [], varyHeaders: [] };

/** What a key must tell apart: the canonical text of everything but the id and neutral metadata. */
function meaningOf(bytes: Buffer): string {
  const [paramsText = '{}'] = memberTexts(bytes.toString('utf8'), 'params');
  const [method = ''] = memberTexts(bytes.toString('utf8'), 'method');
  const kept = membersBut(paramsText, new Set(['_meta']));
  const meta = membersBut(memberTexts(paramsText, '_meta')[0] ?? '{}', NEUTRAL_META);
  return jsonFacts(`[${method},${kept},${meta}]`).canonical;
}

function membersBut(text: string, left: ReadonlySet<string>): string {
  const names = Object.keys(JSON.parse(text)).filter((name) => !left.has(name));
  return `{${names.map((name) => `${JSON.stringify(name)}:${memberTexts(text, name)[0]}`).join(',')}}`;
}

describe('a request body', { timeout: TIMEOUT_MS }, () => {
  test('is what JSON.parse and law 1 make of it, and its id stands as it was sent', () => {
    fuzz({ name: 'message', corpus: REQUEST_BODIES, runs: 15_000 }, (bytes) => {
      const message = readMessage(bytes);
      expect(readKind(message)).toBe(kindOf(bytes));
      if (message.kind !== 'request') return;
      const value = parseJson(bytes);
      if (!isObject(value)) throw new Error('no object');
      expectSame([message.method, message.id], [value.method, value.id]);
      expect(message.idRaw).toBe(memberTexts(bytes.toString('utf8'), 'id')[0]);
      expect(new Set(message.params.map(({ key }) => key))).toEqual(new Set(Object.keys(value.params ?? {})));
    });
  });

  test('is cacheable only as one of the methods, and two of one key mean the same', () => {
    const byKey = new Map<string, string>();
    let cacheable = 0;
    fuzz({ name: 'classify', corpus: REQUEST_BODIES, runs: 15_000 }, (bytes) => {
      const rpc = requestIn(bytes);
      const found = classify(readMessage(bytes), rpc === undefined ? [] : fittingHeaders(rpc));
      if (found.kind !== 'cacheable') return;
      cacheable += 1;
      if (rpc === undefined) throw new Error('cacheable, though it is no request');
      expect(Object.keys(CACHEABLE_METHODS)).toContain(rpc.method);
      const facts = jsonFacts(bytes.toString('utf8'));
      expect(facts.depth).toBeLessThanOrEqual(MAX_CANONICAL_DEPTH + 4);
      const params = membersBut(memberTexts(bytes.toString('utf8'), 'params')[0] ?? '{}', new Set(['_meta']));
      expect(jsonFacts(params).isDoubled).toBe(false);
      const { shared } = cacheKeys({ ...KEY, request: found }, 'context');
      // A cursor has keys of its own, made of the key of its list.
      const meaning = `${found.era} ${found.version} ${found.cursor === undefined ? meaningOf(bytes) : 'cursor'}`;
      if (found.cursor !== undefined) return;
      const known = byKey.get(shared) ?? meaning;
      byKey.set(shared, known);
      expect(meaning).toBe(known);
    });
    expect(cacheable).toBeGreaterThan(100);
  });

  test('is sent on for a later page with another id and a cursor, and is else as it was', () => {
    fuzz({ name: 'further', corpus: REQUEST_BODIES, runs: 10_000 }, (bytes, random) => {
      const rpc = requestIn(bytes);
      if (rpc === undefined) return;
      const cursorRaw = random.pick(['""', '"c"', '"\\ud800"', '"\\"},\\u0000"', '"é😀"']);
      const further = parseJson(bodyForPage(rpc, cursorRaw, 'mcp-cache-gateway-x'));
      const sent = parseJson(bytes);
      if (!isObject(sent) || !isObject(further)) throw new Error('no object');
      const params = isObject(sent.params) ? sent.params : {};
      const cursor: unknown = JSON.parse(cursorRaw);
      const wanted = { ...sent, id: 'mcp-cache-gateway-x', params: { ...params, cursor } };
      expectSame(further, wanted);
    });
  });
});
