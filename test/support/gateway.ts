/** A whole gateway on free ports, in this process, configured as in life: by environment variables. */
import { createGateway } from '../../src/app.js';
import { type Clock, createClock } from '../../src/clock.js';
import { parseConfig } from '../../src/config.js';
import { createLogger } from '../../src/telemetry.js';

export interface RunningGateway {
  readonly url: string;
  readonly adminUrl: string;
  /** The endpoint of one upstream. */
  endpoint(name: string): string;
  /** Every log line so far, parsed. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects to find
  readonly logs: any[];
  close(): Promise<void>;
}

export interface GatewayOptions {
  readonly upstreams: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
}

export async function startGateway(options: GatewayOptions): Promise<RunningGateway> {
  // biome-ignore lint/suspicious/noExplicitAny: as above
  const logs: any[] = [];
  const env = {
    UPSTREAMS: Object.entries(options.upstreams)
      .map(([name, url]) => `${name}=${url}`)
      .join(','),
    PORT: '0',
    ADMIN_PORT: '0',
    SHUTDOWN_GRACE_MS: '100',
    LOG_LEVEL: 'debug',
    ...options.env,
  };
  const { config } = parseConfig(env);
  const log = createLogger(config.logLevel, { write: (line) => logs.push(JSON.parse(line)) });
  const gateway = createGateway({
    config,
    log,
    clock: options.clock ?? createClock(),
    version: '0.0.0-test',
    random: () => 0,
  });
  const { url, adminUrl } = await gateway.listen();
  return { url, adminUrl, logs, endpoint: (name) => `${url}/mcp/${name}`, close: () => gateway.close() };
}
