/**
 * Owns: the names of everything in Redis: keys and the one channel. All that belongs to an upstream bears one
 * hash tag, made of its name and its URL: on a cluster it lies on one node, and another server under the same
 * name shares nothing with it.
 */
import { createHash } from 'node:crypto';

export interface UpstreamKeys {
  /** The name of this upstream in messages. */
  readonly tag: string;
  readonly generation: string;
  readonly drops: string;
  readonly dropLog: string;
  /** Before the generation and an entry's key. */
  readonly entryPrefix: string;
  /** Before the generation and an index's name. */
  readonly indexPrefix: string;
  readonly watchLease: string;
  fetchLease(key: string): string;
}

export function channelOf(prefix: string): string {
  return `${prefix}:changes`;
}

export function keysOf(
  prefix: string,
  upstream: { readonly name: string; readonly url: string },
): UpstreamKeys {
  const tag = `${upstream.name}.${digestOf(JSON.stringify([upstream.name, upstream.url]))}`;
  const base = `${prefix}:{${tag}}`;
  return {
    tag,
    generation: `${base}:generation`,
    drops: `${base}:drops`,
    dropLog: `${base}:droplog`,
    entryPrefix: `${base}:entry:`,
    indexPrefix: `${base}:index:`,
    watchLease: `${base}:watch`,
    fetchLease: (key) => `${base}:fetch:${digestOf(key)}`,
  };
}

/** A short digest of any text, for names in Redis. */
export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}
