/**
 * What can happen to a gateway: random sequences of requests, answers, changes, faults and time, small enough in each
 * choice that they meet one another often.
 */
import fc from 'fast-check';

/** What an operator sets; both upstreams of a sequence have the same. */
export interface Settings {
  readonly defaultTtlMs: number;
  readonly minTtlMs: number;
  readonly maxTtlMs: number;
  readonly defaultScope: 'public' | 'private';
  readonly scope: 'auto' | 'public' | 'private';
  readonly staleIfErrorMs: number;
  readonly pageSize: number;
  readonly maxPages: number;
  readonly maxItems: number;
  readonly cacheBytes: number;
  readonly flushesAll: boolean;
  readonly sharing: 'any' | 'verified';
}

export const VERIFIED_TTL_MS = 20_000;
export const TIMEOUT_MS = 30_000;
export const UPSTREAMS = ['u', 'v'] as const;
export type UpstreamName = (typeof UPSTREAMS)[number];

/** What a change says; `other` is a notification that means nothing to the gateway. */
export type Notice = 'tools' | 'prompts' | 'resources' | 'updated-a' | 'updated-b' | 'other';

/** One answer of the origin to a request of a cacheable method. */
export interface Plan {
  readonly kind:
    | 'page'
    | 'rpc-error'
    | 'invalid-params'
    | 'refused'
    | 'not-found'
    | 'failed'
    | 'input-required'
    | 'unexpected'
    | 'reset'
    | 'cut';
  /** The hints as they stand in the answer; absent: not sent. */
  readonly ttlMs: string | undefined;
  readonly scope: string | undefined;
  readonly items: number;
  /** The cursor behind the page. */
  readonly next: 'none' | 'null' | 'more' | 'same';
  readonly as: 'json' | 'events';
  /** A change told on the stream of the answer, if that is a stream. */
  readonly notice: Notice | undefined;
  readonly place: 'before' | 'after' | 'long-after';
  /** What the origin waits with until it is released: nothing, the head, or the body. */
  readonly holds: 'nothing' | 'head' | 'body';
  /** Whether what it says is of the moment at which it was asked, or answers. */
  readonly of: 'arrival' | 'release';
}

export interface AskStep {
  readonly do: 'ask';
  readonly upstream: UpstreamName;
  readonly method: string;
  readonly uri: 'file:///a' | 'file:///b';
  readonly caller: 'nobody' | 'ann' | 'bob';
  readonly era: 'modern' | 'legacy';
  readonly session: 's1' | 's2' | undefined;
  /** What else can make a request another one; the last says nothing. */
  readonly variant: 'plain' | 'vary' | 'query' | 'capabilities' | 'progress';
  readonly cursor: 'none' | 'own' | 'any' | 'bogus';
  /** Whether the client asks again as soon as it is told of a change. */
  readonly again: boolean;
}

export type Step =
  | AskStep
  | { readonly do: 'release'; readonly which: number }
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'change'; readonly upstream: UpstreamName; readonly notice: Notice }
  | {
      readonly do: 'call';
      readonly upstream: UpstreamName;
      readonly caller: AskStep['caller'];
      readonly notice: Notice;
      readonly again: boolean;
    }
  | { readonly do: 'flush'; readonly upstream: UpstreamName }
  | { readonly do: 'leave'; readonly which: number };

export interface Program {
  readonly settings: Settings;
  /** The origin's answers, in the order in which it is asked; then only good pages. */
  readonly plans: readonly Plan[];
  readonly steps: readonly Step[];
}

