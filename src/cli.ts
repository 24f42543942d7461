/** Owns: the command line: what it asks for, and the text of `--help`, made from the table of settings. */
import { SETTINGS, type Setting, UPSTREAM_SETTINGS } from './config-table.js';

export type Command =
  | { readonly kind: 'run' | 'help' | 'version' }
  | { readonly kind: 'check' | 'probe'; readonly asJson: boolean }
  | { readonly kind: 'wrong'; readonly what: string };

const FLAGS: readonly string[] = ['--check', '--probe', '--json', '--help', '--version'];

/** What the arguments ask for. */
export function readCommand(args: readonly string[]): Command {
  const [first] = args;
  const unknown = args.find((arg) => !FLAGS.includes(arg));
  if (unknown !== undefined)
    return { kind: 'wrong', what: `unknown argument ${JSON.stringify(unknown)}; see --help` };
  if (new Set(args).size < args.length)
    return { kind: 'wrong', what: 'an argument is given twice; see --help' };
  if (first === undefined) return { kind: 'run' };
  if (args.includes('--check') && !args.includes('--help') && !args.includes('--version'))
    return { kind: args.includes('--probe') ? 'probe' : 'check', asJson: args.includes('--json') };
  if (args.length > 1) return { kind: 'wrong', what: 'these arguments do not go together; see --help' };
  if (first === '--help') return { kind: 'help' };
  return first === '--version'
    ? { kind: 'version' }
    : { kind: 'wrong', what: `${first} goes with --check; see --help` };
}

/** What `--help` prints. */
export function helpText(): string {
  const perUpstream = UPSTREAM_SETTINGS.map((setting) => ({
    ...setting,
    name: `UPSTREAM_<NAME>_${setting.name}`,
  }));
  return [
    'mcp-cache-gateway: a caching proxy for the Model Context Protocol',
    '',
    'Usage: mcp-cache-gateway [--check [--probe] [--json] | --help | --version]',
    '',
    '  --check    print the resolved configuration, secrets masked, and exit',
    '  --probe    with --check: try each upstream, and say what would be cached and what to change;',
    '             exit status 69 where one does not answer',
    '  --json     with --check: the same as JSON',
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
