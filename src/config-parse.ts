/**
 * Owns: reading one value of the environment as its setting demands. A fault says what was given and what is
 * expected; a secret is never repeated. Nothing is guessed and nothing silently replaced.
 */

import type { Setting, SettingKind } from './config-table.js';
import {
  type Finding,
  NAME_RULE,
  type NamedUrl,
  parseUpstreams,
  quote,
  whatIsWrong,
} from './config-upstreams.js';
import { parseRedisUrl } from './core/redis-url.js';

export interface Fault extends Finding {
  readonly variable: string;
}

/** What a setting's value can be once it is read. */
export type Value =
  | number
  | string
  | readonly string[]
  | Readonly<Record<string, string>>
  | readonly NamedUrl[];

export type Parsed = { readonly value: Value } | { readonly faults: readonly Finding[] };

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
    case 'boolean':
      return parseBoolean(setting.kind, text);
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
      return whatIsWrong(text) === undefined && !text.includes('?')
        ? { value: text }
        : fault('something that is no such url', expectation(setting.kind));
    case 'key-prefix':
      return /^[\w.:-]{1,64}$/.test(text) ? { value: text } : fault(quote(text), expectation(setting.kind));
    default:
      return setting.kind satisfies never;
  }
}

/** What is false must read as false, and a slip of the pen as neither. */
function parseBoolean(kind: SettingKind, text: string): Parsed {
  const word = text.toLowerCase();
  if (['true', '1', 'yes'].includes(word)) return { value: 'true' };
  if (['false', '0', 'no'].includes(word)) return { value: 'false' };
  return fault(quote(text), expectation(kind));
}

/** What a value of this kind must be, in words. */
export function expectation(kind: SettingKind): string {
  switch (kind.type) {
    case 'integer':
      return `a whole number from ${kind.min} to ${kind.max}, in digits`;
    case 'boolean':
      return 'true, 1 or yes; false, 0 or no';
    case 'text':
      return 'a host name or address without blanks';
    case 'secret':
      return 'a header value: visible ASCII characters and single blanks';
    case 'choice':
      return `one of ${kind.of.join(', ')}`;
    case 'header-names':
      return 'comma-separated header names';
    case 'header-map':
      return 'a JSON object of header names, each once and none that HTTP itself needs, and visible ASCII values';
    case 'upstreams':
      return `comma-separated name=url, each with ${NAME_RULE}, and an http or https url`;
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
  const bad = names.filter((name) => !TOKEN.test(name));
  if (bad.length === 0) return { value: [...new Set(names)] };
  return { faults: bad.map((name) => ({ given: showName(name), expected: expectation(kind) })) };
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
  const headers = new Map<string, string>();
  const faults: Finding[] = [];
  for (const [name, value] of Object.entries(map)) {
    const lower = name.toLowerCase();
    if (!TOKEN.test(name) || RESERVED_HEADERS.has(lower) || headers.has(lower)) {
      const twice = headers.has(lower) ? ' twice' : '';
      faults.push({ given: `${showName(name)}${twice}`, expected: expectation(kind) });
    } else if (typeof value !== 'string' || !isFieldValue(value)) {
      faults.push({
        given: `for ${showName(name)} a value that cannot be sent`,
        expected: expectation(kind),
      });
    } else {
      headers.set(lower, value);
    }
  }
  return faults.length > 0 ? { faults } : { value: Object.fromEntries(headers) };
}

/** A header's name as it may be shown: as far as it is one, since a value may stand behind it. */
function showName(name: string): string {
  const shown = /^[!#$%&'*+.^_`|~0-9A-Za-z-]*/.exec(name)?.[0] ?? '';
  return `the header ${quote(shown.length < name.length ? `${shown}…` : shown)}`;
}
