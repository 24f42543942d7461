/**
 * Owns: the configuration: the environment read by the table, all faults at once, frozen (design, section 2).
 * Modules are given their own few options, never the whole.
 */

import type { Fault, Value } from './config-parse.js';
import { createReader, type Environment, type Reader, type Resolved, upstreamsOf } from './config-reader.js';
import {
  SETTINGS,
  type SettingName,
  UPSTREAM_PREFIX,
  UPSTREAM_SETTINGS,
  type UpstreamSettingName,
  upstreamVariable,
} from './config-table.js';
import { type NamedUrl, namesIn } from './config-upstreams.js';
import type { FreshnessPolicy, Scope } from './core/freshness.js';
import { parseRedisUrl, type RedisAddress } from './core/redis-url.js';

export type { Environment, Resolved } from './config-reader.js';

export interface UpstreamConfig {
  readonly name: string;
  readonly url: string;
  readonly origin: string;
  readonly path: string;
  readonly authorization: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly policy: FreshnessPolicy;
  readonly timeoutMs: number;
  readonly watch: 'auto' | 'off';
}

export interface Config {
  readonly upstreams: readonly UpstreamConfig[];
  readonly host: string;
  readonly port: number;
  readonly adminHost: string;
  readonly adminPort: number;
  readonly adminToken: string | undefined;
  /** Absent: memory alone. */
  readonly redis: RedisAddress | undefined;
  readonly redisKeyPrefix: string;
  readonly cacheMaxBytes: number;
  readonly cacheMaxEntryBytes: number;
  readonly staleIfErrorMs: number;
  readonly snapshotMaxPages: number;
  readonly snapshotMaxItems: number;
  readonly pageSize: number;
  readonly listChangedFlush: 'upstream' | 'all';
  readonly publicSharing: 'any' | 'verified';
  readonly verifiedTtlMs: number;
  readonly authHeaders: readonly string[];
  readonly varyHeaders: readonly string[];
  readonly allowedOrigins: readonly string[];
  /** Absent: it depends on the listener's address. */
  readonly allowedHosts: readonly string[] | undefined;
  /** Present: OAuth metadata and challenges are made to name this gateway. */
  readonly publicUrl: string | undefined;
  readonly maxBodyBytes: number;
  readonly shutdownGraceMs: number;
  readonly logLevel: string;
  readonly logPretty: boolean;
}

export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly faults: readonly Fault[];

  constructor(faults: readonly Fault[]) {
    super(faults.map((f) => `${f.variable}: given ${f.given}; expected ${f.expected}`).join('\n'));
    this.faults = faults;
  }
}

/**
 * Reads the environment.
 * @throws ConfigError with every fault
 */
export function parseConfig(env: Environment): {
  readonly config: Config;
  readonly resolved: readonly Resolved[];
} {
  const reader = createReader(env);
  for (const setting of SETTINGS) reader.read(setting.name, setting, setting.name);
  const owners = readUpstreamSettings(env, namesIn(env.UPSTREAMS ?? ''), reader);
  if (reader.value('OAUTH_METADATA') === 'rewrite' && env.PUBLIC_URL === undefined) {
    reader.fault('PUBLIC_URL', 'nothing', 'the address of this gateway, since OAUTH_METADATA is rewrite');
  }
  reportUnknown(env, owners, reader);
  if (reader.faults.length > 0) throw new ConfigError(reader.faults);
  const config = build(reader, upstreamsOf(reader.value('UPSTREAMS')));
  return { config: Object.freeze(config), resolved: reader.resolved };
}

/** Reads what is set for each upstream; returns which upstream owns which variable. */
function readUpstreamSettings(
  env: Environment,
  names: readonly string[],
  reader: Reader,
): ReadonlyMap<string, string> {
  const owners = new Map<string, string>();
  for (const name of names) {
    for (const setting of UPSTREAM_SETTINGS) {
      const variable = upstreamVariable(name, setting.name);
      const rival = owners.get(variable);
      if (rival === undefined || env[variable] === undefined) {
        reader.read(variable, setting, slotOf(name, setting.name));
      } else {
        const given = `a variable of both ${rival} and ${name}`;
        reader.fault(variable, given, 'names that keep their variables apart');
      }
      owners.set(variable, name);
    }
  }
  return owners;
}

/** Where a value is kept: two upstreams whose names run together still have settings of their own. */
function slotOf(upstream: string, setting: UpstreamSettingName): string {
  return `${upstream}/${setting}`;
}

