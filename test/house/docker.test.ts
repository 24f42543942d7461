/** The files that run the gateway in containers say what the code says. */
import { existsSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseDocument } from 'yaml';
import { HANDOVER_MS } from '../../src/app/watch-keeper.js';
import { type Config, parseConfig } from '../../src/config.js';
import { configOf } from '../support/config.js';
import { type RunningGateway, startGateway } from '../support/gateway.js';

const ROOT = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8');

// biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects to find
function readYaml(path: string): any {
  const document = parseDocument(read(path), { strict: true, uniqueKeys: true });
  if (document.errors.length + document.warnings.length > 0) throw new Error(`${path} is no good YAML`);
  return document.toJS();
}

const DOCKERFILE = read('Dockerfile');
const compose = readYaml('docker-compose.yml');
const pod = readYaml('docker/kubernetes.yaml').spec.template;
const [sidecar] = pod.spec.initContainers;
const [agent] = pod.spec.containers;

/** What the secrets of docker/kubernetes.yaml could hold. */
const SECRETS: Readonly<Record<string, string>> = {
  'admin-token': 'open-sesame',
  'docs-authorization': 'Bearer a-token',
  'redis-url': 'rediss://redis.example:6379',
};

type EnvEntry = {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef: { readonly key: string } };
};

const sidecarEnv = Object.fromEntries(
  sidecar.env.map(({ name, value, valueFrom }: EnvEntry) => [
    name,
    value ?? SECRETS[valueFrom?.secretKeyRef.key ?? ''],
  ]),
);

/** The variables that a stage of the Dockerfile sets. */
function imageEnv(stage: string): Record<string, string> {
  const text = DOCKERFILE.split(/^FROM /m).find((part) => part.split('\n', 1)[0]?.endsWith(`AS ${stage}`));
  const [, line = ''] = /^ENV (.*)$/m.exec(text ?? '') ?? [];
  return Object.fromEntries(line.split(' ').map((pair) => pair.split('=')));
}

/** The configuration that results; fails on a fault and on a variable that is no setting. */
function configFor(env: Readonly<Record<string, string>>): Config {
  const { NODE_ENV: _, ...ofImage } = imageEnv('gateway');
  const { config, resolved } = parseConfig({ ...ofImage, ...env });
  const known = resolved.map(({ variable }) => variable);
  expect(known).toEqual(expect.arrayContaining(Object.keys(env)));
  return config;
}

