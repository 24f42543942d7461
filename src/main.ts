#!/usr/bin/env node
/** Owns: the edge of the process: environment, arguments, signals, exit status. Nothing else reads `process`. */
import { readFileSync } from 'node:fs';
import { createGateway } from './app.js';
import { helpText } from './cli.js';
import { createClock } from './clock.js';
import { ConfigError, parseConfig, type Resolved } from './config.js';
import { createLogger } from './telemetry.js';

/** Exit statuses of sysexits.h: a wrong command line, and a wrong configuration. */
const EX_USAGE = 64;
const EX_CONFIG = 78;

const version = readVersion();

function readVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  const { version: found }: { version: string } = JSON.parse(text);
  return found;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function fail(text: string, status: number): never {
  process.stderr.write(`${text}\n`);
  process.exit(status);
}

function readConfig() {
  try {
    return parseConfig(process.env);
  } catch (error) {
    if (error instanceof ConfigError) return fail(error.message, EX_CONFIG);
    throw error;
  }
}

function checkText(resolved: readonly Resolved[]): string {
  return resolved.map((r) => `${r.variable}=${r.value}${r.isDefault ? '  (default)' : ''}`).join('\n');
}

async function run(): Promise<void> {
  const { config } = readConfig();
  const log = createLogger(config.logLevel);
  for (const { name, policy } of config.upstreams) {
    if (policy.minTtlMs > 0) {
      log.warn(
        { upstream: name, minTtlMs: policy.minTtlMs },
        'MIN_TTL_MS is set: results live on past what this server allows',
      );
    }
  }
  const gateway = createGateway({ config, clock: createClock(), log, version, random: Math.random });
  let isClosing = false;
  const close = (signal: NodeJS.Signals) => {
    if (isClosing) process.exit(1);
    isClosing = true;
    log.info({ signal }, 'closing');
    gateway.close().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ err: error }, 'closing failed');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', close);
  process.on('SIGINT', close);
  try {
    await gateway.listen();
  } catch (error) {
    log.fatal({ err: error }, 'cannot listen');
    process.exit(1);
  }
}

const [argument, ...more] = process.argv.slice(2);
if (argument === undefined) await run();
else if (more.length > 0) fail('at most one argument is taken; see --help', EX_USAGE);
else if (argument === '--help') print(helpText());
else if (argument === '--version') print(version);
else if (argument === '--check') print(checkText(readConfig().resolved));
else fail(`unknown argument ${JSON.stringify(argument)}; see --help`, EX_USAGE);
