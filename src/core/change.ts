/**
 * Owns: which messages of an upstream say that something changed, and what they make untrue (design, law 18).
 * A notification says only that a list changed, not how: nothing is compared.
 */
import { LIST_CHANGED, RESOURCE_UPDATED } from './protocol.js';

export type Change =
  | { readonly kind: 'list-changed'; readonly method: string }
  | { readonly kind: 'resource-updated'; readonly uri: string };

/** The changes that one message, or each message of a batch, announces. Never throws. */
export function changesIn(data: Buffer): Change[] {
  if (!mayAnnounce(data)) return [];
  const parsed = parse(data.toString('utf8'));
  const messages: unknown[] = Array.isArray(parsed) ? parsed : [parsed];
  return messages.flatMap(changeOf);
}

/** Most messages are no notification of change: they are not worth a parse. Escapes could hide the name. */
function mayAnnounce(data: Buffer): boolean {
  return data.includes('list_changed') || data.includes('updated') || data.includes('\\u');
}

function changeOf(message: unknown): Change[] {
  if (!isObject(message) || typeof message.method !== 'string' || 'id' in message) return [];
  if (LIST_CHANGED.has(message.method)) return [{ kind: 'list-changed', method: message.method }];
  if (message.method !== RESOURCE_UPDATED || !isObject(message.params)) return [];
  const { uri } = message.params;
  return typeof uri === 'string' ? [{ kind: 'resource-updated', uri }] : [];
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
