/**
 * Owns: the table of settings: every environment variable with its kind, bounds, default, unit and meaning.
 * The README's tables are checked against it. Nothing else names a variable.
 */

import {
  MAX_BUFFER_BYTES,
  MAX_CACHE_BYTES,
  MAX_TIMER_MS,
  PORT,
  SCOPES,
  type Setting,
  TIMER,
  TTL,
} from './config-setting.js';

export type { Setting, SettingKind } from './config-setting.js';

export const SETTINGS = [
  {
    name: 'UPSTREAMS',
    kind: { type: 'upstreams' },
    required: true,
    meaning: 'the MCP servers, as comma-separated name=url',
  },
  { name: 'HOST', kind: { type: 'text' }, default: '127.0.0.1', meaning: 'address of the MCP listener' },
  { name: 'PORT', kind: PORT, default: '8080', meaning: 'port of the MCP listener; 0 picks a free one' },
  {
    name: 'ADMIN_HOST',
    kind: { type: 'text' },
    default: '127.0.0.1',
    meaning: 'address of the admin listener',
  },
  {
    name: 'ADMIN_PORT',
    kind: PORT,
    default: '9090',
    meaning: 'port of the admin listener; 0 picks a free one',
  },
  {
    name: 'ADMIN_TOKEN',
    kind: { type: 'secret' },
    meaning: 'when set, `/cache*` and `/` of the admin listener need `Authorization: Bearer` with it',
  },
  {
    name: 'REDIS_URL',
    kind: { type: 'redis-url' },
    meaning: 'the shared tier; unset: memory alone',
  },
  {
    name: 'REDIS_KEY_PREFIX',
    kind: { type: 'key-prefix' },
    default: 'mcg',
    meaning: 'first part of every key and channel',
  },
  {
    name: 'CACHE_MAX_BYTES',
    kind: { type: 'integer', min: 0, max: MAX_CACHE_BYTES },
    default: '268435456',
    unit: 'bytes',
    meaning: 'budget of the memory tier, values and keys counted',
  },
  {
    name: 'CACHE_MAX_ENTRY_BYTES',
    kind: { type: 'integer', min: 1, max: MAX_BUFFER_BYTES },
    default: '16777216',
    unit: 'bytes',
    meaning: 'a larger snapshot or result is not cached',
  },
  { name: 'CACHE_MAX_TTL_MS', kind: TTL, default: '86400000', unit: 'ms', meaning: 'ceiling on any `ttlMs`' },
  {
    name: 'CACHE_DEFAULT_TTL_MS',
    kind: TTL,
    default: '0',
    unit: 'ms',
    meaning: 'lifetime of a result without `ttlMs`; 0: immediately stale',
  },
  {
    name: 'CACHE_DEFAULT_SCOPE',
    kind: { type: 'choice', of: SCOPES },
    default: 'public',
    meaning: 'scope of a result that has `ttlMs` but no `cacheScope`',
  },
  {
    name: 'STALE_IF_ERROR_MS',
    kind: TTL,
    default: '300000',
    unit: 'ms',
    meaning: 'how long past its lifetime an entry may still answer when the refetch fails; 0: never',
  },
  {
    name: 'SNAPSHOT_MAX_PAGES',
    kind: { type: 'integer', min: 1, max: 1_000_000 },
    default: '1000',
    meaning: 'most pages of one walk',
  },
  {
    name: 'SNAPSHOT_MAX_ITEMS',
    kind: { type: 'integer', min: 1, max: 100_000_000 },
    default: '100000',
    meaning: 'most items of one walk',
  },
  {
    name: 'PAGE_SIZE',
    kind: { type: 'integer', min: 0, max: 100_000_000 },
    default: '0',
    meaning: '0: a snapshot is served whole; N: in pages of N, under the gateway’s own cursors',
  },
  {
    name: 'LIST_CHANGED_FLUSH',
    kind: { type: 'choice', of: ['upstream', 'all'] },
    default: 'upstream',
    meaning: 'what one `list_changed` flushes: everything of the upstream that sent it, or all upstreams',
  },
  {
    name: 'PUBLIC_SHARING',
    kind: { type: 'choice', of: ['any', 'verified'] },
    default: 'any',
    meaning:
      'who may be served a public entry: any caller, or only callers whose credentials the upstream accepted within `VERIFIED_TTL_MS`',
  },
  {
    name: 'VERIFIED_TTL_MS',
    kind: TTL,
    default: '300000',
    unit: 'ms',
    meaning: 'how long the upstream’s acceptance of credentials counts',
  },
  {
    name: 'AUTH_HEADERS',
    kind: { type: 'header-names' },
    default: 'authorization,cookie,x-api-key',
    meaning: 'request headers that make up the authorization context',
  },
  {
    name: 'VARY_HEADERS',
    kind: { type: 'header-names' },
    meaning: 'further request headers that are part of the cache key',
  },
  {
    name: 'ALLOWED_ORIGINS',
    kind: { type: 'origins' },
    default: 'loopback',
    meaning:
      '`Origin` values let in, exact or `*`; `loopback` stands for every origin on this machine; others get 403',
  },
  {
    name: 'ALLOWED_HOSTS',
    kind: { type: 'hosts' },
    meaning:
      '`Host` names let in, or `*`; unset: loopback names where the listener’s address is loopback, else any; others get 403',
  },
  {
    name: 'UPSTREAM_TIMEOUT_MS',
    kind: TIMER,
    default: '30000',
    unit: 'ms',
    meaning: 'for a cacheable fetch, the whole walk included; for other requests, until the response head',
  },
  {
    name: 'MAX_BODY_BYTES',
    kind: { type: 'integer', min: 1, max: MAX_BUFFER_BYTES },
    default: '4194304',
    unit: 'bytes',
    meaning: 'largest request body; a larger one gets 413',
  },
  {
    name: 'SHUTDOWN_GRACE_MS',
    kind: { type: 'integer', min: 0, max: MAX_TIMER_MS },
    default: '10000',
    unit: 'ms',
    meaning: 'how long requests in flight may take after SIGTERM or SIGINT',
  },
  {
    name: 'OAUTH_METADATA',
    kind: { type: 'choice', of: ['relay', 'rewrite'] },
    default: 'relay',
    meaning:
      '`relay`: protected-resource metadata and `WWW-Authenticate` as the upstream sent them; `rewrite`: they name this gateway under `PUBLIC_URL`',
  },
  {
    name: 'PUBLIC_URL',
    kind: { type: 'url' },
    meaning: 'where clients reach this gateway; needed for `OAUTH_METADATA=rewrite`',
  },
  {
    name: 'LOG_LEVEL',
    kind: { type: 'choice', of: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] },
    default: 'info',
    meaning: 'least severe level that is logged',
  },
  {
    name: 'LOG_PRETTY',
    kind: { type: 'boolean' },
    default: 'false',
    meaning: 'log lines for people instead of JSON',
  },
] as const satisfies readonly Setting[];

