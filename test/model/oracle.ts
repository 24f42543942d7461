/**
 * The laws of the design, as far as one answer can be held against them. It knows what was asked, what the origin sent
 * and when changes took effect; of the gateway it knows nothing but its answers.
 */
import type { Answer, Asked, Exchange, Flush, Journal, Page } from './journal.js';
import { type Settings, TIMEOUT_MS, VERIFIED_TTL_MS } from './program.js';

export interface Oracle {
  /** Which law the answer breaks; undefined where none. */
  judge(answer: Answer): string | undefined;
  /** The same of the requests that the origin got, once all is over. */
  judgeCalls(): string | undefined;
}

/** What an answer shows: pages in the order of their cursors, and the part of their items that it holds. */
interface Shown {
  readonly pages: readonly [Page, ...Page[]];
  readonly flat: readonly string[];
  readonly offset: number;
  readonly count: number;
}

// biome-ignore lint/suspicious/noExplicitAny: a JSON-RPC message of any kind
type Message = any;

export function createOracle(journal: Journal, settings: Settings): Oracle {
  /** Law 5. */
  function lifetimeMs({ ttlMs }: Page): number {
    const value: unknown = ttlMs === undefined ? settings.defaultTtlMs : JSON.parse(ttlMs);
    const whole = typeof value === 'number' && Number.isFinite(value) ? Math.max(0, Math.trunc(value)) : 0;
    return Math.min(Math.max(whole, settings.minTtlMs), settings.maxTtlMs);
  }

  /** Law 7. */
  function isPublic({ ttlMs, scope }: Page): boolean {
    if (settings.scope === 'private') return false;
    if (scope !== undefined) return scope === '"public"';
    const sent = ttlMs === undefined ? undefined : JSON.parse(ttlMs);
    const isTheServers =
      ttlMs !== undefined && (Number.isFinite(sent) ? Math.max(0, Math.trunc(sent)) : 0) >= settings.minTtlMs;
    return settings.scope === 'public' || (isTheServers && settings.defaultScope === 'public');
  }

  /** Law 6. */
  const expiresAt = ({ pages }: Shown) =>
    Math.min(...pages.map((page) => page.received.now + lifetimeMs(page)));
  const isShared = ({ pages }: Shown) => pages.every(isPublic);
  const isOwn = ({ pages: [first] }: Shown, { asked }: Answer['ask']) => first.asked.id === asked.id;

  /** Laws 18 to 20: whether something that took effect before the answer, or before it was asked for, made a page untrue. */
  function isUntrue(shown: Shown, { ask, at }: Answer): boolean {
    const hits = (flush: Flush, page: Page) => {
      if (!flush.certain || !flush.upstreams.includes(page.asked.upstream)) return false;
      // What a server gave to a request of its own it gave knowing whose that was.
      if (flush.context !== undefined)
        return (
          !isOwn(shown, ask) &&
          page.received.seq < flush.seq &&
          flush.context === page.asked.context &&
          !isShared(shown)
        );
      return page.of.seq < flush.seq && (flush.uri === undefined || flush.uri === page.asked.uri);
    };
    return journal.flushes.some(
      (flush) =>
        (flush.step < at.step || flush.seq < ask.began.seq) && shown.pages.some((page) => hits(flush, page)),
    );
  }

  /** Laws 7 and 8, and PUBLIC_SHARING. */
  function isForbidden(shown: Shown, { ask, at }: Answer): boolean {
    if (isOwn(shown, ask)) return false;
    const { context, credentials, upstream } = ask.asked;
    if (!isShared(shown)) return shown.pages.some((page) => page.asked.context !== context);
    const acceptedAt = journal.accepted.get(`${upstream} ${credentials}`) ?? Number.NEGATIVE_INFINITY;
    return settings.sharing === 'verified' && at.now >= acceptedAt + VERIFIED_TTL_MS;
  }

  /** Law 17: whether the upstream failed for the key a short while ago. */
  const hasFailed = (key: string, now: number) =>
    journal.failures.some((failure) => failure.key === key && failure.at <= now && now <= failure.until);

  const flushedBetween = (upstream: Asked['upstream'], from: number, to: number) =>
    journal.flushes.filter(
      ({ seq, upstreams, uri, context }) =>
        upstreams.includes(upstream) && uri === undefined && context === undefined && from < seq && seq < to,
    ).length;

  /** What an entry that answers must obey. */
  function brokenBy(shown: Shown, answer: Answer, { result }: Message): string | undefined {
    const { ask, at, message, cacheStatus } = answer;
    const { pages, flat, offset, count } = shown;
    const [first] = pages;
    const own = isOwn(shown, ask);
    const cut = journal.cursors.get(ask.asked.cursor ?? '');
    const untilMs = expiresAt(shown) - at.now;
    const { ttlMs, cacheScope, nextCursor } = result;
    const texts = flat.slice(offset, offset + count).map((place) => {
      const [serial, n] = place.split(':').map(Number);
      return journal.pages[serial ?? -1]?.items[n ?? -1];
    });
    const isWalkedOn = cut !== undefined;
    const mayBeStale =
      ttlMs !== undefined && ttlMs > 0
        ? false
        : -untilMs < settings.staleIfErrorMs && hasFailed(ask.asked.key, at.now);
    const isOvertaken = own && flushedBetween(ask.asked.upstream, ask.began.seq, at.seq) > 0;
    const rules: readonly (readonly [string, boolean])[] = [
      ['3: of another key', pages.some((page) => page.asked.key !== ask.asked.key)],
      ['3: of another cursor', !isWalkedOn && first.asked.cursor !== ask.asked.cursor],
      ['7: for another context', isForbidden(shown, answer)],
      [
        '12: not the bytes that were sent',
        !message.includes(`${first.lead}"${first.itemsField}":[${texts.join()}]`),
      ],
      ['6: past its lifetime', !own && !isWalkedOn && untilMs <= 0 && !mayBeStale],
      ['12: ttlMs above what remains', ttlMs !== undefined && ttlMs > Math.max(0, untilMs)],
      ['12: ttlMs 0 on a hit', ttlMs === 0 && untilMs > 0 && !isOvertaken],
      [
        '20: from before a flush',
        (!own || ttlMs > 0 || cacheStatus.includes('stored')) && isUntrue(shown, answer),
      ],
      ['7: another scope told', cacheScope !== undefined && (cacheScope === 'public') !== isShared(shown)],
      [
        '12: hints that were not sent',
        ask.asked.legacy &&
          ((ttlMs !== undefined && first.ttlMs === undefined) ||
            (cacheScope !== undefined && first.scope === undefined)),
      ],
      ['12: no hints', !ask.asked.legacy && (ttlMs === undefined || cacheScope === undefined)],
      ['13: a walk that breaks off', nextCursor === undefined && offset + count < flat.length],
      [
        '13: the cursor of another',
        isWalkedOn && (cut.asked.context !== ask.asked.context || cut.asked.key !== ask.asked.key),
      ],
    ];
    return rules.find(([, isBroken]) => isBroken)?.[0];
  }

  /** The ways from a page along its cursors to the end, or the page by itself. */
  function ways(from: Page, nextCursor: unknown): (readonly [Page, ...Page[]])[] {
    if (from.next === undefined || from.next === nextCursor) return [[from]];
    const behind = journal.pages.filter(
      ({ serial, asked }) =>
        serial > from.serial &&
        asked.cursor === from.next &&
        asked.key === from.asked.key &&
        asked.context === from.asked.context,
    );
    return behind.flatMap((page) => ways(page, undefined).map((rest) => [from, ...rest] as const));
  }

  function showings(answer: Answer, { result }: Message): Shown[] {
    const first = journal.pages[result?.stamp];
    if (first === undefined) return [];
    const items: readonly { s: number; n: number }[] = result[first.itemsField] ?? [];
    const shown = items.map(({ s, n }) => `${s}:${n}`);
    const cut = journal.cursors.get(answer.ask.asked.cursor ?? '');
    const offset = cut?.offset ?? 0;
    return ways(first, result.nextCursor)
      .map((pages) => ({ pages, flat: pages.flatMap(flatOf), offset, count: shown.length }))
      .filter(({ flat }) => flat.slice(offset, offset + shown.length).join() === shown.join());
  }

  const exchangesOf = ({ asked }: Answer['ask']) =>
    journal.exchanges.filter((one) => one.asked.id === asked.id && one.asked.upstream === asked.upstream);

  function judge(answer: Answer): string | undefined {
    const { ask, message, complete } = answer;
    const own = exchangesOf(ask);
    const calls = tooManyCalls(answer, own);
    if (calls !== undefined) return calls;
    if (!complete)
      return own.some(({ page, sent }) => page === undefined || sent === undefined)
        ? undefined
        : 'broken off';
    const reply = parse(message);
    if (reply === undefined) return 'no message';
    if (reply.id !== ask.asked.id) return '14: not its own id';
    const relayed = own.find(({ sent }) => sent === message);
    if (relayed !== undefined) return judgeRelayed(answer, relayed);
    if (reply.error !== undefined) return judgeError(answer, reply, own);
    const all = showings(answer, reply);
    if (all.length === 0) return '12: not every item of every page, in order';
    const verdicts = all.map((shown) => brokenBy(shown, answer, reply));
    const good = all[verdicts.indexOf(undefined)];
    if (good === undefined) return verdicts[0];
    return note(answer, good, reply.result.nextCursor);
  }

  /** What went out as it came: law 10 lets it bear the hints that it came with, unless it is kept. */
  function judgeRelayed(answer: Answer, exchange: Exchange): string | undefined {
    if (exchange.failed && expected(answer, settings.staleIfErrorMs) !== undefined)
      return '17: a failure though a stale entry is kept';
    if (exchange.page === undefined) return undefined;
    const pages = [exchange.page] as const;
    const flat = flatOf(exchange.page);
    const shown = { pages, flat, offset: 0, count: flat.length };
    if (answer.cacheStatus.includes('stored') && isUntrue(shown, answer))
      return '20: stored from before a flush';
    if (exchange.page.next !== undefined && !answer.cacheStatus.includes('stored'))
      journal.troubled.add(answer.ask.asked.key);
    return note(answer, shown, exchange.page.next);
  }

  function judgeError(
    { ask, at, status }: Answer,
    { error }: Message,
    own: readonly Exchange[],
  ): string | undefined {
    const { cursor, context, key } = ask.asked;
    const cut = journal.cursors.get(cursor ?? '');
    if (cut !== undefined && error.code === -32602) {
      const until = journal.walkable.get(cursor ?? '')?.until ?? 0;
      return at.now < until && cut.asked.context === context && cut.asked.key === key
        ? '13: a cursor refused'
        : undefined;
    }
    if (status === 502 && own.some(({ failed }) => failed)) return undefined;
    const slow = own.some(({ arrived, ended }) => (ended?.now ?? at.now) - arrived.now >= TIMEOUT_MS / 2);
    return status === 504 && slow ? undefined : `an error of its own: ${status}`;
  }

  /** What the gateway must have, by its own word, less than `pastMs` past its lifetime. */
  const expected = ({ ask: { asked, began } }: Answer, pastMs: number) =>
    journal.claims.find(
      (claim) =>
        claim.since.seq < began.seq &&
        asked.cursor === undefined &&
        claim.asked.key === asked.key &&
        began.now < claim.until + pastMs &&
        (claim.asked.context === asked.context
          ? !claim.isPublic || settings.sharing === 'any'
          : claim.isPublic && settings.sharing === 'any'),
    );

  /** Never more calls than without the gateway: its own request once, and again for each flush (law 11). */
  function tooManyCalls(answer: Answer, own: readonly Exchange[]): string | undefined {
    const { ask, at } = answer;
    if (own.length > 0 && expected(answer, 0) !== undefined) return '14: fetched though it is fresh';
    const flushes = flushedBetween(ask.asked.upstream, ask.began.seq, at.seq);
    const isWalk = own.some(({ page }) => page?.next !== undefined);
    const isCursorLost =
      isWalk &&
      journal.exchanges.some(
        ({ asked, page, ended }) =>
          isWalks(asked) && asked.key === ask.asked.key && ended !== undefined && page === undefined,
      );
    const allowed = 1 + Math.min(isWalk ? 3 : 1, flushes) + (isCursorLost ? 1 : 0);
    return own.length > allowed ? `11: asked ${own.length} times` : undefined;
  }

  /** Takes the gateway at its word for what it says that it keeps, and expects it to keep what it should (laws 4 and 9). */
  function note(answer: Answer, shown: Shown, nextCursor: unknown): string | undefined {
    const { ask, at, cacheStatus } = answer;
    const { asked } = ask;
    const { pages, flat, offset, count } = shown;
    const [first] = pages;
    if (cacheStatus.includes('superseded')) journal.troubled.add(asked.key);
    if (typeof nextCursor === 'string' && nextCursor.startsWith('mcg.')) {
      journal.cursors.set(nextCursor, { asked, flat, offset: offset + count });
      const until = settings.sharing === 'any' ? expiresAt(shown) : 0;
      journal.walkable.set(nextCursor, { upstream: asked.upstream, until });
    }
    const isQuiet =
      !journal.troubled.has(asked.key) &&
      !journal.exchanges.some(
        ({ asked: { key }, ended, gone }) => key === asked.key && ended === undefined && !gone,
      );
    if (
      !isOwn(shown, ask) ||
      asked.cursor !== undefined ||
      (first.next === nextCursor && nextCursor !== undefined)
    )
      return undefined;
    const wasFlushed = journal.flushes.some(
      ({ seq, upstreams }) => upstreams.includes(asked.upstream) && first.of.seq < seq,
    );
    const wasStored = cacheStatus.includes('stored');
    // The head went out with the messages before the answer, when nothing was known of it yet.
    const isUntold = cacheStatus.endsWith('; fwd=miss');
    // Whoever's fetch of the same was overtaken by a flush once too often, the key is marked for all (law 11).
    const isMarked =
      cacheStatus.includes('detail=uncacheable') &&
      journal.flushes.some(({ upstreams }) => upstreams.includes(asked.upstream));
    if (isQuiet && !wasFlushed && wasStored)
      journal.claims.push({ asked, isPublic: isShared(shown), since: at, until: expiresAt(shown) });
    const isKeepable =
      pages.every((page) => lifetimeMs(page) > 0) &&
      pages.length <= settings.maxPages &&
      flat.length <= settings.maxItems;
    return isQuiet &&
      isKeepable &&
      !wasFlushed &&
      !wasStored &&
      !isUntold &&
      !isMarked &&
      !journal.failures.some(({ key }) => key === asked.key)
      ? '9: not stored'
      : undefined;
  }

  function judgeCalls(): string | undefined {
    const walked = new Set<string>();
    for (const { asked } of journal.exchanges) {
      if (!isWalks(asked)) {
        if (!journal.asks.some((ask) => ask.asked.id === asked.id)) return 'a request of nobody';
        continue;
      }
      const step = JSON.stringify([asked.upstream, asked.cursor]);
      if (walked.has(step)) return '9: a cursor followed twice';
      walked.add(step);
    }
    const open = journal.asks.find(({ ended, left }) => !ended && !left);
    return open === undefined ? undefined : `no answer to ${JSON.stringify(open.asked)}`;
  }

  return { judge, judgeCalls };
}

function isWalks({ id }: Asked): boolean {
  return typeof id === 'string' && id.startsWith('mcp-cache-gateway-');
}

function flatOf({ serial, items }: Page): string[] {
  return items.map((_, n) => `${serial}:${n}`);
}

function parse(text: string): Message {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
