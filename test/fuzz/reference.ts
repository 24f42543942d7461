/**
 * Slow and simple readers of the same formats, written without a look at the real ones: what a fuzzer compares with.
 * JSON is cut into tokens by one regular expression once JSON.parse has accepted it; event streams are read as a whole.
 */

/** The value that JSON.parse sees in the bytes; undefined where it sees none, which JSON itself cannot say. */
export function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}

const JSON_TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g;

/** What JSON.parse does not tell of a text that it accepts. */
export interface JsonFacts {
  readonly depth: number;
  /** Whether some object, at any depth, has two members of one name. */
  readonly isDoubled: boolean;
  /** Keys sorted by UTF-16, white space gone, strings in one spelling, numbers as they stood. */
  readonly canonical: string;
}

interface Open {
  readonly isObject: boolean;
  readonly parts: { readonly key: string; readonly text: string }[];
  key: string;
}

/** Reads a text that JSON.parse accepts. */
export function jsonFacts(text: string): JsonFacts {
  const tokens = text.match(JSON_TOKEN) ?? [];
  const root: Open = { isObject: false, parts: [], key: '' };
  const open: Open[] = [root];
  let depth = 0;
  let isDoubled = false;
  for (const [i, token] of tokens.entries()) {
    const inner = open.at(-1) ?? root;
    if (token === '{' || token === '[') {
      open.push({ isObject: token === '{', parts: [], key: '' });
      depth = Math.max(depth, open.length - 1);
    } else if (token === '}' || token === ']') {
      open.pop();
      const names = inner.parts.map(({ key }) => key);
      if (inner.isObject && new Set(names).size < names.length) isDoubled = true;
      const outer = open.at(-1) ?? root;
      outer.parts.push({ key: outer.key, text: closed(inner) });
    } else if (inner.isObject && tokens[i + 1] === ':') {
      inner.key = JSON.parse(token);
    } else if (token !== ',' && token !== ':') {
      inner.parts.push({
        key: inner.key,
        text: token[0] === '"' ? JSON.stringify(JSON.parse(token)) : token,
      });
    }
  }
  return { depth, isDoubled, canonical: root.parts[0]?.text ?? '' };
}

function closed({ isObject, parts }: Open): string {
  if (!isObject) return `[${parts.map(({ text }) => text).join(',')}]`;
  const sorted = [...parts].sort((a, b) => (a.key < b.key ? -1 : 1));
  return `{${sorted.map(({ key, text }) => `${JSON.stringify(key)}:${text}`).join(',')}}`;
}

/** Whether the object has two members of one name, its members' own members left aside. */
export function hasDoubledMember(text: string): boolean {
  let depth = 0;
  const names: string[] = [];
  const tokens = text.match(JSON_TOKEN) ?? [];
  for (const [i, token] of tokens.entries()) {
    if (token === '{' || token === '[') depth += 1;
    else if (token === '}' || token === ']') depth -= 1;
    else if (depth === 1 && tokens[i + 1] === ':' && token[0] === '"') names.push(JSON.parse(token));
  }
  return new Set(names).size < names.length;
}

/** The text of each value of a member of this name, of an object that JSON.parse accepts. */
export function memberTexts(text: string, name: string): string[] {
  const found: string[] = [];
  const tokens = [...text.matchAll(JSON_TOKEN)];
  let depth = 0;
  for (const [i, { 0: token }] of tokens.entries()) {
    if (token === '{' || token === '[') depth += 1;
    if (token === '}' || token === ']') depth -= 1;
    if (depth !== 1 || tokens[i + 1]?.[0] !== ':' || token[0] !== '"' || JSON.parse(token) !== name) continue;
    let inner = 0;
    let end = i + 2;
    for (; end < tokens.length; end += 1) {
      const next = tokens[end]?.[0];
      if (next === '{' || next === '[') inner += 1;
      if (next === '}' || next === ']') inner -= 1;
      if (inner === 0) break;
    }
    const last = tokens[end];
    found.push(text.slice(tokens[i + 2]?.index, (last?.index ?? 0) + (last?.[0].length ?? 0)));
  }
  return found;
}

export interface ReadStream {
  /** The data of each event, as latin1: byte for byte. */
  readonly events: readonly string[];
  /** The data of the complete lines behind the last event; undefined where there are none. */
  readonly pending: string | undefined;
}

/** WHATWG HTML 9.2.6 over a whole stream; events without data are left out. */
export function readEventStream(bytes: Buffer): ReadStream {
  const events: string[] = [];
  let data: string[] = [];
  const text = bytes.toString('latin1').replace(/^\xef\xbb\xbf/, '');
  for (const line of text.split(/\r\n|\n|\r/).slice(0, -1)) {
    const colon = line.indexOf(':');
    const field = colon === -1 ? line : line.slice(0, colon);
    if (line === '') {
      const whole = data.join('\n');
      if (whole !== '') events.push(whole);
      data = [];
    } else if (field === 'data') {
      data.push(colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, ''));
    }
  }
  return { events, pending: data.length === 0 ? undefined : data.join('\n') };
}
