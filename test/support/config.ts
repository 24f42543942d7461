/** Configurations from an environment, with what is wrong with it. */
import { type Config, ConfigError, type Environment, parseConfig, type Resolved } from '../../src/config.js';
import { SETTINGS, type Setting, UPSTREAM_SETTINGS, upstreamVariable } from '../../src/config-table.js';

/** Every setting under the variable that sets it, those of the upstream `u` included. */
export const ALL_SETTINGS: readonly Setting[] = [
  ...SETTINGS,
  ...UPSTREAM_SETTINGS.map((setting) => ({ ...setting, name: upstreamVariable('u', setting.name) })),
];

const ONE_UPSTREAM = { UPSTREAMS: 'u=http://u.example/mcp' };

export function configOf(env: Environment = {}): Config {
  return parseConfig({ ...ONE_UPSTREAM, ...env }).config;
}

export function resolvedOf(env: Environment = {}): readonly Resolved[] {
  return parseConfig({ ...ONE_UPSTREAM, ...env }).resolved;
}

/** The error of a faulty environment; fails where it is good. */
export function configErrorOf(env: Environment): ConfigError {
  try {
    parseConfig({ ...ONE_UPSTREAM, ...env });
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error('the configuration has no fault');
}

/** The variables that have faults, in order. */
export function faultyVariables(env: Environment): string[] {
  return configErrorOf(env).faults.map(({ variable }) => variable);
}
