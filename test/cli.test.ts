/** The command line. The whole process is run as it was built: `npm test` builds first. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { helpText } from '../src/cli.js';
import { SETTINGS, type Setting, UPSTREAM_SETTINGS } from '../src/config-table.js';

const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url));

/** Runs the program to its end with nothing but `env` in its environment. */
function run(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], { env, encoding: 'utf8' });
  return { status, stdout, stderr };
}

describe('--help', () => {
  const lines = helpText().split('\n');

  test.each(SETTINGS)('$name stands there with its meaning and default', (setting: Setting) => {
    const line = lines.find((text) => text.trim().startsWith(`${setting.name} `));
    expect(line).toContain(setting.meaning.replaceAll('`', ''));
    expect(line).toContain(
      setting.required ? '(required)' : `(${setting.default ? `default ${setting.default}` : 'none'})`,
    );
  });

  test.each(UPSTREAM_SETTINGS)('UPSTREAM_<NAME>_$name stands there with its meaning', (setting: Setting) => {
    const line = lines.find((text) => text.includes(`UPSTREAM_<NAME>_${setting.name} `));
    expect(line).toContain(setting.meaning.replaceAll('`', ''));
  });

  test('it is printed, and needs no configuration', () => {
    expect(run(['--help'])).toEqual({ status: 0, stdout: `${helpText()}\n`, stderr: '' });
  });
});

describe('other arguments', () => {
  test('--version prints the version', () => {
    const { version }: { version: string } = JSON.parse(
      readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
    );
    expect(run(['--version'])).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' });
  });

  test.each([['--chekc'], ['start'], ['--check', '--check'], ['']])(
    '%j is a wrong command line',
    (...args) => {
      const { status, stdout, stderr } = run(args, { UPSTREAMS: 'u=http://u' });
      expect(status).toBe(64);
      expect(stdout).toBe('');
      expect(stderr).toContain('--help');
    },
  );
});

describe('--check', () => {
  test('it prints the resolved configuration, secrets masked, and exits', () => {
    const { status, stdout, stderr } = run(['--check'], {
      UPSTREAMS: 'my-api=https://u.example/mcp?key=s3cret',
      UPSTREAM_MY_API_AUTHORIZATION: 'Bearer s3cret',
      UPSTREAM_MY_API_HEADERS: '{"x-api-key":"s3cret"}',
      PORT: '0',
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).not.toContain('s3cret');
    const lines = stdout.trim().split('\n');
    expect(lines).toContain('UPSTREAMS=my-api=https://u.example/mcp?key=…');
    expect(lines).toContain('UPSTREAM_MY_API_AUTHORIZATION=(set, hidden)');
    expect(lines).toContain('PORT=0');
    expect(lines).toContain('HOST=127.0.0.1  (default)');
    expect(lines).toHaveLength(SETTINGS.length + UPSTREAM_SETTINGS.length);
  });

  test.each([[['--check']], [[]]])('with faults, %j lists all of them and exits with 78 (C66)', (args) => {
    const { status, stdout, stderr } = run(args, {
      UPSTREAMS: 'a=https://user:s3cret@a/mcp,b=http://b',
      UPSTREAM_B_AUTHORIZATION: 'Bearer s3cret\n',
      UPSTREAM_C_WATCH: 'off',
      PORT: 'abc',
    });
    expect({ status, stdout }).toEqual({ status: 78, stdout: '' });
    expect(stderr).not.toContain('s3cret');
    const variables = stderr
      .trim()
      .split('\n')
      .map((line) => line.slice(0, line.indexOf(':')));
    expect(variables.sort()).toEqual(['PORT', 'UPSTREAMS', 'UPSTREAM_B_AUTHORIZATION', 'UPSTREAM_C_WATCH']);
  });
});
