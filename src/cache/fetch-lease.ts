/**
 * Owns: one fetch for the fleet (design, law 27): a short lease in Redis on each key that is being fetched. Whoever
 * does not get it waits for word from the one who has it, within bounds; a holder that died is noticed when
 * its lease runs out. Without Redis everybody fetches.
 */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../clock.js';
import type { RedisLink } from './redis-link.js';
import { COMMAND_MS } from './redis-link.js';
import { HOLD, RELEASE } from './redis-scripts.js';

/** How long a lease outlives a holder that died, in milliseconds. */
export const FETCH_LEASE_MS = 1_500;
const RENEW_MS = 500;

/** `abandoned`: the holder gave up, since nobody there waited any more; somebody else is to fetch. */
export interface FetchedMessage {
  readonly kind: 'fetched' | 'abandoned';
  readonly lease: string;
}

/** `alone`: the lease could not be had in time, or at all; `waited`: whether another's fetch was waited for. */
export interface Entered {
  readonly role: 'holder' | 'alone' | 'waiter';
  readonly waited: boolean;
  /** To be called when the fetch has ended; others are told. */
  readonly leave: (how: FetchedMessage['kind']) => Promise<void>;
}

export interface FetchLeases {
  /** Resolves with `waiter` once the holder says that it has fetched. Rejects with the signal's reason. */
  enter(
    lease: string,
    options: { readonly patienceMs: number; readonly signal: AbortSignal },
  ): Promise<Entered>;
  /** Redis went away: nobody waits for word through it. */
  linkLost(): void;
  /** Redis answers again: gives up what could not be given up while it was away, before others wait for it. */
  catchUp(): Promise<void>;
  /** A holder, here or elsewhere, is done. */
  fetched(message: FetchedMessage): void;
}

export interface FetchLeasesDeps {
  readonly link: RedisLink;
  readonly clock: Clock;
  readonly channel: string;
}

export function createFetchLeases(deps: FetchLeasesDeps): FetchLeases {
  const { link, clock } = deps;
  const waiting = new Map<string, Set<(isFetched: boolean) => void>>();
  /** Leases that Redis was not told of, by their tokens; each runs out by itself, and is forgotten then. */
  const unreleased = new Map<string, { readonly message: FetchedMessage; readonly until: number }>();

  /** Rejects where Redis does not answer. It is asked though it be away: a link that is not trusted may well speak. */
  async function release(token: string, message: FetchedMessage): Promise<void> {
    await link.run(RELEASE, [message.lease], [token, deps.channel, JSON.stringify(message)], {
      ms: COMMAND_MS,
      evenIfAway: true,
    });
  }

  function oweRelease(token: string, message: FetchedMessage): void {
    const now = clock.now();
    for (const [old, { until }] of unreleased) {
      if (until >= now) break;
      unreleased.delete(old);
    }
    unreleased.set(token, { message, until: now + FETCH_LEASE_MS });
  }

  async function hold(lease: string, token: string): Promise<'mine' | 'taken' | 'unknown'> {
    const wasUp = link.isUp;
    const reply = await link.run(HOLD, [lease], [token, FETCH_LEASE_MS], {
      ms: COMMAND_MS,
      mayBeRefused: true,
    });
    if (!Buffer.isBuffer(reply)) {
      // It may have been taken all the same.
      if (wasUp) oweRelease(token, { kind: 'abandoned', lease });
      return 'unknown';
    }
    return reply.toString() === token ? 'mine' : 'taken';
  }

  function holder(lease: string, token: string, waited: boolean): Entered {
    const over = new AbortController();
    const renew = async () => {
      for (;;) {
        await clock.sleep(RENEW_MS, over.signal);
        await hold(lease, token);
      }
    };
    renew().catch(() => {});
    return {
      role: 'holder',
      waited,
      async leave(kind) {
        over.abort();
        const message: FetchedMessage = { kind, lease };
        await release(token, message).catch(() => oweRelease(token, message));
      },
    };
  }

  /** Resolves true when it was fetched, false if abandoned or after a while: then the lease is tried again. */
  async function word(lease: string, signal: AbortSignal): Promise<boolean> {
    const settled = new AbortController();
    const onAbort = () => settled.abort(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    let tell: (isFetched: boolean) => void = () => {};
    const told = new Promise<boolean>((resolve) => {
      tell = resolve;
    });
    const listeners = waiting.get(lease) ?? new Set();
    waiting.set(lease, listeners.add(tell));
    try {
      return await Promise.race([told, clock.sleep(RENEW_MS, settled.signal).then(() => false)]);
    } finally {
      signal.removeEventListener('abort', onAbort);
      settled.abort();
      listeners.delete(tell);
      if (listeners.size === 0) waiting.delete(lease);
    }
  }

  return {
    async enter(lease, { patienceMs, signal }) {
      const token = randomUUID();
      const until = clock.now() + patienceMs;
      for (let waited = false; ; waited = true) {
        // Listening begins before the lease is asked for, so that no word is missed in between.
        const listening = new AbortController();
        signal.addEventListener('abort', () => listening.abort(signal.reason), { once: true });
        const coming = word(lease, listening.signal);
        coming.catch(() => {});
        const held = await hold(lease, token);
        if (held === 'taken' && clock.now() < until) {
          if (await coming) return { role: 'waiter', waited: true, leave: async () => {} };
          continue;
        }
        listening.abort();
        return held === 'mine'
          ? holder(lease, token, waited)
          : { role: 'alone', waited, leave: async () => {} };
      }
    },

    linkLost() {
      for (const tells of waiting.values()) for (const tell of tells) tell(false);
    },

    async catchUp() {
      const now = clock.now();
      const owed = [...unreleased].filter(([, { until }]) => now < until);
      unreleased.clear();
      await Promise.all(owed.map(([token, { message }]) => release(token, message)));
    },

    fetched(message) {
      for (const tell of waiting.get(message.lease) ?? []) tell(message.kind === 'fetched');
    },
  };
}
