/**
 * Owns: the gateway's standing subscription to one upstream's changes: which era it speaks, when to try again,
 * and the flush when it stands, since what was missed before is unknown (design, law 21). It never gives up,
 * and never hammers.
 */
import type { Clock } from '../clock.js';
import { type Change, changesIn } from '../core/change.js';
import type { Era } from '../core/protocol.js';
import { GatewayError } from '../errors.js';
import type { Transport } from './transport.js';
import { closeSession, type SessionSlot, watchLegacy } from './watch-legacy.js';
import { type AttemptContext, type AttemptEnd, watchModern } from './watch-modern.js';
import { createWire, type WatchTarget } from './watch-wire.js';

export const WATCH_STATES = ['connecting', 'connected', 'waiting', 'refused', 'stopped'] as const;
export type WatchState = (typeof WATCH_STATES)[number];

/** Waits between attempts, in milliseconds: after a loss from the first to the second, doubling; after a refusal the third. */
export const FIRST_BACKOFF_MS = 1_000;
export const MAX_BACKOFF_MS = 30_000;
export const REFUSED_RETRY_MS = 300_000;
/** A stream that lasted this long without trouble ends the doubling. */
const STEADY_MS = 10_000;
/** So many streams in a row that end as soon as they stand are taken for a refusal. */
const MAX_SHORT_STREAMS = 5;
const SHORT_STREAM_MS = 2_000;
const SESSION_CLOSE_MS = 1_000;

export interface StateInfo {
  readonly era?: Era;
  readonly cause?: unknown;
  readonly status?: number;
  readonly code?: number | undefined;
  /** Why the watch does not stand, in a few words that hold nothing of what the upstream said. */
  readonly reason?: string;
}

export interface WatchDeps {
  readonly target: WatchTarget;
  readonly transport: Transport;
  readonly clock: Clock;
  /** A number from 0 up to, and without, 1. */
  readonly random: () => number;
  readonly clientInfo: { readonly name: string; readonly version: string };
  /** The watch stands, for the first time or again after a gap; awaited before anything that it brings. */
  readonly onConnected: (info: {
    readonly isGap: boolean;
    readonly watched: readonly string[];
  }) => Promise<void>;
  readonly onChange: (change: Change) => Promise<void>;
  readonly onState: (state: WatchState, info: StateInfo) => void;
}

export interface Watch {
  start(): void;
  /** Resolves when the first attempt has come to stand, or has failed. */
  readonly settled: Promise<void>;
  readonly state: WatchState;
  stop(): Promise<void>;
}

export function createWatch(deps: WatchDeps): Watch {
  const { clock, target } = deps;
  const wire = createWire(target, deps.transport);
  const stopping = new AbortController();
  let state: WatchState = 'connecting';
  let era: Era = 'modern';
  const slot: SessionSlot = { current: undefined };
  let hasStood = false;
  let attempts = 0;
  let settle: () => void = () => {};
  const settled = new Promise<void>((resolve) => {
    settle = resolve;
  });
  let running: Promise<void> = Promise.resolve();

  function enter(next: WatchState, info: StateInfo = {}): void {
    state = next;
    deps.onState(next, next === 'connected' ? { era, ...info } : info);
  }

  async function run(): Promise<void> {
    let failures = 0;
    let shortStreams = 0;
    while (!stopping.signal.aborted) {
      const attempt = await attemptOnce();
      settle();
      if (stopping.signal.aborted) return;
      const isShort =
        attempt.stoodMs !== undefined && attempt.stoodMs < SHORT_STREAM_MS && !attempt.sawChange;
      shortStreams = isShort ? shortStreams + 1 : 0;
      if (attempt.stoodMs !== undefined && attempt.stoodMs >= STEADY_MS) failures = 0;
      const isRefusal = attempt.end.kind === 'refused' || shortStreams >= MAX_SHORT_STREAMS;
      enter(isRefusal ? 'refused' : 'waiting', infoOf(attempt.end));
      const jitter = 1 + deps.random() / 4;
      // At the ceiling the jitter goes downwards: what was lost at once is not to come back at once, for ever.
      const backoffMs = Math.min(MAX_BACKOFF_MS / jitter, FIRST_BACKOFF_MS * 2 ** failures * jitter);
      failures = isRefusal ? 0 : failures + 1;
      await clock.sleep(isRefusal ? REFUSED_RETRY_MS * jitter : backoffMs, stopping.signal);
      enter('connecting');
    }
  }

  interface Attempt {
    readonly end: AttemptEnd;
    /** How long the stream stood; absent where it never did. */
    readonly stoodMs?: number;
    readonly sawChange: boolean;
  }

  async function attemptOnce(): Promise<Attempt> {
    const exchange = new AbortController();
    const abort = () => exchange.abort(stopping.signal.reason);
    stopping.signal.addEventListener('abort', abort, { once: true });
    let stoodAt: number | undefined;
    let sawChange = false;
    const context: AttemptContext = {
      wire,
      clientInfo: deps.clientInfo,
      signal: exchange.signal,
      headTimer: () => startTimer(exchange),
      handlers: {
        connected: async (watched) => {
          stoodAt = clock.now();
          await deps.onConnected({ isGap: hasStood, watched });
          hasStood = true;
          enter('connected');
          settle();
        },
        message: async (data) => {
          for (const change of changesIn(data)) {
            sawChange = true;
            await deps.onChange(change);
          }
        },
      },
    };
    const stood = () => (stoodAt === undefined ? {} : { stoodMs: clock.now() - stoodAt });
    try {
      const end = await speak(context);
      return { end, sawChange, ...stood() };
    } catch (cause) {
      return { end: { kind: 'lost', cause }, sawChange, ...stood() };
    } finally {
      stopping.signal.removeEventListener('abort', abort);
      exchange.abort();
    }
  }

  function startTimer(exchange: AbortController): () => void {
    return clock.timer(target.timeoutMs, () => exchange.abort(new GatewayError('upstream-timeout')));
  }

  /** Speaks the era that the upstream was last known for; an upstream may be replaced by one of the other. */
  async function speak(context: AttemptContext): Promise<AttemptEnd> {
    attempts += 1;
    const id = `mcp-cache-gateway-watch-${attempts}`;
    if (era === 'modern') {
      const end = await watchModern(context, id);
      if (end.kind !== 'other-era') return end;
      era = 'legacy';
    }
    const end = await watchLegacy(context, id, slot);
    if (end.kind === 'refused') era = 'modern';
    return end;
  }

  async function stop(): Promise<void> {
    stopping.abort();
    await running;
    const { current: session } = slot;
    if (session !== undefined) {
      await closeSession({ wire, signal: AbortSignal.timeout(SESSION_CLOSE_MS) }, session).catch(() => {});
    }
    enter('stopped');
  }

  return {
    settled,
    get state() {
      return state;
    },
    start() {
      running = run().catch(() => {});
    },
    stop,
  };
}

function infoOf(end: AttemptEnd): StateInfo {
  switch (end.kind) {
    case 'refused': {
      const { status, code } = end;
      const isAboutCredentials = status === 401 || status === 403;
      return {
        status,
        code,
        reason: code === undefined || isAboutCredentials ? `status ${status}` : `error ${code}`,
      };
    }
    case 'lost':
      return { cause: end.cause, reason: reasonOfLoss(end.cause) };
    case 'other-era':
      return {};
    default:
      return end satisfies never;
  }
}

function reasonOfLoss(cause: unknown): string {
  if (cause === undefined) return 'its stream ended';
  if (typeof cause === 'string') return cause;
  return cause instanceof GatewayError ? cause.code : 'the connection broke';
}
