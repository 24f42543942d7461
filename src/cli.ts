/** Owns: the text of `--help`, made from the table of settings. */
import { SETTINGS, type Setting, UPSTREAM_SETTINGS } from './config-table.js';

/** What `--help` prints. */
export function helpText(): string {
  const perUpstream = UPSTREAM_SETTINGS.map((setting) => ({
    ...setting,
    name: `UPSTREAM_<NAME>_${setting.name}`,
  }));
  return [
    'mcp-cache-gateway: a caching proxy for the Model Context Protocol',
    '',
    'Usage: mcp-cache-gateway [--check | --help | --version]',
    '',
    '  --check    print the resolved configuration, secrets masked, and exit',
    '  --help     print this text',
    '  --version  print the version',
    '',
    'It is configured by environment variables:',
    '',
    ...describe(SETTINGS),
    '',
    'For one upstream (its name in capitals, - as _):',
    '',
    ...describe(perUpstream),
  ].join('\n');
}

function describe(settings: readonly Setting[]): string[] {
  const width = Math.max(...settings.map((setting) => setting.name.length));
  return settings.map(({ name, required, default: preset, meaning }) => {
    const value = required ? 'required' : preset === undefined ? 'none' : `default ${preset}`;
    return `  ${name.padEnd(width)}  ${meaning.replaceAll('`', '')} (${value})`;
  });
}
