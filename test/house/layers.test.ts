/** The structure of src (design.md section 4, style.md Structure): floors, cycles, homes, sizes. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const SRC = fileURLToPath(new URL('../../src', import.meta.url));
const MAX_LINES = 260;

/** What each floor may import, itself aside; a file at the top level is a floor by its own name. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  errors: ['core'],
  core: ['errors'],
  clock: [],
  telemetry: ['core', 'errors'],
  tracing: ['core'],
  config: ['core'],
  cli: ['config'],
  cache: ['core', 'errors', 'clock', 'telemetry'],
  upstream: ['core', 'errors', 'clock', 'telemetry'],
  http: ['cache', 'upstream', 'core', 'errors', 'clock', 'telemetry', 'tracing'],
  app: ['http', 'cache', 'upstream', 'core', 'errors', 'clock', 'telemetry', 'tracing', 'config'],
  healthcheck: [],
  probe: ['app', 'clock', 'config', 'core', 'errors', 'telemetry'],
  main: ['http', 'app', 'probe', 'cli', 'clock', 'config', 'telemetry', 'tracing', 'errors'],
  demo: ['app', 'clock', 'config', 'telemetry', 'core', 'errors'],
};

/** Packages, and the modules of Node that reach the world, by the floors that may import them. */
const PACKAGE_HOMES: Readonly<Record<string, readonly string[]>> = {
  fastify: ['http', 'app'],
  '@fastify/cors': ['http'],
  'prom-client': ['app'],
  undici: ['upstream'],
  'lru-cache': ['cache'],
  ioredis: ['cache', 'app'],
  pino: ['telemetry'],
  'pino-pretty': ['telemetry'],
  '@opentelemetry/api': ['tracing'],
  '@opentelemetry/core': ['tracing'],
  '@opentelemetry/exporter-trace-otlp-http': ['tracing'],
  '@opentelemetry/resources': ['tracing'],
  '@opentelemetry/sdk-trace-base': ['tracing'],
  'node:fs': ['main', 'http'],
  'node:process': ['main'],
  'node:perf_hooks': ['clock'],
  'node:timers': ['clock'],
  'node:timers/promises': ['clock'],
};
const CORE_MODULES = ['node:crypto', 'node:buffer'];

/** What has one home; the demo is an edge of its own. */
const HOMES: readonly {
  readonly what: string;
  readonly pattern: RegExp;
  readonly homes: readonly string[];
}[] = [
  { what: 'the time of day', pattern: /\bDate\.now\b|\bnew Date\b|\bperformance\./, homes: ['clock.ts'] },
  { what: 'timers', pattern: /(?<!\.)\bset(Timeout|Interval)\b/, homes: ['clock.ts'] },
  { what: 'the process', pattern: /\bprocess[.[]/, homes: ['main.ts', 'healthcheck.ts'] },
  { what: 'chance', pattern: /\bMath\.random\b/, homes: ['main.ts'] },
  { what: 'the console', pattern: /\bconsole\b/, homes: [] },
];

const IMPORTS = [
  /^(?:import|export)\b[^;'"(]*?\bfrom\s+'([^']+)'/gm,
  /^import\s+'([^']+)'/gm,
  /\bimport\(\s*'([^']+)'/g,
];

interface Source {
  /** The path within src, with slashes. */
  readonly path: string;
  readonly floor: string;
  readonly text: string;
  /** Without comments. */
  readonly code: string;
  /** Paths within src. */
  readonly imports: readonly string[];
  readonly packages: readonly string[];
}

function readSource(file: string): Source {
  const text = readFileSync(join(SRC, file), 'utf8');
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1');
  const path = file.split(sep).join('/');
  const specifiers = IMPORTS.flatMap((pattern) => [...code.matchAll(pattern)].flatMap((m) => m[1] ?? []));
  const own = specifiers.filter((specifier) => specifier.startsWith('.'));
  return {
    path,
    floor: floorOf(path),
    text,
    code,
    imports: own.map((specifier) => resolve(path, specifier)),
    packages: specifiers.filter((specifier) => !specifier.startsWith('.')),
  };
}

/** The folder, or the name of a file at the top level; the parts of the configuration are one, those of tracing as well. */
function floorOf(path: string): string {
  const [head = ''] = path.split('/');
  return head.replace(/\.ts$/, '').replace(/^(config|tracing)-.*/, '$1');
}

function resolve(path: string, specifier: string): string {
  const target = join(SRC, dirname(path), specifier.replace(/\.js$/, '.ts'));
  return relative(SRC, target).split(sep).join('/');
}

const SOURCES = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map(readSource);
const BY_PATH = new Map(SOURCES.map((source) => [source.path, source]));

/** A way from `path` back to itself along imports, if there is one. */
function cycleFrom(path: string, trail: readonly string[], done: Set<string>): readonly string[] | undefined {
  if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path];
  if (done.has(path)) return undefined;
  for (const next of BY_PATH.get(path)?.imports ?? []) {
    const cycle = cycleFrom(next, [...trail, path], done);
    if (cycle !== undefined) return cycle;
  }
  done.add(path);
  return undefined;
}

