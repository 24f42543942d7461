import { describe, expect, test } from 'vitest';
import { decodeName } from '../../src/core/classify.js';
import { filterHeaders } from '../../src/core/headers.js';
import { eraOf } from '../../src/core/protocol.js';
import { classifyRpc } from '../support/core.js';

const PROTOCOL_VERSION = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const readOf = (uri: string) => ({ params: { uri } });
const base64 = (value: string | Uint8Array) => `=?base64?${Buffer.from(value).toString('base64')}?=`;

describe('a modern request whose headers contradict its body is refused (law 2)', () => {
  test.each([
    ['MCP-Protocol-Version', { 'mcp-protocol-version': '2026-11-01' }],
    ['MCP-Protocol-Version', { 'mcp-protocol-version': '2025-11-25' }],
    ['MCP-Protocol-Version', { 'mcp-protocol-version': 'draft' }],
    ['Mcp-Method', { 'mcp-method': 'tools/call' }],
    ['Mcp-Method', { 'mcp-method': 'Tools/List' }],
    ['Mcp-Method', { 'mcp-method': '' }],
  ])('%s in %j, on a list', (header, headers) => {
    expect(classifyRpc('tools/list', { headers })).toEqual({ kind: 'refused', header });
  });

  test.each(['2025-11-25', '2026-11-01', 20260728, null])(
    'a header of 2026-07-28 over a body of %j',
    (version) => {
      const classified = classifyRpc('tools/list', { meta: { [PROTOCOL_VERSION]: version } });
      expect(classified).toEqual({ kind: 'refused', header: 'MCP-Protocol-Version' });
    },
  );

  test.each([
    ['resources/read', { uri: 'file:///a' }],
    ['tools/call', { name: 'a' }],
    ['prompts/get', { name: 'a' }],
  ])('Mcp-Name that names another, on %s', (method, params) => {
    expect(classifyRpc(method, { params, headers: { 'mcp-name': 'b' } })).toEqual({
      kind: 'refused',
      header: 'Mcp-Name',
    });
  });

  test('one right value does not excuse a wrong one beside it', () => {
    const twice = (name: string, value: string) =>
      classifyRpc('resources/read', readOf('file:///a'), ({ headers }) => ({
        headers: [...headers, name, value],
      }));
    expect(twice('Mcp-Method', 'tools/call')).toEqual({ kind: 'refused', header: 'Mcp-Method' });
    expect(twice('MCP-NAME', 'file:///b')).toEqual({ kind: 'refused', header: 'Mcp-Name' });
    expect(twice('mcp-protocol-version', '2025-11-25')).toEqual({
      kind: 'refused',
      header: 'MCP-Protocol-Version',
    });
  });

  test('a legacy request is not held to headers that its revision does not know', () => {
    const headers = { 'mcp-method': 'tools/call', 'mcp-name': 'x' };
    expect(classifyRpc('tools/list', { era: 'legacy', headers }).kind).toBe('cacheable');
  });
});

describe('a modern request that lacks something required passes to the upstream (law 2)', () => {
  const incomplete = { kind: 'bypass', reason: 'incomplete-request' };

  test.each(['mcp-protocol-version', 'mcp-method', 'mcp-name'])('no %s', (name) => {
    const classified = classifyRpc('resources/read', readOf('file:///a'), ({ headers }) => ({
      headers: filterHeaders(headers, (other) => other !== name),
    }));
    expect(classified).toEqual(incomplete);
  });

  test.each(['mcp-protocol-version', 'mcp-method', 'mcp-name'])('%s twice', (name) => {
    const classified = classifyRpc('resources/read', readOf('file:///a'), ({ headers }) => ({
      headers: [...headers, ...headers.slice(headers.indexOf(name), headers.indexOf(name) + 2)],
    }));
    expect(classified).toEqual(incomplete);
  });

  test.each([
    ['no protocol version in the body', { [PROTOCOL_VERSION]: undefined }],
    ['no client capabilities', { [CAPABILITIES]: undefined }],
    ['client capabilities that are no object', { [CAPABILITIES]: null }],
    ['client capabilities that are an array', { [CAPABILITIES]: [] }],
  ])('%s', (_name, meta) => {
    expect(classifyRpc('tools/list', { meta })).toEqual(incomplete);
  });

  test('no _meta, and no params', () => {
    for (const params of [',"params":{}', '']) {
      const body = `{"jsonrpc":"2.0","id":1,"method":"tools/list"${params}}`;
      expect(classifyRpc('tools/list', {}, () => ({ body }))).toEqual(incomplete);
    }
  });

  test('no uri of a read', () => {
    expect(classifyRpc('resources/read', { headers: { 'mcp-name': 'file:///a' } })).toEqual(incomplete);
  });

  test('header names in any case are there', () => {
    const classified = classifyRpc('resources/read', readOf('file:///a'), ({ headers }) => ({
      headers: headers.map((field, i) => (i % 2 === 0 ? field.toUpperCase() : field)),
    }));
    expect(classified.kind).toBe('cacheable');
  });
});

