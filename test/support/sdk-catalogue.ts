/** What the SDK's servers offer in the tests: four lists in pages, and a count of what was asked. */

export interface Tool {
  name: string;
  description: string;
  inputSchema: { type: 'object' };
}

export interface Prompt {
  name: string;
  description: string;
}

export interface Resource {
  uri: string;
  name: string;
  mimeType: string;
  size: number;
}

export interface ResourceTemplate {
  uriTemplate: string;
  name: string;
}

export interface Catalogue {
  readonly tools: Tool[];
  readonly prompts: Prompt[];
  readonly resources: Resource[];
  readonly resourceTemplates: ResourceTemplate[];
  /** The text of a resource, as it is now. */
  readonly texts: Map<string, string>;
  /** One page of `items`, and the cursor of the next; counts as a request of `method`. */
  page<T>(method: string, items: readonly T[], cursor: string | undefined): Page<T>;
  /** Counts a request of `method`. */
  asked(method: string): void;
  /** How often `method` was asked for. */
  count(method: string): number;
}

export interface Page<T> {
  readonly items: T[];
  readonly next: { nextCursor?: string };
}

export function createCatalogue(options: { readonly items: number; readonly pageSize: number }): Catalogue {
  const { items, pageSize } = options;
  const numbers = Array.from({ length: items }, (_, i) => i + 1);
  const counts = new Map<string, number>();
  const asked = (method: string) => void counts.set(method, (counts.get(method) ?? 0) + 1);
  return {
    tools: numbers.map((n) => toolNamed(`tool-${n}`)),
    prompts: numbers.map((n) => ({ name: `prompt-${n}`, description: `Prompt “${n}”` })),
    resources: numbers.map(resourceNumber),
    resourceTemplates: numbers.map((n) => ({ uriTemplate: `test://${n}/{name}`, name: `template-${n}` })),
    texts: new Map(numbers.map((n) => [`test://resource/${n}`, `text ${n}`])),
    asked,
    page(method, list, cursor) {
      asked(method);
      const start = Number(cursor ?? 0);
      const end = start + pageSize;
      return {
        items: list.slice(start, end),
        next: end < list.length ? { nextCursor: String(end) } : {},
      };
    },
    count: (method) => counts.get(method) ?? 0,
  };
}

export function toolNamed(name: string): Tool {
  return { name, description: `Does what ${name} does`, inputSchema: { type: 'object' } };
}

export function resourceNumber(n: number): Resource {
  return { uri: `test://resource/${n}`, name: `resource “${n}”`, mimeType: 'text/plain', size: n };
}