test('the sources and their imports are found', () => {
  expect(SOURCES.map(({ floor }) => floor)).toEqual(
    expect.arrayContaining(['core', 'cache', 'upstream', 'http', 'app', 'main', 'config']),
  );
  expect(BY_PATH.get('app.ts')?.imports).toContain('cache/compose.ts');
  expect(BY_PATH.get('core/key.ts')?.packages).toEqual(['node:crypto']);
  const missing = SOURCES.flatMap(({ imports }) => imports).filter((path) => !BY_PATH.has(path));
  expect(missing).toEqual([]);
});

describe('floors: imports go downward only', () => {
  test.each(SOURCES)('$path imports what its floor may', ({ floor, imports }) => {
    expect(Object.keys(MAY_IMPORT)).toContain(floor);
    const allowed = [floor, ...(MAY_IMPORT[floor] ?? [])];
    expect(imports.filter((path) => !allowed.includes(floorOf(path)))).toEqual([]);
  });

  test('cache and upstream do not know each other', () => {
    for (const { path, floor, imports } of SOURCES) {
      const other = floor === 'cache' ? 'upstream/' : floor === 'upstream' ? 'cache/' : undefined;
      if (other !== undefined) expect([path, imports.filter((p) => p.startsWith(other))]).toEqual([path, []]);
    }
  });

  test('only app and main import http, and nothing imports app, main or the demo but the edges', () => {
    const importers = (pattern: RegExp) =>
      SOURCES.filter(({ imports }) => imports.some((path) => pattern.test(path))).map(({ floor }) => floor);
    expect(importers(/^http\//).filter((floor) => !['http', 'app', 'main'].includes(floor))).toEqual([]);
    expect(importers(/^app\.ts$/).filter((floor) => !['main', 'demo', 'probe'].includes(floor))).toEqual([]);
    expect(importers(/^main\.ts$/)).toEqual([]);
    expect(importers(/^demo\//).filter((floor) => floor !== 'demo')).toEqual([]);
  });

  test('core imports no package but for hashing and UTF-8', () => {
    const packages = SOURCES.filter(({ floor }) => floor === 'core').flatMap((source) => source.packages);
    expect(packages.filter((name) => !CORE_MODULES.includes(name))).toEqual([]);
  });

  test.each(Object.entries(PACKAGE_HOMES))('%s is imported by %j alone', (name, homes) => {
    const strangers = SOURCES.filter(({ floor, packages }) => floor !== 'demo' && packages.includes(name));
    expect(strangers.filter(({ floor }) => !homes.includes(floor)).map(({ path }) => path)).toEqual([]);
  });

  test('no import goes round in a circle', () => {
    const done = new Set<string>();
    expect(SOURCES.flatMap(({ path }) => cycleFrom(path, [], done) ?? [])).toEqual([]);
  });
});

describe('one home', () => {
  test.each(HOMES)('$what is asked for in $homes alone', ({ pattern, homes }) => {
    const users = SOURCES.filter(({ floor, code }) => floor !== 'demo' && pattern.test(code));
    expect(users.map(({ path }) => path).sort()).toEqual([...homes].sort());
  });

  test('nothing is exported by default, and no file gathers the exports of others', () => {
    const bad = SOURCES.filter(({ code }) => /^export (default|\*)/m.test(code)).map(({ path }) => path);
    expect(bad).toEqual([]);
  });
});

describe('sizes', () => {
  test.each(SOURCES)(`$path has at most ${MAX_LINES} lines`, ({ text }) => {
    expect(text.trimEnd().split('\n').length).toBeLessThanOrEqual(MAX_LINES);
  });
});

test.each(SOURCES)('$path says at its head what it owns', ({ text }) => {
  expect(text.replace(/^#!.*\n/, '')).toMatch(/^\/\*\*[\s\S]{0,20}?Owns: /);
});
