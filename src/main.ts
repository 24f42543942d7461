#!/usr/bin/env node
/** Owns: the edge of the process: environment, arguments, signals, exit status. Nothing else reads `process`. */
import { readFileSync } from 'node:fs';
import { createGateway } from './app.js';
import { helpText, readCommand } from './cli.js';
import { createClock } from './clock.js';
import { ConfigError, parseConfig, type Resolved } from './config.js';
import { createLogger, jsonDestination, type Logger, prettyDestination } from './telemetry.js';

/** Exit statuses of sysexits.h: a wrong command line, an upstream that does not answer, a wrong configuration. */
const EX_USAGE = 64;
const EX_UNAVAILABLE = 69;
const EX_CONFIG = 78;

/** How long the last traces may take to be sent where the grace allows as much, in milliseconds. */
const LAST_TRACES_MS = 2_000;

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

function checkText(resolved: readonly Resolved[], asJson: boolean): string {
  if (asJson) return JSON.stringify(resolved, undefined, 2);
  return resolved.map((r) => `${r.variable}=${r.value}${r.isDefault ? '  (default)' : ''}`).join('\n');
}

/** By the standard variables, which the OpenTelemetry packages read themselves. */
function wantsTraces(env: Readonly<Record<string, string | undefined>>): boolean {
  const endpoint = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? env.OTEL_EXPORTER_OTLP_ENDPOINT ?? '';
  const isOff = env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none';
  return endpoint !== '' && !isOff;
}

/** Says once that traces do not arrive, and no more: whoever runs no collector is not to read of it for ever. */
function tracesFailed(log: Logger): (error: unknown) => void {
  let isSaid = false;
  return (error) => {
    if (isSaid) return;
    isSaid = true;
    // Its text may hold what the endpoint's URL holds.
    const { name, code } = error instanceof Error ? (error as NodeJS.ErrnoException) : {};
    log.warn({ error: name, code }, 'traces could not be sent to OTEL_EXPORTER_OTLP_ENDPOINT');
  };
}

async function run(): Promise<void> {
  const { config } = readConfig();
  const clock = createClock();
  const destination = config.logPretty ? await prettyDestination() : jsonDestination(clock.sleep);
  const log = createLogger(config.logLevel, destination);
  const tracer = wantsTraces(process.env)
    ? (await import('./tracing-otel.js')).createOtelTracer(version, tracesFailed(log))
    : undefined;
  for (const { name, policy } of config.upstreams) {
    if (policy.minTtlMs > 0) {
      log.warn(
        { upstream: name, minTtlMs: policy.minTtlMs },
        'MIN_TTL_MS is set: results live on past what this server allows',
      );
    }
  }
  const gateway = createGateway({ config, clock, log, version, random: Math.random, tracer });
  let isClosing = false;
  const close = (signal: NodeJS.Signals) => {
    if (isClosing) process.exit(1);
    isClosing = true;
    log.info({ signal }, 'closing');
    const graceEndsAt = clock.now() + config.shutdownGraceMs;
    const lastTracesMs = () => Math.max(0, Math.min(LAST_TRACES_MS, graceEndsAt - clock.now()));
    const closed = gateway.close();
    const closedWithTraces =
      tracer === undefined
        ? closed
        : closed.then(() => Promise.race([tracer.close(), clock.sleep(lastTracesMs())]));
    closedWithTraces.then(
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

/** Tries the upstreams, and says what would be cached; the exit status says whether all of them answered. */
async function runProbe(asJson: boolean): Promise<void> {
  const { config } = readConfig();
  const { probe } = await import('./probe/probe.js');
  const { reportText } = await import('./probe/report.js');
  const report = await probe({ config, clock: createClock(), version, random: Math.random });
  print(asJson ? JSON.stringify(report, undefined, 2) : reportText(report));
  process.exit(report.every(({ ok }) => ok) ? 0 : EX_UNAVAILABLE);
}

const command = readCommand(process.argv.slice(2));
switch (command.kind) {
  case 'run':
    await run();
    break;
  case 'help':
    print(helpText());
    break;
  case 'version':
    print(version);
    break;
  case 'check':
    print(checkText(readConfig().resolved, command.asJson));
    break;
  case 'probe':
    await runProbe(command.asJson);
    break;
  case 'wrong':
    fail(command.what, EX_USAGE);
    break;
  default:
    command satisfies never;
}
