/** Mutations of bytes: what line noise, a cut connection or a hostile hand makes of a good input. */
import { TOKENS } from './corpus.js';
import type { Random } from './random.js';

/** No mutated input is longer, in bytes. */
const MAX_LENGTH = 4_096;

/** Replaces the bytes from `start` up to `end`. */
function put(bytes: Buffer, start: number, end: number, middle: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, start), middle, bytes.subarray(end)]);
}

type Mutation = (bytes: Buffer, random: Random, corpus: readonly Buffer[]) => Buffer;

const byte = (random: Random) => Buffer.of(random.below(256));

/** A run of the bytes: mostly short. */
function run(bytes: Buffer, random: Random): [number, number] {
  const start = random.below(bytes.length + 1);
  const length = random.below(random.pick([4, 16, 64, bytes.length + 1]));
  return [start, Math.min(bytes.length, start + length)];
}

const MUTATIONS: readonly Mutation[] = [
  // A bit flipped.
  (bytes, random) => {
    const copy = Buffer.from(bytes);
    const at = random.below(copy.length);
    copy[at] = (copy[at] ?? 0) ^ (1 << random.below(8));
    return copy;
  },
  (bytes, random) => put(bytes, random.below(bytes.length), random.below(bytes.length), byte(random)),
  (bytes, random) => bytes.subarray(0, random.below(bytes.length + 1)),
  (bytes, random) => bytes.subarray(random.below(bytes.length + 1)),
  (bytes, random) => put(bytes, ...run(bytes, random), Buffer.alloc(0)),
  // A run doubled, many times at the worst.
  (bytes, random) => {
    const [start, end] = run(bytes, random);
    const copies = Array<Buffer>(random.pick([1, 1, 2, 50])).fill(bytes.subarray(start, end));
    return put(bytes, end, end, Buffer.concat(copies));
  },
  (bytes, random) => {
    const at = random.below(bytes.length + 1);
    return put(bytes, at, at + random.below(3), random.pick(TOKENS));
  },
  (bytes, random) => put(bytes, ...run(bytes, random), random.pick(TOKENS)),
  // The beginning of one input and the end of another.
  (bytes, random, corpus) => {
    const other = random.pick(corpus);
    return put(
      bytes,
      random.below(bytes.length + 1),
      bytes.length,
      other.subarray(random.below(other.length)),
    );
  },
  // A run of another input in the place of a run of this one.
  (bytes, random, corpus) => {
    const other = random.pick(corpus);
    return put(bytes, ...run(bytes, random), other.subarray(...run(other, random)));
  },
];

const JSON_TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g;
const JSON_VALUES = [
  'null',
  '{}',
  '[]',
  '""',
  '0',
  '-1',
  '1e999',
  '1.50',
  '"\\u0000é"',
  '[[],{"a":[1]}]',
  '"2.0"',
  '60000',
];

/** A value in the place of another, a name for a name, a member more, white space: what is JSON stays JSON. */
const mutateToken: Mutation = (bytes, random) => {
  const text = bytes.toString('latin1');
  const tokens = [...text.matchAll(JSON_TOKEN)];
  const names = tokens.filter((token, i) => tokens[i + 1]?.[0] === ':' && token[0].startsWith('"'));
  const at = random.below(tokens.length);
  const token = tokens[at];
  if (token === undefined) return bytes;
  const value = random.pick(JSON_VALUES);
  const name = names.length === 0 ? '""' : random.pick(names)[0];
  let piece = /^[{}[\],:]/.test(token[0]) ? `${random.pick(['', ' ', '\r\n'])}${token[0]}\t` : value;
  if (tokens[at + 1]?.[0] === ':') piece = name;
  else if (token[0] === '{' && tokens[at + 1]?.[0] !== '}') piece = `{${name}:${value},`;
  return Buffer.from(
    text.slice(0, token.index) + piece + text.slice(token.index + token[0].length),
    'latin1',
  );
};

/** Whether the bytes are of a kind that has such tokens. */
const isLikeJson = (bytes: Buffer) => bytes.includes('{') || bytes.includes('[');

/** An input of the corpus, mutated once or a few times. */
export function mutate(corpus: readonly Buffer[], random: Random): Buffer {
  let bytes = random.pick(corpus);
  if (bytes.length > MAX_LENGTH) bytes = bytes.subarray(0, MAX_LENGTH);
  for (let times = random.pick([1, 1, 1, 2, 3, 8]); times > 0; times -= 1) {
    const mutation = isLikeJson(bytes) && random.below(3) > 0 ? mutateToken : random.pick(MUTATIONS);
    bytes = mutation(bytes, random, corpus).subarray(0, MAX_LENGTH);
  }
  return bytes;
}
