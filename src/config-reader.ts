/**
 * Owns: reading the environment variable by variable: the values by the places where they belong, every fault, and
 * what `--check` prints.
 */
import { expectation, type Fault, parseValue, type Value } from './config-parse.js';
import { SETTINGS, type Setting } from './config-table.js';
import { maskUrl, type NamedUrl } from './config-upstreams.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** One variable as `--check` prints it: its value as it would be written, secrets masked. */
export interface Resolved {
  readonly variable: string;
  readonly value: string;
  readonly isDefault: boolean;
}

export interface Reader {
  readonly faults: Fault[];
  readonly resolved: Resolved[];
  read(variable: string, setting: Setting, slot: string): void;
  fault(variable: string, given: string, expected: string): void;
  value(slot: string): Value | undefined;
}

export function createReader(env: Environment): Reader {
  const values = new Map<string, Value>();
  const faults: Fault[] = [];
  const resolved: Resolved[] = [];

  function read(variable: string, setting: Setting, slot: string): void {
    const given = env[variable];
    const heir = SETTINGS.find((other) => other.name === setting.default);
    const text = given ?? (heir === undefined ? setting.default : undefined);
    if (text === undefined) {
      const inherited = heir === undefined ? undefined : values.get(heir.name);
      if (inherited !== undefined) values.set(slot, inherited);
      if (setting.required) faults.push({ variable, given: 'nothing', expected: expectation(setting.kind) });
      resolved.push({ variable, value: show(setting, inherited), isDefault: true });
      return;
    }
    const parsed = parseValue(setting, text);
    if ('faults' in parsed) {
      faults.push(...parsed.faults.map((f) => ({ variable, ...f })));
      return;
    }
    values.set(slot, parsed.value);
    resolved.push({ variable, value: show(setting, parsed.value), isDefault: given === undefined });
  }

  return {
    faults,
    resolved,
    read,
    fault: (variable, given, expected) => faults.push({ variable, given, expected }),
    value: (slot) => values.get(slot),
  };
}

function show(setting: Setting, value: Value | undefined): string {
  if (value === undefined) return '(none)';
  if (setting.kind.type === 'secret') return '(set, hidden)';
  if (setting.kind.type === 'redis-url') return String(value).replace(/\/\/[^/]*@/, '//…@');
  if (setting.kind.type === 'header-map') return `${Object.keys(value).join(', ')} (values hidden)`;
  if (setting.kind.type === 'upstreams')
    return upstreamsOf(value)
      .map((u) => `${u.name}=${maskUrl(u.url)}`)
      .join(',');
  return Array.isArray(value) ? value.join(',') : String(value);
}

/** The upstreams in a value; none where it is another. */
export function upstreamsOf(value: Value | undefined): readonly NamedUrl[] {
  if (!Array.isArray(value)) return [];
  return value.filter((item): item is NamedUrl => typeof item === 'object');
}
