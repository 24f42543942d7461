/** One sequence on one gateway: does its steps, has each answer judged, and sees to it that every request is answered. */
import { singleValue } from '../../src/core/headers.js';
import { createEventScanner } from '../../src/core/sse.js';
import { rpcRequest } from '../support/client.js';
import { createTestClock, type TestClock } from '../support/clock.js';
import { rawHeaders } from '../support/core.js';
import { type Ask, createJournal } from './journal.js';
import { createOracle } from './oracle.js';
import { askedOf, createOrigin, flushOf, type Origin } from './origin.js';
import { type AskStep, type Program, type Settings, type Step, UPSTREAMS } from './program.js';
import type { Got, Rig } from './rig.js';

/** How often what happened in all sequences, so that a test can tell that they were not empty. */
export type Tally = Map<string, number>;

export interface RunDeps {
  readonly start: (deps: {
    readonly origin: Origin;
    readonly settings: Settings;
    readonly clock: TestClock;
    readonly onEvict: () => void;
  }) => Rig | Promise<Rig>;
  readonly tally: Tally;
}

/** All callers come over one connection, as from a proxy before the gateway: nothing of one may rub off on another. */
const POOLED = 'pooled';

/** How long the end of a sequence may take, in rounds of a second. */
const MAX_ROUNDS = 120;

