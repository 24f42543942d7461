/** Chance that can be had again: numbers that follow from a seed, a name and a count. */

export interface Random {
  /** A whole number from 0 up to, and without, `limit`. */
  below(limit: number): number;
  pick<T>(list: readonly T[]): T;
}

/** mulberry32, seeded by FNV-1a. */
export function createRandom(seed: number, name: string, count: number): Random {
  let state = 0x811c9dc5;
  for (const char of `${seed}/${name}/${count}`) state = Math.imul(state ^ char.charCodeAt(0), 0x01000193);
  function below(limit: number): number {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * limit);
  }
  return {
    below,
    pick<T>(list: readonly T[]): T {
      const found = list[below(list.length)];
      if (found === undefined) throw new Error('nothing to pick from');
      return found;
    },
  };
}
