/** Owns: what a probe found, and the plain words for it: what would be cached, how long, for whom, and what to change. */
import { upstreamVariable } from '../config-table.js';
import type { Era } from '../core/protocol.js';

export interface ProbedList {
  readonly method: string;
  /** What the server itself said; null where it said nothing. */
  readonly ttlMs: unknown;
  readonly cacheScope: unknown;
  readonly durationMs: number;
  readonly pages: number;
  readonly items: number;
  /** Present where the gateway would keep it. */
  readonly kept?: {
    readonly lifetimeMs: number;
    readonly scope: string;
    readonly bytes: number;
  };
  /** Why it would not be kept, in the words of `Cache-Status`, or the server's own error. */
  readonly reason?: string;
}

export interface ProbedUpstream {
  readonly name: string;
  /** Whether it answered as an MCP server does. */
  readonly ok: boolean;
  readonly problem?: string;
  readonly status?: number;
  readonly era?: Era;
  readonly server?: { readonly name: string; readonly version: string };
  readonly capabilities?: readonly string[];
  /** The state of the watch. */
  readonly watch: string;
  readonly lists: readonly ProbedList[];
}

export type Report = readonly (ProbedUpstream & { readonly advice: readonly string[] })[];

/** What an operator might change, most pressing first. */
export function adviceFor(probed: ProbedUpstream): string[] {
  const variable = (setting: Parameters<typeof upstreamVariable>[1]) =>
    upstreamVariable(probed.name, setting);
  const { status, lists } = probed;
  if (status === 401 || status === 403)
    return [
      `It refused the gateway itself (${status}). Clients bring their own credentials; for the watch and for this probe set ${variable('AUTHORIZATION')} or ${variable('HEADERS')}.`,
    ];
  if (!probed.ok) return ['Check the URL in UPSTREAMS and the network between here and there.'];
  const advice: string[] = [];
  const unkept = lists.filter(({ reason }) => reason === 'zero-lifetime');
  const names = (some: readonly ProbedList[]) => some.map(({ method }) => method).join(', ');
  const silent = unkept.filter(({ ttlMs }) => ttlMs === null);
  const zero = unkept.filter(({ ttlMs }) => ttlMs !== null);
  if (silent.length > 0)
    advice.push(
      `It sends no ttlMs (${names(silent)}): ${variable('TTL_MS')} gives them a lifetime, in milliseconds.`,
    );
  if (zero.length > 0)
    advice.push(
      `It says that answers are stale at once (${names(zero)}). Best is a ttlMs from the server; if you know that it means less by it, ${variable('MIN_TTL_MS')} is a floor.`,
    );
  const alone = lists.filter(({ kept, cacheScope }) => kept?.scope === 'private' && cacheScope === null);
  if (alone.length > 0)
    advice.push(
      `It does not say who may share (${names(alone)}), so each caller has its own copy. If they are the same for all, set ${variable('SCOPE')}=public.`,
    );
  if (probed.watch === 'refused')
    advice.push('It offers no change notifications: what is kept lives out its lifetime.');
  return advice;
}

/** The report for people. */
export function reportText(report: Report): string {
  return report.map(upstreamText).join('\n\n');
}

function upstreamText(probed: Report[number]): string {
  const { server, era, capabilities = [], lists, advice } = probed;
  const head = probed.ok
    ? `${probed.name}: ${server?.name} ${server?.version}, ${era} era, ${capabilities.join(', ') || 'no capabilities'}; watch ${probed.watch}`
    : `${probed.name}: ${probed.problem}`;
  const rows = lists.map(({ method, ttlMs, cacheScope, pages, items, durationMs, kept, reason }) => [
    method,
    shown(ttlMs),
    shown(cacheScope),
    String(pages),
    String(items),
    `${durationMs} ms`,
    kept === undefined ? `not kept: ${reason}` : `kept ${span(kept.lifetimeMs)}, ${whom(kept.scope)}`,
  ]);
  const columns = ['list', 'ttlMs', 'cacheScope', 'pages', 'items', 'took', 'the gateway'];
  const table = rows.length === 0 ? [] : tableOf([columns, ...rows]);
  return [head, ...table, ...advice.map((line) => `  → ${line}`)].map(printable).join('\n');
}

/** What a server calls itself must not steer the terminal. */
const printable = (line: string) => line.replaceAll(/\p{Cc}/gu, ' ');

function tableOf(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => (row[i] ?? '').length)));
  return rows.map((row) => `  ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')}`.trimEnd());
}

const shown = (hint: unknown) => (hint === null ? '–' : JSON.stringify(hint).replaceAll('"', ''));
const whom = (scope: string) => (scope === 'public' ? 'for every caller' : 'for each caller alone');

function span(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  if (ms < 60_000) return `${Math.round(ms / 1_000)} s`;
  return ms < 3_600_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;
}
