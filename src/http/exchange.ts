/**
 * Owns: one request of a client while it is answered: what aborts it, how long it may take, and the one log
 * line at its end. The line holds no value, no token and no cursor.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../clock.js';
import type { RawHeaders } from '../core/headers.js';
import type { Outcome } from '../core/reasons.js';
import { GatewayError } from '../errors.js';
import type { Logger } from '../telemetry.js';
import type { RequestSpan, TracedEnd } from '../tracing.js';

/** What the log line tells; filled while the request is answered. */
export interface Summary {
  upstream?: string;
  method?: string;
  outcome?: Outcome;
  reason?: string;
  /** The beginning of the key's digest. */
  key?: string;
  pages?: number;
  /** Whether another's fetch answered. */
  collapsed?: boolean;
  error?: unknown;
}

export interface Exchange {
  readonly res: ServerResponse;
  /** The client's own fields. */
  readonly headers: RawHeaders;
  readonly summary: Summary;
  /** Aborts when the client has left, or the deadline passed. */
  readonly signal: AbortSignal;
  /** Present where requests are traced, once it is known what was asked. */
  span: RequestSpan | undefined;
  /** From now on the exchange may take at most `ms` milliseconds, until the deadline is lifted. */
  setDeadline(ms: number): void;
  liftDeadline(): void;
}

export interface ExchangeDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** For lines that hold nothing but the gateway's own words. */
  readonly lines: Logger;
  /** Told of each request at its end. */
  readonly onEnd: (summary: Summary, durationMs: number) => void;
}

/** Why an exchange ends with its answer's connection; made once, since every request ends so. */
const LEFT = new Error('the client has left');

export function beginExchange(req: IncomingMessage, res: ServerResponse, deps: ExchangeDeps): Exchange {
  const { clock } = deps;
  const startedAt = clock.now();
  const abort = new AbortController();
  const summary: Summary = {};
  let liftDeadline = () => {};
  res.once('close', () => {
    liftDeadline();
    abort.abort(LEFT);
    exchange.span?.end(tracedEnd(summary, res));
    tellEnd(res, summary, startedAt, deps);
  });
  const exchange: Exchange = {
    res,
    headers: req.rawHeaders,
    summary,
    span: undefined,
    signal: abort.signal,
    setDeadline(ms) {
      liftDeadline();
      liftDeadline = clock.timer(ms, () => abort.abort(new GatewayError('upstream-timeout')));
    },
    liftDeadline: () => liftDeadline(),
  };
  return exchange;
}

/** Tells the log and the counters of an answer that has ended. */
function tellEnd(res: ServerResponse, summary: Summary, startedAt: number, deps: ExchangeDeps): void {
  const durationMs = durationSince(startedAt, deps);
  deps.onEnd(summary, durationMs);
  const { error, ...told } = summary;
  const line = { ...told, status: res.statusCode, complete: res.writableFinished, durationMs };
  if (error === undefined) deps.lines.info(line, 'request');
  else deps.log.warn({ ...line, err: error }, 'request');
}

/** What all hits of one request have in common, and where their lines are written; it has told that already. */
export interface HitTold {
  readonly upstream: string;
  readonly method: string;
  readonly log: Logger;
}

/** Tells the log and the counters of a hit that has ended. */
export function tellHit(
  res: ServerResponse,
  { upstream, method, log }: HitTold,
  hit: { readonly pages: number; readonly startedAt: number },
  deps: Pick<ExchangeDeps, 'clock' | 'onEnd'>,
): void {
  const { pages } = hit;
  const durationMs = durationSince(hit.startedAt, deps);
  deps.onEnd({ upstream, method, outcome: 'hit', pages }, durationMs);
  log.info({ pages, status: res.statusCode, complete: res.writableFinished, durationMs }, 'request');
}

/** In milliseconds, to the microsecond. */
function durationSince(startedAt: number, { clock }: Pick<ExchangeDeps, 'clock'>): number {
  return Math.round((clock.now() - startedAt) * 1000) / 1000;
}

function tracedEnd({ outcome, reason, collapsed, pages, error }: Summary, res: ServerResponse): TracedEnd {
  const failed = error instanceof GatewayError ? error.code : error === undefined ? undefined : 'broken-off';
  const failure = res.writableFinished ? failed : (failed ?? 'client-left');
  return { status: res.statusCode, outcome, reason, collapsed, pages, failure };
}
