import { describe, expect, test } from 'vitest';
import { ERRORS, type ErrorCode, GatewayError } from '../src/errors.js';

const CODES = Object.entries(ERRORS);
const isCode = (word: string): word is ErrorCode => word in ERRORS;
const errorOf = (word: string, options?: ConstructorParameters<typeof GatewayError>[1]) => {
  if (!isCode(word)) throw new Error(`no such code: ${word}`);
  return new GatewayError(word, options);
};

describe('errors that the gateway answers with words of its own', () => {
  test.each(CODES)('%s has a status of its source, and a sentence', (_code, { source, status, sentence }) => {
    expect(status).toBeGreaterThanOrEqual(source === 'client' ? 400 : 500);
    expect(status).toBeLessThan(source === 'client' ? 500 : 600);
    expect(sentence).toMatch(/^[A-Z][^.]*\.$/);
  });

  test.each(CODES.filter(([code]) => code !== 'header-mismatch'))(
    '%s has a JSON-RPC code outside the range that JSON-RPC and MCP reserve',
    (_code, { rpcCode }) => {
      expect(rpcCode < -32768 || rpcCode > -32000).toBe(true);
    },
  );

  test('a contradicting header is 400 and -32020 (law 2)', () => {
    const error = new GatewayError('header-mismatch');
    expect(error.status).toBe(400);
    expect(JSON.parse(error.toBody('7'))).toMatchObject({ jsonrpc: '2.0', id: 7, error: { code: -32020 } });
  });

  test.each<[ErrorCode, number]>([
    ['body-too-large', 413],
    ['not-found', 404],
    ['method-not-allowed', 405],
    ['origin-not-allowed', 403],
    ['host-not-allowed', 403],
    ['upstream-unreachable', 502],
    ['upstream-timeout', 504],
  ])('%s is answered with %d', (code, status) => {
    expect(new GatewayError(code).status).toBe(status);
  });
});

describe('what a client is told', () => {
  test.each(CODES)('%s: the fixed sentence and never the cause', (code, { rpcCode, sentence }) => {
    const error = errorOf(code, { cause: new Error('connect ECONNREFUSED 10.0.0.1:80 Bearer s3cret') });
    expect(JSON.parse(error.toBody())).toEqual({
      jsonrpc: '2.0',
      error: { code: rpcCode, message: sentence },
    });
    expect(error.message).toBe(sentence);
    expect(error.cause).toBeInstanceOf(Error);
  });

  test('a detail stands behind the sentence', () => {
    const error = new GatewayError('body-too-large', { detail: 'At most 4194304 bytes are taken.' });
    expect(JSON.parse(error.toBody()).error.message).toBe(
      'The request body is too large. At most 4194304 bytes are taken.',
    );
  });

  test.each(['1', '"1"', '""', '-5', '9007199254740993', '"\\u00ff"', 'null'])(
    'the id %s comes back as it stood (C35)',
    (idRaw) => {
      expect(new GatewayError('internal').toBody(idRaw)).toContain(`"id":${idRaw},`);
    },
  );

  test('an unknown id is left out', () => {
    expect(new GatewayError('internal').toBody()).not.toContain('"id"');
  });
});