/** Settings of one upstream, each `UPSTREAM_<NAME>_` and this name. A default of another setting is named in it. */
export const UPSTREAM_SETTINGS = [
  {
    name: 'AUTHORIZATION',
    kind: { type: 'secret' },
    meaning: 'sent upstream when the client sends no `Authorization`, and for the gateway’s own watch',
  },
  {
    name: 'HEADERS',
    kind: { type: 'header-map' },
    meaning: 'a JSON object of further headers sent upstream, such as an API key',
  },
  {
    name: 'TTL_MS',
    kind: TTL,
    default: 'CACHE_DEFAULT_TTL_MS',
    unit: 'ms',
    meaning: 'lifetime where this server sends no `ttlMs`',
  },
  {
    name: 'MIN_TTL_MS',
    kind: TTL,
    default: '0',
    unit: 'ms',
    meaning: 'floor under whatever this server sends, 0 and nonsense included',
  },
  {
    name: 'SCOPE',
    kind: { type: 'choice', of: ['auto', 'private', 'public'] },
    default: 'auto',
    meaning: '`auto`: the hint; `private`: everything private; `public`: results without a hint are public',
  },
  {
    name: 'TIMEOUT_MS',
    kind: TIMER,
    default: 'UPSTREAM_TIMEOUT_MS',
    unit: 'ms',
    meaning: 'as `UPSTREAM_TIMEOUT_MS`, for this server',
  },
  {
    name: 'WATCH',
    kind: { type: 'choice', of: ['auto', 'off'] },
    default: 'auto',
    meaning: '`off`: no stream of the gateway’s own for change notifications',
  },
] as const satisfies readonly Setting[];

export type SettingName = (typeof SETTINGS)[number]['name'];
export type UpstreamSettingName = (typeof UPSTREAM_SETTINGS)[number]['name'];

/** What the variables of upstreams begin with. */
export const UPSTREAM_PREFIX = 'UPSTREAM_';

/** The variable of one setting of one upstream: the name in capitals, `-` as `_`. */
export function upstreamVariable(upstream: string, setting: UpstreamSettingName): string {
  return `${UPSTREAM_PREFIX}${upstream.toUpperCase().replaceAll('-', '_')}_${setting}`;
}
