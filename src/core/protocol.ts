/**
 * Owns: the words of MCP that the gateway knows: cacheable methods and the shape of their results, change
 * notifications, protocol versions, header names, error codes (2026-07-28: server/utilities/caching,
 * basic/transports/streamable-http, basic/versioning).
 */

/** How the result of a cacheable method is built, and which parameter names its subject. */
export interface MethodShape {
  /** The field that holds the items of a list; absent where the result is not a list. */
  readonly itemsField?: string;
  /** The fields that a result must have, with their JSON type, to be taken for one of this method. */
  readonly required: Readonly<Record<string, 'array' | 'object'>>;
}

/** Law 1: the methods whose results may be cached. */
export const CACHEABLE_METHODS = {
  'resources/list': { itemsField: 'resources', required: { resources: 'array' } },
  'resources/templates/list': { itemsField: 'resourceTemplates', required: { resourceTemplates: 'array' } },
  'tools/list': { itemsField: 'tools', required: { tools: 'array' } },
  'prompts/list': { itemsField: 'prompts', required: { prompts: 'array' } },
  'resources/read': { required: { contents: 'array' } },
  'server/discover': { required: { supportedVersions: 'array', capabilities: 'object' } },
} as const satisfies Record<string, MethodShape>;

export type CacheableMethod = keyof typeof CACHEABLE_METHODS;

export function isCacheableMethod(method: string): method is CacheableMethod {
  return Object.hasOwn(CACHEABLE_METHODS, method);
}

export function methodShape(method: CacheableMethod): MethodShape {
  return CACHEABLE_METHODS[method];
}

/** Asks for a stream of notifications, which ends only with the subscription. */
export const LISTEN_METHOD = 'subscriptions/listen';

/** Methods that a log line may name; any other is a client's invention and stays out of the logs. */
const OTHER_KNOWN_METHODS = new Set([
  'initialize',
  'ping',
  'tools/call',
  'prompts/get',
  'completion/complete',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
  LISTEN_METHOD,
  'tasks/get',
  'tasks/update',
  'tasks/list',
  'tasks/result',
  'tasks/cancel',
  'notifications/initialized',
  'notifications/cancelled',
  'notifications/progress',
  'notifications/roots/list_changed',
]);

/** The method's name where MCP defines it, else `other`. */
export function knownMethod(method: string): string {
  return isCacheableMethod(method) || OTHER_KNOWN_METHODS.has(method) ? method : 'other';
}

/** The parameter that `Mcp-Name` mirrors, by method (streamable-http, Standard Request Headers). */
export const NAMED_BY: Readonly<Record<string, 'name' | 'uri'>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
};

export const MODERN_VERSION = '2026-07-28';
export const LEGACY_VERSION = '2025-11-25';

export type Era = 'modern' | 'legacy';

/** The era of a protocol version; undefined for what is not a dated version (basic/versioning). */
export function eraOf(version: string): Era | undefined {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(version)) return undefined;
  return version >= MODERN_VERSION ? 'modern' : 'legacy';
}

const META_PREFIX = 'io.modelcontextprotocol/';
export const META = {
  protocolVersion: `${META_PREFIX}protocolVersion`,
  clientInfo: `${META_PREFIX}clientInfo`,
  clientCapabilities: `${META_PREFIX}clientCapabilities`,
  logLevel: `${META_PREFIX}logLevel`,
} as const;

/** Law 3: `_meta` keys that are known not to change a result. */
export const NEUTRAL_META: ReadonlySet<string> = new Set([
  'progressToken',
  META.clientInfo,
  META.logLevel,
  'traceparent',
  'tracestate',
  'baggage',
]);

/** Law 18: notifications that flush everything of the upstream that sent them. */
export const LIST_CHANGED: ReadonlySet<string> = new Set([
  'notifications/resources/list_changed',
  'notifications/tools/list_changed',
  'notifications/prompts/list_changed',
]);
export const RESOURCE_UPDATED = 'notifications/resources/updated';
export const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

export const ERROR_CODE = {
  methodNotFound: -32601,
  invalidParams: -32602,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
} as const;

export const HEADER = {
  protocolVersion: 'mcp-protocol-version',
  method: 'mcp-method',
  name: 'mcp-name',
  session: 'mcp-session-id',
} as const;
