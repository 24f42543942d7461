/**
 * Owns: the end of a listener: it takes no more connections, lets the answers under way go out, and then closes
 * every connection. Left to themselves, node:http and Fastify would at once cut off a client that is slow to
 * read an answer whose last byte was written, and wait for a connection on which nothing was ever asked.
 */
import { setMaxListeners } from 'node:events';
import type { ServerResponse } from 'node:http';
import { Server } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Clock } from '../clock.js';

/** When event streams are to be ended, so that their clients see an end and not a broken connection. */
export interface Ending {
  /** Aborts when the listener begins to end: for streams that would go on for ever. */
  readonly begun: AbortSignal;
  /** Aborts when time is nearly up: for streams that still bring an answer. */
  readonly timeUp: AbortSignal;
}

export interface Drain extends Ending {
  /** Takes note of an answer to come; what it gives back is to be called when that has ended. */
  track(res: ServerResponse): (res: ServerResponse) => void;
  /** Takes note of all that `listener` answers from now on; call it before the listener listens. */
  guard(listener: FastifyInstance): void;
  /** Resolves when the listener has ended; what lasts longer than `graceMs` milliseconds is cut off. */
  end(graceMs: number): Promise<void>;
}

/** What streams that are ended are given to say so, in milliseconds out of the grace. */
const LAST_WORDS_MS = 250;

export function createDrain(clock: Clock): Drain {
  let guarded: FastifyInstance | undefined;
  const open = new Set<ServerResponse>();
  const begun = new AbortController();
  const timeUp = new AbortController();
  const drained = new AbortController();
  setMaxListeners(0, begun.signal, timeUp.signal);

  function endIfDrained(): void {
    if (begun.signal.aborted && open.size === 0) drained.abort();
  }

  function untrack(res: ServerResponse): void {
    open.delete(res);
    endIfDrained();
  }

  function track(res: ServerResponse): typeof untrack {
    open.add(res);
    if (begun.signal.aborted) res.shouldKeepAlive = false;
    return untrack;
  }

  return {
    track,
    guard(listener) {
      guarded = listener;
      listener.addHook('onRequest', (_request, { raw: res }, done) => {
        track(res);
        res.on('close', () => untrack(res));
        done();
      });
    },
    begun: begun.signal,
    timeUp: timeUp.signal,
    async end(graceMs) {
      // Not the method of node:http, which also closes connections.
      if (guarded !== undefined) Server.prototype.close.call(guarded.server);
      for (const res of open) res.shouldKeepAlive = false;
      begun.abort();
      endIfDrained();
      const lastWordsMs = Math.min(LAST_WORDS_MS, graceMs / 2);
      // What ends a sleep early is that there is nothing left to wait for.
      await clock.sleep(graceMs - lastWordsMs, drained.signal).catch(() => {});
      timeUp.abort();
      await clock.sleep(lastWordsMs, drained.signal).catch(() => {});
      guarded?.server.closeAllConnections();
      await guarded?.close();
    },
  };
}
