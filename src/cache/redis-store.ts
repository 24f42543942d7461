/**
 * Owns: the shared tier on Redis or Valkey (design, laws 18–20, 25, 26). The generation is part of every key, so
 * what a flush overtakes lies where nobody looks, and expires by itself. It answers "unavailable" rather than
 * wait or fail; only a flush or a drop that did not reach Redis is told, since somebody must make up for it.
 */
import { randomInt } from 'node:crypto';
import type { Clock } from '../clock.js';
import type { Entry } from '../core/snapshot.js';
import { digestOf, type UpstreamKeys } from './redis-keys.js';
import { COMMAND_MS, FLUSH_MS, type RedisLink } from './redis-link.js';
import { DROP, FLUSH, LOOK, REFRESH, WRITE } from './redis-scripts.js';
import { decodeEntry, encodeEntry } from './redis-value.js';
import { type Drop, type SharedStamp, type Stamp, type Store, StoreUnavailableError } from './store.js';

/** Drops that a fetch still under way may meet. */
const REMEMBERED_DROPS = 1024;
/** An entry that names more resources than this is not shared: its indexes would cost more than it saves. */
const MAX_SHARED_URIS = 256;

/** What replicas tell each other of changes. */
export type ChangeMessage =
  | { readonly kind: 'flush'; readonly tag: string; readonly by: string; readonly generation: string }
  | { readonly kind: 'drop'; readonly tag: string; readonly by: string; readonly what: Drop };

export interface RedisStoreDeps {
  readonly link: RedisLink;
  readonly clock: Clock;
  readonly keysOf: (upstream: string) => UpstreamKeys;
  readonly channel: string;
  /** This process's own name in messages. */
  readonly instance: string;
  /** How long entries are kept past their lifetime, for stale answers, in milliseconds. */
  readonly keepPastExpiryMs: number;
  readonly maxEntryBytes: number;
  /** The generation is another than was known: what was kept elsewhere under the old one is not to be trusted. */
  readonly onMoved: (upstream: string) => void;
  /** A value was there that is none: foreign, corrupt, or of another version. */
  readonly onStrangeValue: (upstream: string) => void;
}

export interface RedisStore extends Store {
  /** What was last known of the shared generation. */
  known(upstream: string): SharedStamp | undefined;
  /** Takes note of a generation that a message told of. */
  learn(upstream: string, generation: string): void;
  /** Asks for the generation though the link is away; part of catching up. Rejects where Redis does not answer. */
  refresh(upstream: string): Promise<void>;
  /** Flushes though the link is away; part of catching up. */
  catchUpFlush(upstream: string): Promise<void>;
}

