/**
 * Owns: reading one value of the environment as its setting demands. A fault says what was given and what is
 * expected; a secret is never repeated. Nothing is guessed and nothing silently replaced.
 */
import { parseRedisUrl } from './cache/redis-client.js';
import type { Setting, SettingKind } from './config-table.js';

export interface Fault {
  readonly variable: string;
  /** What was given, as it may be shown. */
  readonly given: string;
  readonly expected: string;
}

/** What a setting's value can be once it is read. */
export type Value =
  | number
  | string
  | readonly string[]
  | Readonly<Record<string, string>>
  | readonly NamedUrl[];

export interface NamedUrl {
  readonly name: string;
  /** As it was configured. */
  readonly url: string;
  readonly origin: string;
  /** Path and query, byte for byte as configured; at least `/`. */
  readonly path: string;
}

export type Parsed = { readonly value: Value } | { readonly faults: readonly Omit<Fault, 'variable'>[] };

/** Reads `text` as a value of `setting`. */
export function parseValue(setting: Setting, text: string): Parsed {
  if (text.trim() === '')
    return fault('an empty value', `${expectation(setting.kind)}; leave it unset for the default`);
  switch (setting.kind.type) {
    case 'integer':
      return parseInteger(setting.kind, text);
    case 'text':
      return /^[\x21-\x7e]+$/.test(text) ? { value: text } : fault(quote(text), expectation(setting.kind));
    case 'secret':
      return isFieldValue(text) ? { value: text } : fault('a secret', expectation(setting.kind));
    case 'choice':
      return setting.kind.of.includes(text) ? { value: text } : fault(quote(text), expectation(setting.kind));
    case 'header-names':
      return parseHeaderNames(setting.kind, text);
    case 'header-map':
      return parseHeaderMap(setting.kind, text);
    case 'upstreams':
      return parseUpstreams(text);
    case 'redis-url':
      return parseRedisUrl(text) === undefined
        ? fault('a url that is none of these', expectation(setting.kind))
        : { value: text };
    case 'origins':
      return parseNames(setting.kind, text, /^(\*|loopback|null|[a-z][a-z0-9+.-]*:\/\/[^/?#\s,@]+)$/);
    case 'hosts':
      return parseNames(setting.kind, text.toLowerCase(), /^(\*|loopback|[a-z0-9_.-]+|\[[0-9a-f:.]+\])$/);
    case 'url':
      return urlProblem(text) === undefined && !text.includes('?')
        ? { value: text }
        : fault('something that is no such url', expectation(setting.kind));
    case 'key-prefix':
      return /^[\w.:-]{1,64}$/.test(text) ? { value: text } : fault(quote(text), expectation(setting.kind));
    default:
      return setting.kind satisfies never;
  }
}

/** What a value of this kind must be, in words. */
export function expectation(kind: SettingKind): string {
  switch (kind.type) {
    case 'integer':
      return `a whole number from ${kind.min} to ${kind.max}, in digits`;
    case 'text':
      return 'a host name or address without blanks';
    case 'secret':
      return 'a header value: visible ASCII characters and single blanks';
    case 'choice':
      return `one of ${kind.of.join(', ')}`;
    case 'header-names':
      return 'comma-separated header names';
    case 'header-map':
      return 'a JSON object of header names and string values, without the headers that HTTP itself needs';
    case 'upstreams':
      return 'comma-separated name=url, each name of a-z, 0-9 and - and of at most 63 characters, each url http(s)';
    case 'redis-url':
      return 'redis://[user:password@]host[:port][/db] or rediss://…, redis-sentinel://host,host/name, redis-cluster://host,host';
    case 'origins':
      return 'comma-separated origins such as https://app.example, or *, or loopback';
    case 'hosts':
      return 'comma-separated host names without ports, or *, or loopback';
    case 'url':
      return 'an http or https url without query, fragment and credentials';
    case 'key-prefix':
      return 'at most 64 letters, digits, and . : _ -';
    default:
      return kind satisfies never;
  }
}

function fault(given: string, expected: string): Parsed {
  return { faults: [{ given, expected }] };
}

function quote(text: string): string {
  const shown = text.length > 80 ? `${text.slice(0, 80)}…` : text;
  return JSON.stringify(shown);
}

function parseInteger(kind: Extract<SettingKind, { type: 'integer' }>, text: string): Parsed {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  return value >= kind.min && value <= kind.max ? { value } : fault(quote(text), expectation(kind));
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const RESERVED_HEADERS = new Set([
  'host',
  'connection',
  'content-length',
  'content-type',
  'transfer-encoding',
  'expect',
  'upgrade',
  'keep-alive',
  'te',
  'trailer',
]);

function isFieldValue(text: string): boolean {
  return /^[\x21-\x7e]+( [\x21-\x7e]+)*$/.test(text);
}

function parseNames(kind: SettingKind, text: string, form: RegExp): Parsed {
  const names = text.split(',').map((name) => name.trim());
  return names.every((name) => form.test(name)) ? { value: names } : fault(quote(text), expectation(kind));
}

function parseHeaderNames(kind: SettingKind, text: string): Parsed {
  const names = text.split(',').map((name) => name.trim().toLowerCase());
  if (!names.every((name) => TOKEN.test(name))) return fault(quote(text), expectation(kind));
  return { value: [...new Set(names)] };
}

function parseHeaderMap(kind: SettingKind, text: string): Parsed {
  let map: unknown;
  try {
    map = JSON.parse(text);
  } catch {
    return fault('a value that is no JSON', expectation(kind));
  }
  if (typeof map !== 'object' || map === null || Array.isArray(map))
    return fault('JSON that is no object', expectation(kind));
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(map)) {
    const isGood = TOKEN.test(name) && !RESERVED_HEADERS.has(name.toLowerCase());
    if (!isGood || typeof value !== 'string' || !isFieldValue(value)) {
      return fault(`the header ${quote(name)} with a name or value that cannot be sent`, expectation(kind));
    }
    headers[name.toLowerCase()] = value;
  }
  return { value: headers };
}

const UPSTREAM_NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;

function parseUpstreams(text: string): Parsed {
  const faults: Omit<Fault, 'variable'>[] = [];
  const upstreams: NamedUrl[] = [];
  for (const part of splitUpstreams(text)) {
    const cut = part.indexOf('=');
    const name = cut === -1 ? '' : part.slice(0, cut);
    if (!UPSTREAM_NAME.test(name)) {
      faults.push({
        given: cut === -1 ? 'a part without a name' : `the name ${quote(name)}`,
        expected: expectation({ type: 'upstreams' }),
      });
      continue;
    }
    if (upstreams.some((upstream) => upstream.name === name)) {
      faults.push({ given: `the name ${quote(name)} twice`, expected: 'each name once' });
      continue;
    }
    const url = part.slice(cut + 1);
    const problem = urlProblem(url);
    if (problem === undefined) upstreams.push({ name, url, ...splitUrl(url) });
    else faults.push({ given: `for ${quote(name)} ${problem.given}`, expected: problem.expected });
  }
  return faults.length > 0 ? { faults } : { value: upstreams };
}

/** Every comma begins the next upstream, except in a query, where only `name=scheme://` does: a query may hold commas. */
function splitUpstreams(text: string): string[] {
  const parts: string[] = [];
  for (const piece of text.split(',')) {
    const last = parts.at(-1);
    const continuesQuery = last?.includes('?') === true && !/^\s*[^=?&/]*=[^?&/]*:\/\//.test(piece);
    if (continuesQuery) parts[parts.length - 1] = `${last},${piece}`;
    else parts.push(piece);
  }
  return parts.map((part) => part.trim());
}

function urlProblem(url: string): Omit<Fault, 'variable'> | undefined {
  const expected = 'an http or https url, without fragment and without credentials, in visible ASCII';
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    return { given: 'something that is no url', expected };
  }
  if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:')
    return { given: 'another scheme', expected };
  if (!/^https?:\/\/[^/?#]/i.test(url) || /[^\x21-\x7e]/.test(url))
    return { given: 'blanks or characters beyond ASCII', expected };
  if (parsed.username !== '' || parsed.password !== '') {
    return {
      given: 'a url with credentials',
      expected: `${expected}; credentials go into UPSTREAM_<NAME>_AUTHORIZATION`,
    };
  }
  return url.includes('#') ? { given: 'a url with a fragment', expected } : undefined;
}

function splitUrl(url: string): { readonly origin: string; readonly path: string } {
  const rest = url.replace(/^https?:\/\/[^/?]+/i, '');
  return { origin: new URL(url).origin, path: rest.startsWith('/') ? rest : `/${rest}` };
}
