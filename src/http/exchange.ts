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

/** What the log line tells; filled while the request is answered. */
export interface Summary {
  upstream?: string;
  method?: string;
  outcome?: Outcome;
  reason?: string;
  /** The beginning of the key's digest. */
  key?: string;
  pages?: number;
  error?: unknown;
}

export interface Exchange {
  readonly res: ServerResponse;
  /** The client's own fields. */
  readonly headers: RawHeaders;
  readonly summary: Summary;
  /** Aborts when the client has left, or the deadline passed. */
  readonly signal: AbortSignal;
  /** Sends under that signal; what has been answered is ended by the client's leaving alone. */
  untilAnswered<T>(send: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** From now on the exchange may take at most `ms` milliseconds, until the deadline is lifted. */
  setDeadline(ms: number): void;
  liftDeadline(): void;
}

export function beginExchange(
  req: IncomingMessage,
  res: ServerResponse,
  deps: { clock: Clock; log: Logger },
): Exchange {
  const { clock, log } = deps;
  const startedAt = clock.now();
  const left = new AbortController();
  const abort = new AbortController();
  const summary: Summary = {};
  let deadline = new AbortController();
  res.once('close', () => {
    deadline.abort();
    left.abort(new Error('the client has left'));
    abort.abort(left.signal.reason);
    const durationMs = Math.round((clock.now() - startedAt) * 1000) / 1000;
    const { error, ...told } = summary;
    const line = { ...told, status: res.statusCode, complete: res.writableFinished, durationMs };
    if (error === undefined) log.info(line, 'request');
    else log.warn({ ...line, err: error }, 'request');
  });
  return {
    res,
    headers: req.rawHeaders,
    summary,
    signal: abort.signal,
    async untilAnswered(send) {
      const own = new AbortController();
      const onLeft = () => own.abort(left.signal.reason);
      const onAbort = () => own.abort(abort.signal.reason);
      left.signal.addEventListener('abort', onLeft, { once: true });
      abort.signal.addEventListener('abort', onAbort, { once: true });
      if (abort.signal.aborted) onAbort();
      try {
        return await send(own.signal);
      } finally {
        abort.signal.removeEventListener('abort', onAbort);
      }
    },
    setDeadline(ms) {
      deadline = new AbortController();
      clock.sleep(ms, deadline.signal).then(
        () => abort.abort(new GatewayError('upstream-timeout')),
        () => {},
      );
    },
    liftDeadline: () => deadline.abort(),
  };
}