describe('the value of Mcp-Name is decoded before it is compared (streamable-http, Value Encoding)', () => {
  test.each([
    ['us-west1', 'us-west1'],
    ['=?base64?SGVsbG8sIOS4lueVjA==?=', 'Hello, 世界'],
    ['=?base64?IHBhZGRlZCA=?=', ' padded '],
    ['=?base64?bGluZTEKbGluZTI=?=', 'line1\nline2'],
    ['=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=', '=?base64?literal?='],
    ['=?base64??=', ''],
    ['', ''],
    ['=?BASE64?SGk=?=', '=?BASE64?SGk=?='],
    ['=?base64?SGk=', '=?base64?SGk='],
    ['x=?base64?SGk=?=', 'x=?base64?SGk=?='],
  ])('%s carries %j', (header, value) => {
    expect(decodeName(header)).toBe(value);
  });

  test.each(['=?base64?SGk?=', '=?base64?S?=', '=?base64?SG k=?=', '=?base64?S-_=?=', '=?base64?SGk=SGk=?='])(
    '%s is broken Base64 and equals nothing',
    (header) => {
      expect(decodeName(header)).toBeUndefined();
      expect(classifyRpc('resources/read', { ...readOf('Hi'), headers: { 'mcp-name': header } })).toEqual({
        kind: 'refused',
        header: 'Mcp-Name',
      });
    },
  );

  test('bytes that are no UTF-8 do not pass for the replacement character', () => {
    const headers = { 'mcp-name': base64(Uint8Array.of(0xff)) };
    expect(classifyRpc('resources/read', { ...readOf('\ufffd'), headers })).toEqual({
      kind: 'refused',
      header: 'Mcp-Name',
    });
  });

  test('Base64 whose unused bits are set is read as other decoders read it', () => {
    expect(decodeName('=?base64?QR==?=')).toBe('A');
  });

  test.each(['file:///世界', ' x ', '=?base64?x?=', 'x:e\u0301'])(
    '%j is recognised in its encoded form',
    (uri) => {
      const headers = { 'mcp-name': base64(uri) };
      expect(classifyRpc('resources/read', { ...readOf(uri), headers }).kind).toBe('cacheable');
    },
  );

  test('composed and decomposed letters contradict each other', () => {
    const headers = { 'mcp-name': base64('x:\u00e9') };
    expect(classifyRpc('resources/read', { ...readOf('x:e\u0301'), headers }).kind).toBe('refused');
  });
});

describe('protocol versions (basic/versioning)', () => {
  test.each([
    ['2026-07-28', 'modern'],
    ['2026-07-29', 'modern'],
    ['2027-01-01', 'modern'],
    ['2026-07-27', 'legacy'],
    ['2025-11-25', 'legacy'],
    ['2024-11-05', 'legacy'],
    ['1900-01-01', 'legacy'],
    ['draft', undefined],
    ['DRAFT-2026-v1', undefined],
    ['2026-07-28-rc', undefined],
    ['2026-7-28', undefined],
    ['', undefined],
    ['3', undefined],
  ])('%j is %s', (version, era) => {
    expect(eraOf(version)).toBe(era);
  });

  test('a later modern version is cached as its own', () => {
    expect(classifyRpc('tools/list', { version: '2027-01-01' })).toMatchObject({
      kind: 'cacheable',
      era: 'modern',
      version: '2027-01-01',
    });
  });

  test('a legacy request without a version is a legacy one', () => {
    const classified = classifyRpc('tools/list', { era: 'legacy' }, ({ headers }) => ({
      headers: filterHeaders(headers, (name) => name !== 'mcp-protocol-version'),
    }));
    expect(classified).toMatchObject({ kind: 'cacheable', era: 'legacy', version: undefined });
  });

  test.each(['draft', '', '2026-07-28-rc'])('an unknown version %j passes through', (version) => {
    expect(classifyRpc('tools/list', { era: 'legacy', version })).toEqual({
      kind: 'bypass',
      reason: 'unknown-version',
    });
    expect(classifyRpc('tools/list', { version })).toEqual({ kind: 'bypass', reason: 'unknown-version' });
  });

  test('a modern version in the body alone makes the request modern', () => {
    const classified = classifyRpc('tools/list', {}, ({ headers }) => ({
      headers: filterHeaders(headers, (name) => name !== 'mcp-protocol-version'),
    }));
    expect(classified).toEqual({ kind: 'bypass', reason: 'incomplete-request' });
  });

  test('a legacy request with two version headers passes through', () => {
    const classified = classifyRpc('tools/list', { era: 'legacy' }, ({ headers }) => ({
      headers: [...headers, 'MCP-Protocol-Version', '2025-06-18'],
    }));
    expect(classified.kind).toBe('bypass');
  });
});
