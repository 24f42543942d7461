/** Owns: one exchange with an upstream as a span of its own, where requests are traced. */
import type { RequestSpan } from '../tracing.js';
import type { Outgoing } from '../upstream/transport.js';

/**
 * Sends a request upstream within a span. It ends when `send` has resolved, with the status that `statusOf` reads off.
 * Rejects as `send` does.
 */
export async function traced<T>(
  span: RequestSpan | undefined,
  outgoing: Outgoing,
  send: (outgoing: Outgoing) => Promise<T>,
  statusOf: (answer: T) => number,
): Promise<T> {
  if (span === undefined) return send(outgoing);
  const own = span.fetch(outgoing);
  let status: number | undefined;
  try {
    const answer = await send({ ...outgoing, headers: own.headersFor(outgoing.headers) });
    status = statusOf(answer);
    return answer;
  } finally {
    own.end(status);
  }
}
