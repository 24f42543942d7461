/** What a gateway tells Prometheus, to look at by series. */

export interface Scrape {
  readonly text: string;
  /** Every series with its value, such as `mcp_cache_gateway_entries{upstream="u"}`. */
  readonly series: ReadonlyMap<string, number>;
  /** The value of one of the gateway's own, such as `entries{upstream="u"}`. */
  value(series: string): number | undefined;
}

const OWN = 'mcp_cache_gateway_';

export async function scrape(gateway: { readonly adminUrl: string }): Promise<Scrape> {
  const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const series = new Map(
    lines.map((line) => {
      const cut = line.lastIndexOf(' ');
      return [line.slice(0, cut), Number(line.slice(cut + 1))];
    }),
  );
  return { text, series, value: (name) => series.get(OWN + name) };
}
