/**
 * Owns: the end of a listener: it takes no more connections, lets the answers under way go out, and then closes
 * every connection. Left to themselves, node:http and Fastify would at once cut off a client that is slow to
 * read an answer whose last byte was written, and wait for a connection on which nothing was ever asked.
 */
import type { ServerResponse } from 'node:http';
import { Server } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Clock } from '../clock.js';

/** Resolves when the listener has ended; what lasts longer than `graceMs` is cut off. */
export type Drain = (graceMs: number) => Promise<void>;

/** Takes note of all answers from now on; call it before the listener listens. */
export function createDrain(listener: FastifyInstance, clock: Clock): Drain {
  const open = new Set<ServerResponse>();
  const drained = new AbortController();
  let isDraining = false;

  function endIfDrained(): void {
    if (isDraining && open.size === 0) drained.abort();
  }

  listener.addHook('onRequest', (_request, { raw: res }, done) => {
    open.add(res);
    if (isDraining) res.shouldKeepAlive = false;
    res.once('close', () => {
      open.delete(res);
      endIfDrained();
    });
    done();
  });

  return async (graceMs) => {
    isDraining = true;
    // Not the method of node:http, which also closes connections.
    Server.prototype.close.call(listener.server);
    for (const res of open) res.shouldKeepAlive = false;
    endIfDrained();
    // What ends the sleep early is that there is nothing left to wait for.
    await clock.sleep(graceMs, drained.signal).catch(() => {});
    listener.server.closeAllConnections();
    await listener.close();
  };
}
