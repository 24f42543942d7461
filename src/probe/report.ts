/** Owns: what a probe found, and the plain words for it: what would be cached, how long, for whom, and what to change. */
import type { Config } from '../config.js';
import { upstreamVariable } from '../config-table.js';
import type { Era } from '../core/protocol.js';

/** What is said of a server, or a list, that did not come within the time set for it. */
export const LATE = 'it did not answer in time';

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
    /** Who may be served it where it is public (PUBLIC_SHARING). */
    readonly sharing: Config['publicSharing'];
    readonly bytes: number;
  };
  /** Why it would not be kept, in the words of `Cache-Status`, or what came in place of the list. */
  readonly reason?: string;
  /** Present where no list came: the status of what did; absent where nothing came. */
  readonly refused?: { readonly status?: number };
}

export interface ProbedUpstream {
  readonly name: string;
  /** Whether it answered as an MCP server does, each list that it declares included. */
  readonly ok: boolean;
  readonly problem?: string;
  readonly status?: number;
  readonly era?: Era;
  readonly server?: { readonly name: string; readonly version: string };
  readonly capabilities?: readonly string[];
  /** The state of the watch, and why it does not stand. */
  readonly watch: string;
  readonly watchReason?: string | undefined;
  readonly lists: readonly ProbedList[];
}

export type Report = readonly (ProbedUpstream & { readonly advice: readonly string[] })[];

/** What an operator might change, most pressing first. */
export function adviceFor(probed: ProbedUpstream): string[] {
  const variable = (setting: Parameters<typeof upstreamVariable>[1]) =>
    upstreamVariable(probed.name, setting);
  const { status, lists, watchReason } = probed;
  const advice: string[] = [];
  const refusal = [status, ...lists.map(({ refused }) => refused?.status)].find(isAboutCredentials);
  const isWatchRefused = watchReason === 'status 401' || watchReason === 'status 403';
  if (refusal !== undefined || isWatchRefused)
    advice.push(
      `It refused the gateway itself (${refusal ?? `the watch: ${watchReason}`}). Clients bring their own credentials; for the watch and for this probe set ${variable('AUTHORIZATION')} or ${variable('HEADERS')}.`,
    );
  if (!probed.ok && lists.length === 0 && advice.length === 0)
    return ['Check the URL in UPSTREAMS and the network between here and there.'];
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
  const late = lists.filter(({ reason }) => reason === LATE);
  if (late.length > 0)
    advice.push(
      `It did not answer in time (${names(late)}). If it needs longer, ${variable('TIMEOUT_MS')} is how long the gateway waits, in milliseconds.`,
    );
  const failing = lists.filter(({ refused }) => (refused?.status ?? 0) >= 500);
  if (failing.length > 0) advice.push(`It failed to answer (${names(failing)}): its own log tells why.`);
  if (!isWatchRefused && probed.watch === 'refused')
    advice.push(`It offers no change notifications (${watchReason}): what is kept lives out its lifetime.`);
  if (probed.watch === 'waiting' && probed.ok)
    advice.push(
      `Its change notifications did not come (${watchReason}): until the watch stands, what is kept lives out its lifetime.`,
    );
  return advice;
}

const isAboutCredentials = (status: number | undefined) => status === 401 || status === 403;

/** The report for people. */
export function reportText(report: Report): string {
  return report.map(upstreamText).join('\n\n');
}

function upstreamText(probed: Report[number]): string {
  const { server, era, capabilities = [], lists, advice } = probed;
  const watch = probed.watchReason === undefined ? probed.watch : `${probed.watch} (${probed.watchReason})`;
  const head =
    era === undefined
      ? `${probed.name}: ${probed.problem}`
      : `${probed.name}: ${server?.name} ${server?.version}, ${era} era, ${capabilities.join(', ') || 'no capabilities'}; watch ${watch}`;
  const rows = lists.map(({ method, ttlMs, cacheScope, pages, items, durationMs, kept, reason }) => [
    method,
    shown(ttlMs),
    shown(cacheScope),
    String(pages),
    String(items),
    `${durationMs} ms`,
    kept === undefined ? `not kept: ${reason}` : `kept ${span(kept.lifetimeMs)}, ${whom(kept)}`,
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
function whom({ scope, sharing }: NonNullable<ProbedList['kept']>): string {
  if (scope !== 'public') return 'for each caller alone';
  return sharing === 'any' ? 'for every caller' : 'for every caller whom the server has accepted';
}

function span(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  return seconds < 3_600 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`;
}