describe('docker-compose.yml', () => {
  const { services } = compose;

  test('configures the gateway with settings that there are', () => {
    const config = configFor(services.gateway.environment);
    expect(config).toMatchObject({ host: '0.0.0.0', adminHost: '0.0.0.0' });
    expect(config.upstreams.map(({ url }) => url)).toEqual([
      `http://example:${imageEnv('example').PORT}/mcp`,
    ]);
  });

  test('leads to the ports that the gateway listens on', () => {
    const { port, adminPort } = configFor(services.gateway.environment);
    expect(DOCKERFILE).toContain(`EXPOSE ${port} ${adminPort}\n`);
    expect(read('docker/balancer.conf')).toContain(`server gateway:${port} `);
    const [job] = readYaml('docker/prometheus.yml').scrape_configs;
    expect(job.dns_sd_configs).toMatchObject([{ names: ['gateway'], port: adminPort }]);
    const [source] = readYaml('docker/grafana/provisioning/datasources/prometheus.yml').datasources;
    expect(source.url).toBe('http://prometheus:9090');
  });

  test('publishes nothing of the gateway, and everything else to this machine alone', () => {
    expect(services.gateway.ports).toBeUndefined();
    const published = Object.values<{ ports?: string[] }>(services).flatMap(({ ports = [] }) => ports);
    expect(published.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([]);
  });

  test('names stages and files that there are', () => {
    for (const { build, volumes = [] } of Object.values<{
      build?: { target: string };
      volumes?: string[];
    }>(services)) {
      if (build !== undefined) expect(DOCKERFILE).toContain(` AS ${build.target}\n`);
      for (const volume of volumes)
        expect(existsSync(new URL(volume.split(':', 1)[0] ?? '', ROOT))).toBe(true);
    }
  });

  test('waits for a gateway that ends', () => {
    const { shutdownGraceMs } = configFor(services.gateway.environment);
    const given = Number(/^(\d+)s$/.exec(services.gateway.stop_grace_period)?.[1]) * 1000;
    expect(given).toBeGreaterThan(shutdownGraceMs + HANDOVER_MS);
  });
});

describe('docker/kubernetes.yaml', () => {
  let gateway: RunningGateway;
  beforeAll(async () => {
    gateway = await startGateway({ upstreams: { u: 'http://127.0.0.1:9/mcp' } });
  });
  afterAll(() => gateway.close());

  test('configures the sidecar with settings that there are, for its pod alone', () => {
    const config = configFor(sidecarEnv);
    expect(config).toMatchObject({ host: '127.0.0.1', adminHost: '0.0.0.0', adminToken: 'open-sesame' });
    expect(config.redis).toBeDefined();
  });

  test('needs no secret but the token', () => {
    const needed = sidecar.env.filter(
      ({ valueFrom }: { valueFrom?: { secretKeyRef: { optional?: boolean } } }) =>
        valueFrom !== undefined && valueFrom.secretKeyRef.optional !== true,
    );
    expect(needed.map(({ name }: EnvEntry) => name)).toEqual(['ADMIN_TOKEN']);
  });

  test('leads to the ports that the gateway listens on', () => {
    const { host, port, adminPort, upstreams } = configFor(sidecarEnv);
    expect(sidecar.ports).toEqual([{ name: 'admin', containerPort: adminPort }]);
    expect(pod.metadata.annotations['prometheus.io/port']).toBe(String(adminPort));
    expect(agent.env).toEqual([
      { name: 'DOCS_MCP_URL', value: `http://${host}:${port}/mcp/${upstreams[0]?.name}` },
    ]);
  });

  test('asks the admin listener for health, and for metrics, where they are', async () => {
    const probes = [sidecar.startupProbe, sidecar.readinessProbe, sidecar.livenessProbe];
    expect(probes.map(({ httpGet }) => httpGet.port)).toEqual(['admin', 'admin', 'admin']);
    const paths = [
      ...probes.map(({ httpGet }) => httpGet.path),
      pod.metadata.annotations['prometheus.io/path'],
    ];
    for (const path of paths) expect((await fetch(`${gateway.adminUrl}${path}`)).status).toBe(200);
  });

  test('gives the agent and then the sidecar time to end', () => {
    const { shutdownGraceMs } = configFor(sidecarEnv);
    const given = pod.spec.terminationGracePeriodSeconds * 1000 - 30_000;
    expect(given).toBeGreaterThan(shutdownGraceMs + HANDOVER_MS);
  });

  test('leaves the sidecar memory beside its cache', () => {
    const limit = Number(/^(\d+)Mi$/.exec(sidecar.resources.limits.memory)?.[1]) * 2 ** 20;
    expect(limit - Number(sidecarEnv.CACHE_MAX_BYTES)).toBe(256 * 2 ** 20);
  });

  test('gives no container a privilege', () => {
    expect(pod.spec.securityContext).toMatchObject({
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    for (const { securityContext } of [sidecar, agent]) {
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
    }
  });

  test('names the version that this is', () => {
    const { name, version } = JSON.parse(read('package.json'));
    expect(sidecar.image).toBe(`${name}:${version}`);
  });
});

describe('the Dockerfile', () => {
  test('ends with a gateway that needs neither root nor a shell', () => {
    const last = DOCKERFILE.split(/^FROM /m).at(-1) ?? '';
    expect(last).toMatch(/^USER [1-9]\d*:[1-9]\d*$/m);
    expect(last).toContain('CMD ["node", "dist/healthcheck.js"]');
    expect(last.trimEnd().split('\n').at(-1)).toBe('CMD ["node", "dist/main.js"]');
    expect(imageEnv('gateway')).toEqual({ NODE_ENV: 'production', HOST: configOf({ HOST: '0.0.0.0' }).host });
  });
});
