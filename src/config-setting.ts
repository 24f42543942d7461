/** Owns: what a setting is: its kind, bounds, default, unit and meaning. */

export type SettingKind =
  | { readonly type: 'integer'; readonly min: number; readonly max: number }
  | { readonly type: 'boolean' }
  | { readonly type: 'text' }
  | { readonly type: 'secret' }
  | { readonly type: 'choice'; readonly of: readonly string[] }
  | { readonly type: 'header-names' }
  | { readonly type: 'header-map' }
  | { readonly type: 'upstreams' }
  | { readonly type: 'redis-url' }
  | { readonly type: 'key-prefix' }
  | { readonly type: 'origins' }
  | { readonly type: 'hosts' }
  | { readonly type: 'url' };

export interface Setting {
  readonly name: string;
  readonly kind: SettingKind;
  /** As it would be written in the environment; absent: no value, or required. */
  readonly default?: string;
  readonly required?: true;
  readonly unit?: 'ms' | 'bytes';
  readonly meaning: string;
}

/** The longest duration that a timer of Node holds, in milliseconds: 24.8 days. */
export const MAX_TIMER_MS = 2_147_483_647;
/** One year in milliseconds. */
const MAX_TTL_MS = 31_536_000_000;
/** 64 GiB. */
export const MAX_CACHE_BYTES = 68_719_476_736;
/** 1 GiB: more does not fit into one buffer of Node with room to work. */
export const MAX_BUFFER_BYTES = 1_073_741_824;

export const PORT = { type: 'integer', min: 0, max: 65_535 } as const;
export const TIMER = { type: 'integer', min: 1, max: MAX_TIMER_MS } as const;
export const TTL = { type: 'integer', min: 0, max: MAX_TTL_MS } as const;
export const SCOPES = ['public', 'private'] as const;
