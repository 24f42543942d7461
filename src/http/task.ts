/**
 * Owns: the shapes that the parts of one request share: the upstream it goes to, what was asked, and what those
 * who answer it are given. Types only.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Changes } from '../cache/changes.js';
import type { EndedSessions } from '../cache/ended-sessions.js';
import type { ListCache } from '../cache/list-cache.js';
import type { Verified } from '../cache/verified.js';
import type { Clock } from '../clock.js';
import type { FreshnessPolicy } from '../core/freshness.js';
import type { InjectedHeaders } from '../core/headers.js';
import type { RpcMessage } from '../core/message.js';
import type { PublicNames } from '../core/resource-metadata.js';
import type { Logger } from '../telemetry.js';
import type { Tracer } from '../tracing.js';
import type { PageSource } from '../upstream/page-source.js';
import type { Outgoing, Transport } from '../upstream/transport.js';
import type { Ending } from './drain.js';
import type { ExchangeDeps } from './exchange.js';

/** One upstream as the routes know it. */
export interface UpstreamRoute {
  readonly name: string;
  readonly url: string;
  readonly origin: string;
  /** Path and query, as configured. */
  readonly path: string;
  readonly injected: InjectedHeaders;
  readonly policy: FreshnessPolicy;
  readonly timeoutMs: number;
  /** Present: challenges and metadata name this gateway (OAUTH_METADATA=rewrite). */
  readonly names: PublicNames | undefined;
}

/** `failed`: without an answer, or nobody waited for it any more. */
export type FetchEnding = 'answered' | 'failed';

export interface ServeDeps {
  readonly listCache: ListCache;
  readonly changes: Changes;
  readonly verified: Verified;
  readonly endedSessions: EndedSessions;
  readonly transport: Transport;
  readonly pageSource: PageSource;
  readonly clock: Clock;
  readonly log: Logger;
  readonly lines: ExchangeDeps['lines'];
  readonly ending: Ending;
  /** Absent: nothing is traced. */
  readonly tracer: Tracer | undefined;
  readonly onEnd: ExchangeDeps['onEnd'];
  /** Told of each fetch of a page or result at its end, with or without an answer. */
  readonly onFetched: (upstream: string, durationMs: number, end: FetchEnding) => void;
  readonly authHeaders: readonly string[];
  readonly varyHeaders: readonly string[];
}

/** One request as it came. */
export interface ServeInput {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly body: Buffer | undefined;
  readonly upstream: UpstreamRoute;
}

/** What a client asked of an upstream. */
export interface Task {
  readonly upstream: UpstreamRoute;
  readonly outgoing: Outgoing;
  /** The client's own query string. */
  readonly query: string;
  /** Absent where the request is no POST, and so no message. */
  readonly message: RpcMessage | undefined;
}
