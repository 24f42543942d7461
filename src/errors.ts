/**
 * Owns: every failure that the gateway answers with words of its own. A client gets the code and a fixed
 * sentence, the log gets the cause. The JSON-RPC codes lie outside the range that JSON-RPC and MCP reserve
 * (basic/index, Error Codes), so that none can be mistaken for an error of the upstream; `header-mismatch`
 * alone is MCP's own.
 */
import { ERROR_CODE } from './core/protocol.js';

interface ErrorKind {
  readonly source: 'client' | 'upstream' | 'gateway';
  readonly status: number;
  readonly rpcCode: number;
  readonly sentence: string;
}

export const ERRORS = {
  'header-mismatch': {
    source: 'client',
    status: 400,
    rpcCode: ERROR_CODE.headerMismatch,
    sentence: 'A header contradicts the request body.',
  },
  'body-too-large': {
    source: 'client',
    status: 413,
    rpcCode: 413,
    sentence: 'The request body is too large.',
  },
  'bad-request': { source: 'client', status: 400, rpcCode: 400, sentence: 'The request could not be read.' },
  'not-found': { source: 'client', status: 404, rpcCode: 404, sentence: 'There is no such path.' },
  'method-not-allowed': {
    source: 'client',
    status: 405,
    rpcCode: 405,
    sentence: 'The path does not have this method.',
  },
  'origin-not-allowed': {
    source: 'client',
    status: 403,
    rpcCode: 403,
    sentence: 'This origin is not allowed.',
  },
  'host-not-allowed': {
    source: 'client',
    status: 403,
    rpcCode: 403,
    sentence: 'This host name is not allowed.',
  },
  'upstream-unreachable': {
    source: 'upstream',
    status: 502,
    rpcCode: 502,
    sentence: 'The upstream server could not be reached, or broke off its answer.',
  },
  'upstream-timeout': {
    source: 'upstream',
    status: 504,
    rpcCode: 504,
    sentence: 'The upstream server did not answer in time.',
  },
  internal: { source: 'gateway', status: 500, rpcCode: 500, sentence: 'The gateway failed.' },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof ERRORS;

export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly code: ErrorCode;

  /** `detail` is added to the fixed sentence; it must hold nothing that a client or upstream sent as a secret. */
  constructor(code: ErrorCode, options: { readonly cause?: unknown; readonly detail?: string } = {}) {
    super(`${ERRORS[code].sentence}${options.detail === undefined ? '' : ` ${options.detail}`}`, {
      cause: options.cause,
    });
    this.code = code;
  }

  get status(): number {
    return ERRORS[this.code].status;
  }

  /** The JSON-RPC error response; `idRaw` is the request's id as it was sent, absent where it is unknown. */
  toBody(idRaw?: string): string {
    const error = JSON.stringify({ code: ERRORS[this.code].rpcCode, message: this.message });
    return `{"jsonrpc":"2.0",${idRaw === undefined ? '' : `"id":${idRaw},`}"error":${error}}`;
  }
}