/** Throws where a law is broken. */
export async function run({ settings, plans, steps }: Program, { start, tally }: RunDeps): Promise<void> {
  const clock = createTestClock();
  const journal = createJournal(clock.now);
  const oracle = createOracle(journal, settings);
  const origin = createOrigin(journal, settings, plans);
  const broken: string[] = [];
  const lastCursors = new Map<string, string>();
  const open: { ask: Ask; leave(): void }[] = [];
  const rig = await start({
    origin,
    settings,
    clock,
    onEvict: () => {
      count('evicted');
      for (const upstream of UPSTREAMS) journal.void(upstream);
    },
  });

  function count(what: string): void {
    tally.set(what, (tally.get(what) ?? 0) + 1);
  }

  function cursorFor({ cursor }: AskStep, whose: string): string | undefined {
    switch (cursor) {
      case 'none':
        return undefined;
      case 'own':
        return lastCursors.get(whose);
      case 'any':
        return [...lastCursors.values()].at(-1);
      case 'bogus':
        return 'bogus"\\é';
      default:
        return cursor satisfies never;
    }
  }

  /** The fields and the body of an ask; ids are of every kind. */
  function requestOf(step: AskStep, cursor: string | undefined) {
    const { method, era, variant, caller, session, uri } = step;
    const n = journal.asks.length;
    const params = { ...(method === 'resources/read' && { uri }), ...(cursor !== undefined && { cursor }) };
    const { headers, body } = rpcRequest(method, {
      era,
      params,
      id: n % 3 === 0 ? n : n % 3 === 1 ? -n : `é"${n}`,
      meta: {
        ...(variant === 'progress' && { progressToken: n }),
        ...(variant === 'capabilities' && { 'io.modelcontextprotocol/clientCapabilities': { roots: {} } }),
      },
      headers: {
        ...(caller !== 'nobody' && { authorization: `Bearer ${caller}` }),
        ...(era === 'legacy' && session !== undefined && { 'mcp-session-id': session }),
        ...(variant === 'vary' && { 'x-vary': 'b' }),
      },
    });
    return { headers: rawHeaders(headers), body, query: variant === 'query' ? '?q=1' : '' };
  }

  function doAsk(step: AskStep): void {
    const first = requestOf(step, undefined);
    const { upstream } = step;
    const { key, context } = askedOf({
      upstream,
      path: first.query,
      headers: first.headers,
      body: first.body,
    });
    const whose = `${key} ${context}`;
    const cursor = step.method.endsWith('/list') ? cursorFor(step, whose) : undefined;
    const { headers, body, query } = requestOf(step, cursor);
    const asked = askedOf({ upstream, path: query, headers, body });
    const ask: Ask = { asked, began: journal.moment(), left: false, ended: false };
    journal.asks.push(ask);
    let text = '';
    let hasAskedAgain = false;
    const sent = rig.send(
      {
        ...{ upstream, query, headers, body, connection: POOLED },
        onText(part) {
          text += part;
          if (!step.again || hasAskedAgain || !part.includes('/list_changed"')) return;
          hasAskedAgain = true;
          doAsk({ ...step, cursor: 'none', again: false });
        },
      },
      (got) => {
        ask.ended = true;
        open.splice(
          open.findIndex((one) => one.ask === ask),
          1,
        );
        if (!ask.left) onAnswer(ask, got, text, whose);
      },
    );
    open.push({ ask, leave: sent.leave });
  }

  function onAnswer(ask: Ask, got: Got, text: string, whose: string): void {
    const cacheStatus = singleValue(got.headers, 'cache-status') ?? '';
    const isStream = singleValue(got.headers, 'content-type') === 'text/event-stream';
    const message = isStream ? messageIn(text, ask.asked.id) : text;
    count(kindOf(cacheStatus));
    const answer = { ...{ ask, cacheStatus, message }, ...got, at: journal.moment() };
    const law = oracle.judge(answer);
    if (law !== undefined) broken.push(`law ${law}: ${JSON.stringify(answer)}`);
    const cursor = got.complete ? JSON.parse(message).result?.nextCursor : undefined;
    if (typeof cursor === 'string') lastCursors.set(whose, cursor);
  }

  async function doStep(step: Step): Promise<void> {
    switch (step.do) {
      case 'ask':
        doAsk(step);
        break;
      case 'release':
        origin.release(step.which);
        break;
      case 'pass':
        await pass(step.ms);
        break;
      case 'change':
      case 'flush': {
        const { upstream } = step;
        const told = step.do === 'flush' ? undefined : flushOf(upstream, step.notice, settings);
        if (step.do === 'change') await rig.change(upstream, step.notice);
        else await rig.flush(upstream);
        const flush =
          step.do === 'flush' ? { upstreams: [upstream], uri: undefined, context: undefined } : told;
        if (flush === undefined) break;
        journal.flushes.push({ ...journal.moment(), ...flush, certain: true });
        for (const name of flush.upstreams) journal.void(name);
        break;
      }
      case 'call': {
        const { upstream, caller, again, notice } = step;
        const again_ = again ? lastAsk(steps, step) : undefined;
        call({
          upstream,
          caller,
          notice,
          onTold: () => again_ !== undefined && doAsk({ ...again_, cursor: 'none' }),
        });
        break;
      }
      case 'leave': {
        const left = open[step.which % Math.max(1, open.length)];
        if (left === undefined) break;
        left.ask.left = true;
        left.leave();
        break;
      }
      default:
        step satisfies never;
    }
    await settle();
  }

  /** A call of a tool, whose stream tells of a change before its result. */
  function call({
    upstream,
    caller,
    notice,
    onTold,
  }: Pick<AskStep, 'upstream' | 'caller'> & { notice: string; onTold: () => void }): void {
    const { headers, body } = rpcRequest('tools/call', {
      params: { name: 't', arguments: { notice } },
      id: `call-${journal.asks.length}`,
      headers: caller === 'nobody' ? {} : { authorization: `Bearer ${caller}` },
    });
    const asked = askedOf({ upstream, path: '', headers: rawHeaders(headers), body });
    const ask: Ask = { asked, began: journal.moment(), left: false, ended: false };
    journal.asks.push(ask);
    let isTold = false;
    rig.send(
      {
        ...{ upstream, query: '', headers: rawHeaders(headers), body, connection: POOLED },
        onText(part) {
          if (isTold || !part.includes('/list_changed"')) return;
          isTold = true;
          onTold();
        },
      },
      () => {
        ask.ended = true;
      },
    );
  }

  async function settle(): Promise<void> {
    noteSlow();
    await rig.settle();
    noteSlow();
    journal.settled();
  }

  function noteSlow(): void {
    const { now } = journal.moment();
    for (const { asked, arrived, headed, ended } of journal.exchanges) {
      // An upstream that gives no sign for two seconds counts as one that fails, where something stale is at hand.
      if (headed === undefined && ended === undefined && now - arrived.now >= 2_000)
        journal.failures.push({ key: asked.key, at: now, until: now + 30_000 });
    }
  }

  /** Time passes, from one who wakes to the next. */
  async function pass(ms: number): Promise<void> {
    const until = clock.now() + ms;
    for (let next = clock.nextAt; next !== undefined && next <= until; next = clock.nextAt) {
      clock.advance(Math.max(0, next - clock.now()));
      await settle();
    }
    clock.advance(until - clock.now());
    await settle();
  }

  try {
    for (const step of steps) {
      await doStep(step);
      if (broken.length > 0) break;
    }
    for (let round = 0; open.length > 0 && round < MAX_ROUNDS; round += 1) {
      while (origin.release(0)) await settle();
      if (open.length > 0) await pass(1_000);
    }
    await settle();
    const calls = oracle.judgeCalls();
    if (calls !== undefined) broken.push(`law ${calls}`);
  } finally {
    await rig.close();
  }
  if (broken.length > 0) throw new Error(broken.join('\n'));
}

/** What was asked last before a step, to be asked again upon a change. */
function lastAsk(steps: readonly Step[], before: Step): AskStep | undefined {
  return steps.slice(0, steps.indexOf(before)).findLast((step) => step.do === 'ask');
}

/** The message of an event stream that answers the request. */
function messageIn(text: string, id: unknown): string {
  const events = createEventScanner({ maxDataBytes: 1_000_000 }).feed(Buffer.from(text));
  return events.map(({ data }) => data.toString('utf8')).findLast((data) => JSON.parse(data).id === id) ?? '';
}

/** What a `Cache-Status` says, without times. */
function kindOf(cacheStatus: string): string {
  return cacheStatus.replace('mcp-cache-gateway; ', '').replace(/; ttl=\d+/, '');
}