export function createRedisStore(deps: RedisStoreDeps): RedisStore {
  const { link, clock } = deps;
  const knownStamps = new Map<string, SharedStamp>();
  /** Redis's clock, as it was at an instant of ours. */
  let clockPair = { redisMs: 0, at: 0 };

  const newStart = () => String(randomInt(2 ** 40, 2 ** 44));

  function learn(upstream: string, generation: string, drops?: number): void {
    const before = knownStamps.get(upstream);
    knownStamps.set(upstream, { generation, drops: drops ?? before?.drops ?? 0 });
    if (before?.generation !== generation) deps.onMoved(upstream);
  }

  async function ask(
    upstream: string,
    keys: readonly string[],
    evenIfAway = false,
  ): Promise<SharedLook | undefined> {
    const names = deps.keysOf(upstream);
    const before = knownStamps.get(upstream)?.generation;
    const askedAt = clock.now();
    const reply = await link.run(
      evenIfAway ? REFRESH : LOOK,
      [names.generation, names.drops],
      [newStart(), names.entryPrefix, ...keys.map(digestOf)],
      { ms: COMMAND_MS, evenIfAway, mayBeRefused: true },
    );
    const look = readLook(reply, keys, askedAt);
    // Where a flush was refused meanwhile, what came is what it should have made unusable.
    if (look === undefined || !(link.isUp || evenIfAway)) return undefined;
    clockPair = { redisMs: look.redisMs, at: clock.now() };
    // A flush that became known while this was on its way is newer than what it brought.
    if (knownStamps.get(upstream)?.generation !== before)
      return { ...look, entries: keys.map(() => undefined) };
    learn(upstream, look.stamp.generation, look.stamp.drops);
    if (look.strange > 0) deps.onStrangeValue(upstream);
    return look;
  }

  async function flush(upstream: string, evenIfAway: boolean): Promise<void> {
    const names = deps.keysOf(upstream);
    const message = JSON.stringify({
      kind: 'flush',
      tag: names.tag,
      by: deps.instance,
      generation: '\u0000',
    });
    const [before = '', after = ''] = message.split('\\u0000');
    const reply = await link.run(FLUSH, [names.generation], [newStart(), deps.channel, before, after], {
      ms: FLUSH_MS,
      evenIfAway,
    });
    if (reply === undefined) throw new StoreUnavailableError('the flush did not reach Redis');
    const drops = knownStamps.get(upstream)?.drops ?? 0;
    if (Buffer.isBuffer(reply)) knownStamps.set(upstream, { generation: reply.toString(), drops });
    else knownStamps.delete(upstream);
  }

  return {
    /** Nothing of Redis is at hand. */
    peek: () => undefined,
    known: (upstream) => knownStamps.get(upstream),
    learn: (upstream, generation) => learn(upstream, generation),
    async refresh(upstream) {
      const before = knownStamps.get(upstream);
      const look = await ask(upstream, [], true);
      if (look === undefined) throw new StoreUnavailableError('no generation');
      // A drop that was not heard of: which one is not known.
      if (before !== undefined && look.stamp.drops !== before.drops) deps.onMoved(upstream);
    },
    catchUpFlush: (upstream) => flush(upstream, true),

    async look(upstream, keys) {
      const look = await ask(upstream, keys);
      if (look === undefined) return { entries: keys.map(() => undefined), stamp: NO_STAMP };
      return { entries: look.entries, stamp: { ...NO_STAMP, shared: look.stamp } };
    },

    async stamp(upstream) {
      const look = await ask(upstream, []);
      return look === undefined ? NO_STAMP : { ...NO_STAMP, shared: look.stamp };
    },

    isCurrent: (upstream, stamp) =>
      stamp.shared !== undefined && knownStamps.get(upstream)?.generation === stamp.shared.generation,

    async write(upstream, key, entry, stamp) {
      if (entry.body.length > deps.maxEntryBytes) return 'too-large';
      if (stamp.shared === undefined || entry.uris.length > MAX_SHARED_URIS) return 'unavailable';
      const names = deps.keysOf(upstream);
      const now = clock.now();
      const digest = digestOf(key);
      const { value, keepMs } = encodeEntry(entry, digest, now, deps.keepPastExpiryMs);
      if (keepMs < 1) return 'unavailable';
      const reply = await link.run(
        WRITE,
        [names.generation, names.drops, names.dropLog],
        [
          stamp.shared.generation,
          stamp.shared.drops,
          Math.floor(clockPair.redisMs + (now - clockPair.at)),
          keepMs,
          names.entryPrefix,
          digest,
          value,
          names.indexPrefix,
          indexesOf(entry).join(' '),
          entry.uris.map(digestOf).join(' '),
          REMEMBERED_DROPS,
        ],
        { ms: COMMAND_MS, mayBeRefused: true, mayTakeLonger: true },
      );
      if (reply === 1) return 'stored';
      // Another generation than that of the stamp: the word of the flush has yet to come.
      if (Buffer.isBuffer(reply)) learn(upstream, reply.toString());
      return reply === 0 || Buffer.isBuffer(reply) ? 'superseded' : 'unavailable';
    },

    async flush(upstream, _reach) {
      await flush(upstream, false);
      return 0;
    },

    async drop(upstream, what) {
      // Only a tier that holds the entries' bytes at hand can look into them; it names the keys.
      if (what.kind === 'showing') return 0;
      const names = deps.keysOf(upstream);
      const message: ChangeMessage = { kind: 'drop', tag: names.tag, by: deps.instance, what };
      const reply = await link.run(
        DROP,
        [names.generation, names.drops, names.dropLog],
        [
          names.indexPrefix,
          names.entryPrefix,
          indexOfDrop(what),
          what.kind === 'resource' ? digestOf(what.uri) : '',
          REMEMBERED_DROPS,
          deps.channel,
          JSON.stringify(message),
          newStart(),
          ...(what.kind === 'keys' ? what.keys.map(digestOf) : []),
        ],
        { ms: FLUSH_MS },
      );
      if (typeof reply !== 'number') throw new StoreUnavailableError('the drop did not reach Redis');
      return reply;
    },
  };
}

const NO_STAMP: Stamp = { generation: 0, drops: 0 };

interface SharedLook {
  readonly stamp: SharedStamp;
  readonly redisMs: number;
  readonly entries: readonly (Entry | undefined)[];
  /** How many values were there that are none. */
  readonly strange: number;
}

function readLook(reply: unknown, keys: readonly string[], askedAt: number): SharedLook | undefined {
  if (!Array.isArray(reply)) return undefined;
  const [generation, drops, redisMs, ...rest]: unknown[] = reply;
  if (!Buffer.isBuffer(generation) || typeof drops !== 'number' || typeof redisMs !== 'number')
    return undefined;
  let strange = 0;
  const entries = keys.map((key, i) => {
    const value = rest[2 * i];
    const leftMs = rest[2 * i + 1];
    if (!Buffer.isBuffer(value) || typeof leftMs !== 'number') return undefined;
    const entry = decodeEntry(value, digestOf(key), { leftMs, askedAt });
    if (entry === undefined) strange += 1;
    return entry;
  });
  return { stamp: { generation: generation.toString(), drops }, redisMs, entries, strange };
}

/** The names of the indexes in which an entry stands: by resource, and by context where it is private. */
function indexesOf(entry: Entry): string[] {
  const names = entry.uris.map((uri) => `resource-${digestOf(uri)}`);
  return entry.scope === 'private' ? [...names, `context-${entry.authContext}`] : names;
}

function indexOfDrop(what: Drop): string {
  if (what.kind === 'resource') return `resource-${digestOf(what.uri)}`;
  return what.kind === 'context' ? `context-${what.authContext}` : '';
}
