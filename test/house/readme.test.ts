import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { createMetrics } from '../../src/app/metrics.js';
import { parseConfig } from '../../src/config.js';
import { SETTINGS, type Setting, type SettingKind, UPSTREAM_SETTINGS } from '../../src/config-table.js';
import { CACHEABLE_METHODS } from '../../src/core/protocol.js';
import {
  BYPASS_REASONS,
  CURSOR_REASONS,
  NOT_STORED_REASONS,
  OUTCOMES,
  STALE_REASONS,
} from '../../src/core/reasons.js';
import { ERRORS } from '../../src/errors.js';

const ROOT = new URL('../../', import.meta.url);
const README = readFileSync(new URL('README.md', ROOT), 'utf8');

/** The rows of the table that begins with the column `head`, in the section that begins with these words. */
function rowsOf(section: string, head: string): string[][] {
  const text = README.split(/^## /m).find((part) => part.startsWith(section)) ?? '';
  const tables = text.split(/\n\n+/).filter((block) => block.startsWith('|'));
  const table = tables.map(cellsOf).find(([heads]) => heads?.[0] === head);
  if (table === undefined) throw new Error(`no table of ${head} in ${section}`);
  return table.slice(2);
}

function cellsOf(table: string): string[][] {
  const rows = table.trimEnd().split('\n');
  return rows.map((row) => row.split('|').map((cell) => cell.trim())).map((row) => row.slice(1, -1));
}

function code(text: string | number): string {
  return `\`${text}\``;
}

const VALUES = {
  boolean: '`true`, `false`',
  text: 'a host name or address',
  secret: 'a header value',
  'header-names': 'header names, comma-separated',
  'header-map': 'a JSON object of text values',
  upstreams: '`name=url`, comma-separated',
  'redis-url': 'a Redis URL',
  'key-prefix': 'letters, digits, `.`, `:`, `_`, `-`',
  origins: 'origins, comma-separated',
  hosts: 'host names, comma-separated',
  url: 'an http or https URL',
} as const;

function valuesOf(kind: SettingKind, unit: Setting['unit']): string {
  if (kind.type === 'choice') return kind.of.map(code).join(', ');
  if (kind.type !== 'integer') return VALUES[kind.type];
  return `${code(kind.min)} to ${code(kind.max)}${unit === undefined ? '' : ` ${unit}`}`;
}

function settingRow(setting: Setting, prefix: string): string[] {
  const { name, kind, required, default: preset, unit, meaning } = setting;
  const shown = preset === undefined ? 'none' : code(preset);
  return [code(prefix + name), required === true ? 'required' : shown, valuesOf(kind, unit), meaning];
}

describe('the README says what the code says', () => {
  test('of every setting, in both directions', () => {
    const global: readonly Setting[] = SETTINGS;
    const perUpstream: readonly Setting[] = UPSTREAM_SETTINGS;
    expect(rowsOf('Settings', 'variable')).toEqual(global.map((setting) => settingRow(setting, '')));
    expect(rowsOf('Settings', 'variable of one upstream')).toEqual(
      perUpstream.map((setting) => settingRow(setting, 'UPSTREAM_<NAME>_')),
    );
  });

  test('of every word in Cache-Status, in both directions', () => {
    const wordsOf = (head: string) => rowsOf('`Cache-Status`', head).map(([word]) => word);
    expect(wordsOf('outcome')).toEqual(OUTCOMES.map(code));
    expect(wordsOf('bypass reason')).toEqual(BYPASS_REASONS.map(code));
    expect(wordsOf('not-stored reason')).toEqual(NOT_STORED_REASONS.map(code));
    expect(wordsOf('stale reason')).toEqual(STALE_REASONS.map(code));
    expect(wordsOf('cursor reason')).toEqual(CURSOR_REASONS.map(code));
  });

  test('of every metric, in both directions', () => {
    const registered = createMetrics(['u']).table.map(({ name, help }) => [code(name), help]);
    expect(rowsOf('See what it does', 'metric').map(([name, , help]) => [name, help])).toEqual(registered);
  });

  test('of every error, in both directions', () => {
    expect(rowsOf('Errors', 'code')).toEqual(
      Object.entries(ERRORS).map(([name, { status, rpcCode, source, sentence }]) => [
        code(name),
        String(status),
        code(rpcCode),
        source,
        sentence,
      ]),
    );
  });

  test('of the methods that are cached', () => {
    const cells = rowsOf('What is cached', 'what').map(([methods]) => methods);
    expect(cells.join(', ').split(', ').sort()).toEqual(Object.keys(CACHEABLE_METHODS).map(code).sort());
  });
});

describe('what the README gives to use can be used', () => {
  test('the configuration of two upstreams is a good one', () => {
    const block = /```env\n(.*?)```/s.exec(README)?.[1] ?? '';
    const lines = block.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    const env = lines.map((line) => {
      const [, name, quoted, plain] = /^([A-Z_]+)=(?:'(.*)'|(.*))$/.exec(line) ?? [];
      if (name === undefined) throw new Error(`no setting: ${line}`);
      return [name, quoted ?? plain];
    });
    const { config } = parseConfig(Object.fromEntries(env));
    expect(config.upstreams.map(({ name }) => name)).toEqual(['docs', 'crm']);
  });

  test('every npm script that it names is there', () => {
    const { scripts }: { scripts: Record<string, string> } = JSON.parse(
      readFileSync(new URL('package.json', ROOT), 'utf8'),
    );
    const named = [...README.matchAll(/npm (?:run )?(?!ci\b|run\b)([a-z]+)/g)].map(([, name = '']) => name);
    expect(new Set(named)).toEqual(new Set(['demo', 'test', 'build', 'start']));
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(named));
  });
});
