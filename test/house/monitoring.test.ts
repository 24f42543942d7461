/** The alerts and the dashboard ask for what is registered, and ask for it well. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { createMetrics } from '../../src/app/metrics.js';
import { promtool } from '../support/promtool.js';

const ROOT = new URL('../../', import.meta.url);
const pathOf = (path: string) => fileURLToPath(new URL(path, ROOT));
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8');

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly { readonly expr: string }[];
}

interface Dashboard {
  readonly uid: string;
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly type: string; readonly query: unknown }[];
  };
}

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly { readonly record?: string; readonly expr: string }[];
  }[];
}

const DASHBOARDS = 'docker/grafana/dashboards';
const dashboard: Dashboard = JSON.parse(read(`${DASHBOARDS}/mcp-cache-gateway.json`));
const queries = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
const { groups }: Rules = parse(read('docker/alerts.yml'));
const rules = groups.flatMap((group) => group.rules);

/** Every name under which Prometheus stores something of the gateway's. */
async function storedNames(): Promise<Set<string>> {
  const text = await createMetrics(['u']).text({
    entries: () => ({ entries: 0, bytes: 0 }),
    isWatchConnected: () => false,
  });
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  return new Set(
    types.flatMap(([, name = '', type]) =>
      type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  );
}

function namesIn(expression: string): string[] {
  return expression.match(/(?<![\w:])(?:mcp_cache_gateway|nodejs|process)_\w+/g) ?? [];
}

let names: Set<string>;
let dir: string;
beforeAll(async () => {
  names = await storedNames();
  dir = mkdtempSync(join(tmpdir(), 'mcg-rules-'));
});
afterAll(() => rmSync(dir, { recursive: true }));

describe('the alerts', () => {
  test('ask for metrics that are registered', () => {
    const asked = rules.flatMap(({ expr }) => namesIn(expr));
    expect(asked.length).toBeGreaterThan(5);
    expect(asked.filter((name) => !names.has(name))).toEqual([]);
  });

  test('are good rules, and the configuration that reads them is good', async () => {
    expect(await promtool(['check', 'config', pathOf('docker/prometheus.yml')])).toMatchObject({ status: 0 });
  });

  test('go off when they should, and only then', async () => {
    const { status, lines } = await promtool(['test', 'rules', pathOf('test/house/alerts.yml')]);
    expect([status, lines.filter((line) => !/Unit Testing|SUCCESS/.test(line))]).toEqual([0, []]);
  });
});

describe('the dashboard', () => {
  test('asks for metrics that are registered', () => {
    const asked = [
      ...queries,
      ...dashboard.templating.list.map(({ query }) => JSON.stringify(query)),
    ].flatMap(namesIn);
    expect(asked.length).toBeGreaterThan(30);
    expect(asked.filter((name) => !names.has(name))).toEqual([]);
  });

  test('shows every metric of the gateway’s own', () => {
    const asked = new Set(queries.flatMap(namesIn).map((name) => name.replace(/_(bucket|sum|count)$/, '')));
    const missing = createMetrics(['u']).table.filter(({ name }) => !asked.has(name));
    expect(missing).toEqual([]);
  });

  test('asks in queries that Prometheus understands', async () => {
    const file = join(dir, 'queries.yml');
    const asRules = queries.map((expr, i) => ({
      record: `query:${i}`,
      expr: expr.replaceAll('$__rate_interval', '1m').replaceAll('$upstream', '.*'),
    }));
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'queries', rules: asRules }] }));
    const { status, lines } = await promtool(['check', 'rules', file]);
    expect([status, lines]).toMatchObject([0, expect.arrayContaining([expect.stringContaining('SUCCESS')])]);
    expect(lines.join('\n')).toContain(`${queries.length} rules found`);
  });

  test('asks the source that is chosen, in panels that can be told apart', () => {
    const used = new Set(dashboard.panels.flatMap(({ datasource }) => datasource?.uid ?? []));
    expect([...used].map((uid) => uid.replace(/^\$\{(\w+)\}$/, '$1'))).toEqual(['datasource']);
    const { datasources } = parse(read('docker/grafana/provisioning/datasources/prometheus.yml'));
    expect(dashboard.templating.list).toContainEqual(
      expect.objectContaining({ name: 'datasource', type: 'datasource', query: datasources[0].type }),
    );
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
    expect(readdirSync(pathOf(DASHBOARDS))).toEqual([`${dashboard.uid}.json`]);
  });
});
