/**
 * Owns: what the gateway tells a tracer of a request, and what it asks of one. Types only: without a tracer nothing is
 * begun, nothing is loaded and nothing is sent on that the client did not send.
 */
import type { RawHeaders } from './core/headers.js';

/** What is known of a request when it begins. */
export interface TracedRequest {
  readonly upstream: string;
  /** As MCP defines it, else `other`. */
  readonly method: string;
  readonly headers: RawHeaders;
  /** The values of `params._meta` that carry a trace context. */
  readonly meta: (name: string) => unknown;
}

export interface TracedEnd {
  readonly status: number;
  readonly outcome?: string | undefined;
  readonly reason?: string | undefined;
  readonly collapsed?: boolean | undefined;
  readonly pages?: number | undefined;
  /** The code of the gateway's own failure, or that the client left. */
  readonly failure?: string | undefined;
}

export interface RequestSpan {
  /** Begins one exchange with the upstream. */
  fetch(address: { readonly origin: string; readonly method: string }): FetchSpan;
  end(end: TracedEnd): void;
}

export interface FetchSpan {
  /** The fields of a request upstream, with this span as their trace context in place of the client's. */
  readonly headersFor: (headers: RawHeaders) => RawHeaders;
  /** `status` is that of the answer; absent: there was none. */
  end(status?: number): void;
}

export interface Tracer {
  begin(request: TracedRequest): RequestSpan;
  /** Sends what has not been sent yet; resolves in any case. */
  close(): Promise<void>;
}
