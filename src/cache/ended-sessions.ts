/**
 * Owns: which legacy sessions are over: their requests go to the upstream, which refuses them, even where all may
 * share what is cached (2025-11-25 basic/transports, Session Management). Keeps digests alone, and a bounded number.
 */
import { createBounded } from './bounded.js';

const MAX_SESSIONS = 10_000;

export interface EndedSessions {
  /** Notes what an answer tells of the session in this authorization context. */
  observe(upstream: string, authContext: () => string, state: 'ended' | 'alive'): void;
  has(upstream: string, authContext: string): boolean;
}

export function createEndedSessions(): EndedSessions {
  const ended = createBounded<true>(MAX_SESSIONS);
  const keyOf = (upstream: string, authContext: string) => `${upstream} ${authContext}`;
  return {
    observe(upstream, authContext, state) {
      if (state === 'ended') ended.set(keyOf(upstream, authContext()), true);
      else if (ended.size > 0) ended.delete(keyOf(upstream, authContext()));
    },
    has: (upstream, authContext) => ended.size > 0 && ended.has(keyOf(upstream, authContext)),
  };
}
