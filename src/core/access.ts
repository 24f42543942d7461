/**
 * Owns: which `Origin` and `Host` values are let in (design, section 2; MCP basic/transports/streamable-http,
 * Security): a web page must not reach a listener on this machine by a name of its own. Compared as a whole, so
 * that no name that merely begins or ends like an allowed one passes.
 */
import { type RawHeaders, valuesOf } from './headers.js';

export interface AccessRules {
  /** Exact origins, or `*`; `loopback` stands for every origin on this machine. */
  readonly origins: readonly string[];
  /** Names without a port; `loopback` as above, `*` for any. */
  readonly hosts: readonly string[];
}

export type AccessVerdict = 'allowed' | 'origin-not-allowed' | 'host-not-allowed';

const LOOPBACK_NAME = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/i;
const LOOPBACK_ORIGIN = /^https?:\/\/(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i;

/** Whether an address to listen on is reachable from this machine alone. */
export function isLoopbackAddress(address: string): boolean {
  return LOOPBACK_NAME.test(address) || address === '::1';
}

/** Judges a request by its fields; more than one `Origin` or `Host` is never right. */
export function judgeAccess(headers: RawHeaders, rules: AccessRules): AccessVerdict {
  const hosts = valuesOf(headers, 'host');
  const host = hosts[0];
  const isHostAllowed =
    rules.hosts.includes('*') || (hosts.length === 1 && host !== undefined && allowsHost(host, rules));
  if (!isHostAllowed || hosts.length > 1) return 'host-not-allowed';
  const origins = valuesOf(headers, 'origin');
  if (origins.length === 0) return 'allowed';
  const origin = origins[0];
  return origins.length === 1 && origin !== undefined && allowsOrigin(origin, rules)
    ? 'allowed'
    : 'origin-not-allowed';
}

/** Whether scripts of this origin may call. */
export function allowsOrigin(origin: string, { origins }: Pick<AccessRules, 'origins'>): boolean {
  if (origins.includes('*')) return true;
  return origins.includes(origin) || (origins.includes('loopback') && LOOPBACK_ORIGIN.test(origin));
}

function allowsHost(host: string, { hosts }: AccessRules): boolean {
  const name = /^(\[[^\]]*\]|[^:]*)(?::\d{1,5})?$/.exec(host)?.[1]?.toLowerCase();
  if (name === undefined) return false;
  return hosts.includes(name) || (hosts.includes('loopback') && LOOPBACK_NAME.test(name));
}
