/**
 * Owns: reading UPSTREAMS: which upstreams it names, where they are, and what is wrong with each part of it.
 * A url is shown only with its credentials and the values of its query taken out.
 */
import { upstreamVariable } from './config-table.js';

/** What is wrong with a value: what was given, as it may be shown, and what is expected. */
export interface Finding {
  readonly given: string;
  readonly expected: string;
}

export interface NamedUrl {
  readonly name: string;
  /** As it was configured. */
  readonly url: string;
  readonly origin: string;
  /** Path and query, byte for byte as configured; at least `/`. */
  readonly path: string;
}

export const NAME_RULE = 'a name of a-z, 0-9 and -, not beginning with -, of at most 63 characters';
const PART_RULE = 'name=url, comma-separated';
const URL_RULE = 'http:// or https://, a host, and visible ASCII without a fragment';

const NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;

interface Part {
  /** Counted from 1. */
  readonly place: number;
  /** Absent where nothing that could be meant as a name stands before the url. */
  readonly name?: string;
  readonly url: string;
}

/** The upstreams that `text` names, or every fault in it. */
export function parseUpstreams(
  text: string,
): { readonly value: readonly NamedUrl[] } | { readonly faults: readonly Finding[] } {
  const upstreams: NamedUrl[] = [];
  const faults: Finding[] = [];
  const seen = new Set<string>();
  for (const part of splitParts(text)) {
    const problem = problemOf(part, seen);
    if (problem !== undefined) faults.push(problem);
    else if (part.name !== undefined)
      upstreams.push({ name: part.name, url: part.url, ...splitUrl(part.url) });
    if (part.name !== undefined) seen.add(part.name);
  }
  return faults.length > 0 ? { faults } : { value: upstreams };
}

/** The names that can be read in `text`, each once, whatever else is wrong with it. */
export function namesIn(text: string): string[] {
  const names = splitParts(text).flatMap(({ name }) => (name !== undefined && NAME.test(name) ? [name] : []));
  return [...new Set(names)];
}

/**
 * A comma begins the next part; in a query or a password, which may hold commas, only one before `name=scheme://` does.
 */
function splitParts(text: string): Part[] {
  const parts: string[] = [];
  const pieces = text.split(',');
  for (const [i, piece] of pieces.entries()) {
    const last = parts.at(-1);
    if (last !== undefined && !BEGINS_PART.test(piece) && isCutIn(last, pieces.slice(i))) {
      parts[parts.length - 1] = `${last},${piece}`;
    } else parts.push(piece);
  }
  return parts.map((part, i) => splitPart(part.trim(), i + 1));
}

const BEGINS_PART = /^\s*[^=?&/@]*=[^?&/@]*:\/\//;
/** A part that has not come to its path, query or fragment. */
const IS_IN_AUTHORITY = /^[^/?#]*(:\/{0,3}[^/?#]*)?$/;

/** Whether a comma cut this part in two: in its query, or in its credentials, whose rest would pass for a name. */
function isCutIn(part: string, following: readonly string[]): boolean {
  if (part.includes('?')) return true;
  const next = following.findIndex((piece) => BEGINS_PART.test(piece));
  const rest = next === -1 ? following : following.slice(0, next);
  return IS_IN_AUTHORITY.test(part) && /^[^/?#]*@/.test(rest.join(','));
}

function splitPart(text: string, place: number): Part {
  const cut = text.indexOf('=');
  // Where the name is forgotten, the first = is one of the url, and what is before it may hold a password.
  if (cut === -1 || /[/:@?#]/.test(text.slice(0, cut))) return { place, url: text };
  return { place, name: text.slice(0, cut), url: text.slice(cut + 1) };
}

function problemOf({ place, name, url }: Part, seen: ReadonlySet<string>): Finding | undefined {
  if (name === undefined) {
    if (url === '') return { given: `nothing as part ${place}`, expected: PART_RULE };
    return { given: `part ${place}, ${quote(maskUrl(url))}, without a name`, expected: PART_RULE };
  }
  if (!NAME.test(name)) return { given: `the name ${quote(name)}`, expected: NAME_RULE };
  if (seen.has(name)) return { given: `the name ${quote(name)} twice`, expected: 'each name once' };
  const wrong = whatIsWrong(url);
  if (wrong === undefined) return undefined;
  const elsewhere = `; credentials go into ${upstreamVariable(name, 'AUTHORIZATION')}`;
  return {
    given: `for ${quote(name)} ${quote(maskUrl(url))}, ${wrong}`,
    expected: wrong === HAS_CREDENTIALS ? `${URL_RULE}${elsewhere}` : URL_RULE,
  };
}

const HAS_CREDENTIALS = 'a url with credentials in it';

/** What keeps a text from being an http(s) url that can be used as it stands; undefined where nothing does. */
export function whatIsWrong(url: string): string | undefined {
  if (!/^https?:\/\//i.test(url)) return 'which does not begin with http:// or https://';
  if (/[^\x21-\x7e]|\\/.test(url)) return 'which holds a blank, a backslash or a character beyond ASCII';
  if (!/^https?:\/\/[^/?#]/i.test(url)) return 'which names no host';
  if (!URL.canParse(url)) return 'which is no url';
  const { username, password } = new URL(url);
  if (username !== '' || password !== '') return HAS_CREDENTIALS;
  return url.includes('#') ? 'a url with a fragment' : undefined;
}

function splitUrl(url: string): { readonly origin: string; readonly path: string } {
  const rest = url.replace(/^https?:\/\/[^/?]+/i, '');
  return { origin: new URL(url).origin, path: rest.startsWith('/') ? rest : `/${rest}` };
}

/** An @, or a colon before something else than `//` or a port. */
const MAY_HOLD_PASSWORD = /@|:(?!\/\/|\d*([/?#]|$))/;

/**
 * The url as it may be shown: without credentials and fragment; of its query the names alone, since a value may
 * be a key. What is no url is shown only where no password can be in it.
 */
export function maskUrl(url: string): string {
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(url)?.[0] ?? '';
  const isUrl = /^https?:\/\/[^/?#]/i.test(url) && URL.canParse(url);
  if (!isUrl && MAY_HOLD_PASSWORD.test(url)) return `${scheme}…`;
  const [beforeFragment = '', ...fragments] = url.slice(scheme.length).split('#');
  const [place = '', ...queries] = beforeFragment.split('?');
  const shownPlace = isUrl ? place.replace(/^[^/]*@/, '…@') : place;
  const query = queries.length === 0 ? '' : `?${queries.join('?').split('&').map(maskPair).join('&')}`;
  return `${scheme}${shownPlace}${query}${fragments.length === 0 ? '' : '#…'}`;
}

function maskPair(pair: string): string {
  const cut = pair.indexOf('=');
  return cut === -1 ? '…' : `${pair.slice(0, cut)}=…`;
}

/** A value in quotes, shortened. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
