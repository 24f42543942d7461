/**
 * Owns: maps that forget what was used longest ago. lru-cache reserves room for `max` entries at once; where their number
 * is counted as a size it takes room as it fills, and most of these stay nearly empty.
 */
import { LRUCache } from 'lru-cache';

/** A map of at most `max` entries. */
export function createBounded<V extends NonNullable<unknown>>(max: number): LRUCache<string, V> {
  return new LRUCache<string, V>({ maxSize: max, sizeCalculation: () => 1 });
}
