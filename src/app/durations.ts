/**
 * Owns: how long requests took, as a Prometheus histogram. Every hit is counted here, so it is counted in place: the
 * cumulative buckets of the text format are made when somebody asks for them.
 */
import type { Histogram } from 'prom-client';

export interface DurationsOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly [string, string];
  /** Upper bounds in seconds, in rising order. */
  readonly buckets: readonly number[];
}

export interface Durations {
  /** Counts one of `seconds` under the values of the labels, which must come from closed lists. */
  observe(first: string, second: string, seconds: number): void;
  /** For a registry. */
  readonly metric: Histogram;
}

interface Series {
  readonly labels: Readonly<Record<string, string>>;
  /** How many fell into each bucket and into none before it; the last one has no bound. */
  readonly counts: Float64Array;
  sum: number;
}

interface Sample {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

export function createDurations({ name, help, labelNames, buckets }: DurationsOptions): Durations {
  const all = new Map<string, Series>();

  function seriesOf(first: string, second: string): Series {
    const key = `${first} ${second}`;
    let series = all.get(key);
    if (series === undefined) {
      const labels = { [labelNames[0]]: first, [labelNames[1]]: second };
      series = { labels, counts: new Float64Array(buckets.length + 1), sum: 0 };
      all.set(key, series);
    }
    return series;
  }

  function samplesOf({ labels, counts, sum }: Series): Sample[] {
    let count = 0;
    const cumulative = [...buckets, '+Inf'].map((le, i) => {
      count += counts[i] ?? 0;
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: count };
    });
    return [
      ...cumulative,
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: count },
    ];
  }

  const metric = {
    name,
    help,
    type: 'histogram',
    aggregator: 'sum',
    get: async () => ({
      ...{ name, help, type: 'histogram', aggregator: 'sum' },
      values: [...all.values()].flatMap(samplesOf),
    }),
  };
  return {
    observe(first, second, seconds) {
      const series = seriesOf(first, second);
      let i = 0;
      while (i < buckets.length && seconds > (buckets[i] ?? 0)) i += 1;
      series.counts[i] = (series.counts[i] ?? 0) + 1;
      series.sum += seconds;
    },
    // A registry asks of a metric what is here, and nothing else.
    metric: metric as unknown as Histogram,
  };
}
