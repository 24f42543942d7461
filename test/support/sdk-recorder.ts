/** A fetch for the SDK's clients, which hide header fields: it remembers what the gateway said of its answers. */

export interface Recorder {
  fetch(url: string | URL, init?: RequestInit): Promise<Response>;
  /**
   * The `Cache-Status` of each answer to this method, in order; empty text where there was none. A request
   * without a message goes by its HTTP method: `GET` is the stream of a session.
   */
  statuses(method: string): string[];
  /** The last of them. */
  last(method: string): string;
}

export function createRecorder(): Recorder {
  const seen: { method: string; cacheStatus: string }[] = [];
  const statuses = (method: string) =>
    seen.filter((answer) => answer.method === method).map((answer) => answer.cacheStatus);
  return {
    async fetch(url, init) {
      const response = await fetch(url, init);
      seen.push({
        method: methodOf(init),
        cacheStatus: response.headers.get('cache-status') ?? '',
      });
      return response;
    },
    statuses,
    last: (method) => statuses(method).at(-1) ?? 'never asked',
  };
}

function methodOf(init: RequestInit | undefined): string {
  if (typeof init?.body !== 'string') return init?.method ?? 'GET';
  const { method }: { method?: unknown } = JSON.parse(init.body);
  return typeof method === 'string' ? method : '';
}