/** A typing error must not silently turn a setting off. */
function reportUnknown(env: Environment, owners: ReadonlyMap<string, string>, reader: Reader): void {
  const known = new Set<string>(SETTINGS.map((setting) => setting.name));
  const settings = UPSTREAM_SETTINGS.map((setting) => setting.name).join(', ');
  const expected = `${UPSTREAM_PREFIX}<NAME>_ of a configured upstream, then one of ${settings}`;
  for (const variable of Object.keys(env)) {
    const isOurs = variable.startsWith(UPSTREAM_PREFIX) && env[variable] !== undefined;
    if (isOurs && !known.has(variable) && !owners.has(variable)) {
      reader.fault(variable, 'a variable without meaning', expected);
    }
  }
}

function build(reader: Reader, named: readonly NamedUrl[]): Config {
  const integer = (name: SettingName) => asNumber(reader.value(name));
  const text = (name: SettingName) => asText(reader.value(name));
  const global = {
    maxTtlMs: integer('CACHE_MAX_TTL_MS'),
    defaultScope: asScope(reader.value('CACHE_DEFAULT_SCOPE')),
  };
  return {
    upstreams: named.map((upstream) => buildUpstream(reader, upstream, global)),
    host: text('HOST'),
    port: integer('PORT'),
    adminHost: text('ADMIN_HOST'),
    adminPort: integer('ADMIN_PORT'),
    adminToken: reader.value('ADMIN_TOKEN') === undefined ? undefined : text('ADMIN_TOKEN'),
    redis: parseRedisUrl(text('REDIS_URL')),
    redisKeyPrefix: text('REDIS_KEY_PREFIX'),
    cacheMaxBytes: integer('CACHE_MAX_BYTES'),
    cacheMaxEntryBytes: integer('CACHE_MAX_ENTRY_BYTES'),
    staleIfErrorMs: integer('STALE_IF_ERROR_MS'),
    snapshotMaxPages: integer('SNAPSHOT_MAX_PAGES'),
    snapshotMaxItems: integer('SNAPSHOT_MAX_ITEMS'),
    pageSize: integer('PAGE_SIZE'),
    publicSharing: text('PUBLIC_SHARING') === 'any' ? 'any' : 'verified',
    verifiedTtlMs: integer('VERIFIED_TTL_MS'),
    listChangedFlush: text('LIST_CHANGED_FLUSH') === 'all' ? 'all' : 'upstream',
    authHeaders: asNames(reader.value('AUTH_HEADERS')),
    varyHeaders: asNames(reader.value('VARY_HEADERS')),
    allowedOrigins: asNames(reader.value('ALLOWED_ORIGINS')),
    allowedHosts:
      reader.value('ALLOWED_HOSTS') === undefined ? undefined : asNames(reader.value('ALLOWED_HOSTS')),
    publicUrl: text('OAUTH_METADATA') === 'rewrite' ? text('PUBLIC_URL') : undefined,
    maxBodyBytes: integer('MAX_BODY_BYTES'),
    shutdownGraceMs: integer('SHUTDOWN_GRACE_MS'),
    logLevel: text('LOG_LEVEL'),
    logPretty: text('LOG_PRETTY') === 'true',
  };
}

function buildUpstream(
  reader: Reader,
  upstream: NamedUrl,
  global: { readonly maxTtlMs: number; readonly defaultScope: Scope },
): UpstreamConfig {
  const value = (name: UpstreamSettingName) => reader.value(slotOf(upstream.name, name));
  const scope = value('SCOPE');
  const authorization = value('AUTHORIZATION');
  return {
    ...upstream,
    authorization: typeof authorization === 'string' ? authorization : undefined,
    headers: asHeaders(value('HEADERS')),
    policy: {
      ...global,
      defaultTtlMs: asNumber(value('TTL_MS')),
      minTtlMs: asNumber(value('MIN_TTL_MS')),
      scope: scope === 'private' || scope === 'public' ? scope : 'auto',
    },
    timeoutMs: asNumber(value('TIMEOUT_MS')),
    watch: value('WATCH') === 'off' ? 'off' : 'auto',
  };
}

function asNumber(value: Value | undefined): number {
  return typeof value === 'number' ? value : 0;
}

function asText(value: Value | undefined): string {
  return typeof value === 'string' ? value : '';
}

function asScope(value: Value | undefined): Scope {
  return value === 'public' ? 'public' : 'private';
}

function asNames(value: Value | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((name) => typeof name === 'string') : [];
}

function asHeaders(value: Value | undefined): Readonly<Record<string, string>> {
  if (typeof value !== 'object' || Array.isArray(value)) return {};
  return Object.fromEntries(
    Object.entries(value).filter((pair): pair is [string, string] => typeof pair[1] === 'string'),
  );
}
