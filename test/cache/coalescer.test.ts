import { describe, expect, test } from 'vitest';
import {
  type Coalescer,
  createCoalescer,
  type Flight,
  type FlightControl,
} from '../../src/cache/coalescer.js';
import { createTestClock, type TestClock } from '../support/clock.js';

const NEVER = new AbortController().signal;

interface Held {
  readonly clock: TestClock;
  readonly coalescer: Coalescer<string>;
  readonly flight: Flight<string>;
  readonly control: FlightControl;
  /** Ends the fetch, well or badly. */
  end(how: 'resolve' | 'reject'): void;
}

/** A coalescer, and a flight under the key `k` whose fetch a test ends. */
function startHeld(): Held {
  const clock = createTestClock();
  const coalescer = createCoalescer<string>(clock);
  const begun: Pick<Held, 'control' | 'end'>[] = [];
  const flight = coalescer.start(
    'k',
    (control) =>
      new Promise((resolve, reject) => {
        begun.push({ control, end: (how) => (how === 'resolve' ? resolve('v') : reject(new Error('no'))) });
      }),
  );
  const [fetch] = begun;
  if (fetch === undefined) throw new Error('the fetch did not begin');
  return { clock, coalescer, flight, ...fetch };
}

/** Lets everything run that waits for nothing but promises. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** How a wait ended, or that it lasts. */
const stateOf = async (wait: Promise<unknown>) => Promise.race([wait, settle().then(() => 'waits')]);

describe('law 16: a fetch can be joined while it is under way', () => {
  test.each(['resolve', 'reject'] as const)('under its key, until it ends (%s)', async (how) => {
    const { coalescer, flight, end } = startHeld();
    expect(coalescer.find('k')).toBe(flight);
    expect(coalescer.find('other')).toBeUndefined();
    expect(coalescer.size).toBe(1);
    end(how);
    await settle();
    expect(coalescer.find('k')).toBeUndefined();
    expect(coalescer.size).toBe(0);
  });

  test('without a key by nobody', () => {
    const coalescer = createCoalescer<string>(createTestClock());
    coalescer.start(undefined, () => new Promise(() => {}));
    expect(coalescer.size).toBe(0);
  });

  test('the end of one does not hide a later one under the same key', async () => {
    const { coalescer, end } = startHeld();
    const later = coalescer.start('k', () => new Promise(() => {}));
    end('resolve');
    await settle();
    expect(coalescer.find('k')).toBe(later);
  });

  test.each(['resolve', 'reject'] as const)('all who wait are told that it is over (%s)', async (how) => {
    const { control, flight, clock, end } = startHeld();
    const waits = [flight.wait({}, NEVER), flight.wait({ sinceProgressMs: 5, untilHeadMs: 5 }, NEVER)];
    end(how);
    expect(await Promise.all(waits)).toEqual(['done', 'done']);
    expect(control.signal.aborted).toBe(false);
    // Nobody sleeps on for a fetch that is over.
    expect(clock.sleepers).toBe(0);
  });
});

describe('law 16: who leaves does not end the fetch for the others', () => {
  test('it ends when the last one leaves', async () => {
    const { control, flight } = startHeld();
    const first = new AbortController();
    const second = new AbortController();
    const firstEnd = expect(flight.wait({}, first.signal)).rejects.toThrow('first left');
    const secondEnd = expect(flight.wait({}, second.signal)).rejects.toThrow('second left');
    first.abort(new Error('first left'));
    await firstEnd;
    expect(control.signal.aborted).toBe(false);
    second.abort(new Error('second left'));
    await secondEnd;
    expect(control.signal.aborted).toBe(true);
  });

  test('who has left already does not keep it going', async () => {
    const { control, flight } = startHeld();
    await expect(flight.wait({}, AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
    expect(control.signal.aborted).toBe(true);
  });

  test.each([true, false])(
    'the last one to run out of patience ends it, unless it is to go on (%s)',
    async (goOn) => {
      const { clock, control, flight } = startHeld();
      const wait = flight.wait({ untilHeadMs: 100, goOn }, NEVER);
      clock.advance(100);
      expect(await wait).toBe('impatient');
      expect(control.signal.aborted).toBe(!goOn);
    },
  );

  test('one that goes on alone ends after all when whoever took it up again leaves', async () => {
    const { clock, control, flight } = startHeld();
    const impatient = flight.wait({ untilHeadMs: 100, goOn: true }, NEVER);
    clock.advance(100);
    await impatient;
    const leaving = new AbortController();
    const again = expect(flight.wait({ goOn: false }, leaving.signal)).rejects.toThrow('left');
    leaving.abort(new Error('left'));
    await again;
    expect(control.signal.aborted).toBe(true);
  });
});

describe('law 16: a wait is bounded', () => {
  test('by the time since the last page', async () => {
    const { clock, control, flight } = startHeld();
    const wait = flight.wait({ sinceProgressMs: 100 }, NEVER);
    for (const _page of [1, 2]) {
      clock.advance(99);
      control.progressed();
      await settle();
    }
    clock.advance(99);
    expect(await stateOf(wait)).toBe('waits');
    clock.advance(1);
    expect(await wait).toBe('impatient');
  });

  test('by a time in all, whatever comes', async () => {
    const { clock, control, flight } = startHeld();
    const wait = flight.wait({ sinceProgressMs: 100, atMostMs: 150 }, NEVER);
    clock.advance(99);
    control.progressed();
    await settle();
    clock.advance(50);
    expect(await stateOf(wait)).toBe('waits');
    clock.advance(1);
    expect(await wait).toBe('impatient');
  });

  test('who comes when nothing has come for too long does not wait at all', async () => {
    const { clock, flight } = startHeld();
    const leader = flight.wait({}, NEVER);
    clock.advance(100);
    expect(await flight.wait({ sinceProgressMs: 100 }, NEVER)).toBe('impatient');
    expect(clock.sleepers).toBe(0);
    expect(await stateOf(leader)).toBe('waits');
  });

  test('by the time until the head, counted from the beginning of the fetch', async () => {
    const { clock, flight } = startHeld();
    const first = flight.wait({ untilHeadMs: 2_000 }, NEVER);
    clock.advance(1_500);
    const second = flight.wait({ untilHeadMs: 2_000 }, NEVER);
    clock.advance(499);
    expect(await stateOf(Promise.race([first, second]))).toBe('waits');
    clock.advance(1);
    expect(await Promise.all([first, second])).toEqual(['impatient', 'impatient']);
  });

  test('not by the time until the head once that has come', async () => {
    const { clock, control, flight, end } = startHeld();
    const early = flight.wait({ untilHeadMs: 2_000 }, NEVER);
    control.sawHead();
    const late = flight.wait({ untilHeadMs: 2_000 }, NEVER);
    clock.advance(10_000);
    await settle();
    expect(await stateOf(Promise.race([early, late]))).toBe('waits');
    end('resolve');
    expect(await Promise.all([early, late])).toEqual(['done', 'done']);
  });
});
