import { describe, expect, test } from 'vitest';
import {
  acceptsBoth,
  contentCodings,
  contentTypeOf,
  endToEnd,
  filterHeaders,
  mediaType,
  singleValue,
  upstreamHeaders,
  valuesOf,
} from '../../src/core/headers.js';

const NO_INJECTION = { headers: {} };

describe('hop-by-hop fields do not travel (law 23, C43, RFC 9110 section 7.6.1)', () => {
  test.each([
    'Connection',
    'Keep-Alive',
    'Proxy-Authenticate',
    'Proxy-Authorization',
    'Proxy-Connection',
    'TE',
    'Trailer',
    'Transfer-Encoding',
    'Upgrade',
  ])('%s, in any case', (name) => {
    for (const spelt of [name, name.toLowerCase(), name.toUpperCase()]) {
      expect(endToEnd(['X-A', '1', spelt, 'x', 'X-B', '2'])).toEqual(['X-A', '1', 'X-B', '2']);
    }
  });

  test.each([
    [['Connection', 'keep-alive, X-Hop']],
    [['connection', 'x-hop']],
    [['CONNECTION', ' ,, X-HOP ,close']],
    [['Connection', 'close', 'Connection', 'X-Hop']],
  ])('nor do those that %j lists', (connection) => {
    expect(endToEnd(['X-Hop', '1', 'Accept', 'a', ...connection, 'x-hop', '2'])).toEqual(['Accept', 'a']);
  });

  test.each(['', ',', ' ', '"x"', 'x y', '*'])('an odd Connection of %j does no harm', (value) => {
    expect(endToEnd(['Connection', value, 'Accept', 'a'])).toEqual(['Accept', 'a']);
  });

  test('end-to-end fields keep their order, case and doubles', () => {
    const fields = ['Set-Cookie', 'a=1', 'x-A', '1', 'SET-COOKIE', 'b=2', 'X-a', '2', 'Warning', ''];
    expect(endToEnd(fields)).toEqual(fields);
  });
});

describe('what is sent to the upstream', () => {
  test('the client’s end-to-end fields, without those that the HTTP client writes', () => {
    expect(
      upstreamHeaders(
        [
          'Host',
          'gateway',
          'Content-Length',
          '5',
          'Expect',
          '100-continue',
          'HTTP2-Settings',
          'x',
          'X-A',
          '1',
        ],
        NO_INJECTION,
      ),
    ).toEqual(['X-A', '1']);
  });

  test('Connection: Authorization takes the credentials out (C43)', () => {
    const sent = upstreamHeaders(['Authorization', 'Bearer a', 'Connection', 'Authorization'], NO_INJECTION);
    expect(sent).toEqual([]);
  });

  test('the operator’s authorization stands in where the client sends none', () => {
    const injected = { authorization: 'Bearer gateway', headers: {} };
    expect(valuesOf(upstreamHeaders([], injected), 'authorization')).toEqual(['Bearer gateway']);
    expect(valuesOf(upstreamHeaders(['AUTHORIZATION', 'Bearer a'], injected), 'authorization')).toEqual([
      'Bearer a',
    ]);
    expect(valuesOf(upstreamHeaders(['Authorization', ''], injected), 'authorization')).toEqual(['']);
  });

  test('the operator’s headers replace the client’s, once and in any case', () => {
    const injected = { headers: { 'x-api-key': 'ours', 'x-other': 'ours' } };
    const sent = upstreamHeaders(['X-API-Key', 'theirs', 'x-api-key', 'theirs too', 'X-A', '1'], injected);
    expect(valuesOf(sent, 'x-api-key')).toEqual(['ours']);
    expect(valuesOf(sent, 'x-other')).toEqual(['ours']);
    expect(valuesOf(sent, 'x-a')).toEqual(['1']);
  });

  test('a client cannot strip the operator’s headers by naming them in Connection', () => {
    const injected = { authorization: 'Bearer gateway', headers: { 'x-api-key': 'ours' } };
    const sent = upstreamHeaders(
      ['Connection', 'Authorization, X-Api-Key', 'Authorization', 'Bearer a'],
      injected,
    );
    expect(valuesOf(sent, 'x-api-key')).toEqual(['ours']);
    expect(valuesOf(sent, 'authorization')).toEqual(['Bearer gateway']);
  });
});

describe('reading fields', () => {
  const fields = ['X-A', '1', 'x-a', '2', 'X-B', '', 'x-c', 'x-a'];

  test('values are found in any case and in order, and never among values', () => {
    expect(valuesOf(fields, 'x-a')).toEqual(['1', '2']);
    expect(valuesOf(fields, 'x-b')).toEqual(['']);
    expect(valuesOf(fields, '1')).toEqual([]);
    expect(valuesOf(['constructor', '1'], '__proto__')).toEqual([]);
  });

  test('a single value is one that stands alone', () => {
    expect(singleValue(fields, 'x-a')).toBeUndefined();
    expect(singleValue(fields, 'x-b')).toBe('');
    expect(singleValue(fields, 'x-d')).toBeUndefined();
  });

  test('a filter is given the name in lower case and keeps the spelling', () => {
    expect(filterHeaders(fields, (name) => name === 'x-a')).toEqual(['X-A', '1', 'x-a', '2']);
  });
});

describe('media types are compared parsed (RFC 9110 section 8.3.1)', () => {
  test.each([
    ['application/json', 'application/json'],
    ['Application/JSON; charset=UTF-8', 'application/json'],
    ['  text/event-stream ;q=0.5', 'text/event-stream'],
    ['application/json-seq', 'application/json-seq'],
    ['', ''],
    [undefined, ''],
  ])('%j is %j', (value, expected) => {
    expect(mediaType(value)).toBe(expected);
  });

  test('the type of a message with two is unknown', () => {
    expect(contentTypeOf(['Content-Type', 'application/json', 'content-type', 'application/json'])).toBe('');
    expect(contentTypeOf(['CONTENT-TYPE', 'Application/Json;x=y'])).toBe('application/json');
    expect(contentTypeOf([])).toBe('');
  });

  test.each([
    [['application/json, text/event-stream'], true],
    [['text/event-stream;q=0.1,application/json;q=1.0'], true],
    [['application/json', 'text/event-stream'], true],
    [['APPLICATION/JSON, Text/Event-Stream, */*'], true],
    [['application/json, text/event-stream; q=0.001'], true],
    [['application/json'], false],
    [['text/event-stream'], false],
    [['*/*'], false],
    [['application/*, text/*'], false],
    [['application/json, text/event-stream;q=0'], false],
    [['application/json;Q=0.000, text/event-stream'], false],
    [['application/json-seq, text/event-stream'], false],
    [[''], false],
    [[], false],
  ])('an Accept of %j names both: %s', (accept, expected) => {
    expect(acceptsBoth(accept.flatMap((value) => ['Accept', value]))).toBe(expected);
  });

  test.each([
    [['gzip'], ['gzip']],
    [['GZIP , br'], ['gzip', 'br']],
    [
      ['gzip', 'br'],
      ['gzip', 'br'],
    ],
    [['identity'], []],
    [['', 'Identity, deflate'], ['deflate']],
    [[], []],
  ])('content codings of %j are %j, in their order', (values, expected) => {
    expect(contentCodings(values.flatMap((value) => ['Content-Encoding', value]))).toEqual(expected);
  });
});