const usually = <T>(value: T, ...others: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof(
    { weight: 3 * others.length, arbitrary: fc.constant(value) },
    { weight: others.length, arbitrary: fc.constantFrom(...others) },
  );

const settings: fc.Arbitrary<Settings> = fc.record({
  defaultTtlMs: usually(0, 5_000),
  minTtlMs: usually(0, 2_000),
  maxTtlMs: usually(86_400_000, 3_000),
  defaultScope: usually<'public' | 'private'>('public', 'private'),
  scope: usually<Settings['scope']>('auto', 'public', 'private'),
  staleIfErrorMs: usually(300_000, 0, 4_000),
  pageSize: usually(0, 2),
  maxPages: usually(1_000, 2),
  maxItems: usually(100_000, 4),
  cacheBytes: usually(1_000_000, 6_000),
  flushesAll: usually<boolean>(false, true),
  sharing: usually<'any' | 'verified'>('any', 'verified'),
});

const notice: fc.Arbitrary<Notice> = fc.constantFrom(
  'tools',
  'prompts',
  'resources',
  'updated-a',
  'updated-b',
  'other',
);

const plan: fc.Arbitrary<Plan> = fc.record({
  kind: fc.oneof(
    { weight: 14, arbitrary: fc.constant<Plan['kind']>('page') },
    {
      weight: 6,
      arbitrary: fc.constantFrom<Plan['kind'][]>(
        'failed',
        'reset',
        'cut',
        'failed',
        'rpc-error',
        'invalid-params',
        'refused',
        'not-found',
        'input-required',
        'unexpected',
      ),
    },
  ),
  ttlMs: usually<string | undefined>(
    '5000',
    '1000',
    '60000',
    '1500.7',
    '0',
    '-1',
    'null',
    '1e999',
    undefined,
  ),
  scope: fc.constantFrom('"public"', '"public"', '"private"', '"private"', '"shared"', undefined),
  items: fc.integer({ min: 0, max: 3 }),
  next: usually<Plan['next']>('none', 'more', 'more', 'null', 'same'),
  as: fc.constantFrom('json', 'events'),
  notice: usually<Notice | undefined>(undefined, 'tools', 'resources', 'updated-a'),
  place: fc.constantFrom('before', 'after', 'long-after'),
  holds: usually<Plan['holds']>('nothing', 'head', 'head', 'body'),
  of: fc.constantFrom('arrival', 'release'),
});

const ask: fc.Arbitrary<AskStep> = fc.record({
  do: fc.constant('ask'),
  upstream: usually<UpstreamName>('u', 'v'),
  method: usually('tools/list', 'resources/list', 'resources/read', 'resources/read', 'server/discover'),
  uri: fc.constantFrom('file:///a', 'file:///b'),
  caller: fc.constantFrom('nobody', 'ann', 'bob'),
  era: usually<AskStep['era']>('modern', 'legacy'),
  session: fc.constantFrom('s1', 's2', undefined),
  variant: usually<AskStep['variant']>('plain', 'vary', 'query', 'capabilities', 'progress'),
  cursor: usually<AskStep['cursor']>('none', 'own', 'own', 'any', 'bogus'),
  again: usually<boolean>(false, true),
});

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 10, arbitrary: ask },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('release'), which: fc.nat(3) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('pass'),
      ms: fc.constantFrom(1, 400, 999, 1_000, 1_001, 2_500, 4_999, 5_000, 16_000, 31_000, 310_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('change'), upstream: usually<UpstreamName>('u', 'v'), notice }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('call'),
      upstream: usually<UpstreamName>('u', 'v'),
      caller: fc.constantFrom('nobody', 'ann', 'bob'),
      notice,
      again: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('flush'), upstream: usually<UpstreamName>('u', 'v') }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('leave'), which: fc.nat(3) }) },
);

export const program: fc.Arbitrary<Program> = fc.record({
  settings,
  plans: fc.array(plan, { maxLength: 12 }),
  steps: fc.array(step, { minLength: 1, maxLength: 16 }),
});

/** What the origin answers once its plans have run out. */
export const GOOD: Plan = {
  kind: 'page',
  ttlMs: '60000',
  scope: '"public"',
  items: 1,
  next: 'none',
  as: 'json',
  notice: undefined,
  place: 'before',
  holds: 'nothing',
  of: 'release',
};
