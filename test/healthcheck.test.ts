/** The container's own question whether the process lives, asked of what was built: `npm test` builds first. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { startGateway } from './support/gateway.js';

const HEALTHCHECK = fileURLToPath(new URL('../dist/healthcheck.js', import.meta.url));

/** Its exit status. */
function healthcheck(env: Readonly<Record<string, string>>): Promise<number | null> {
  const child = spawn(process.execPath, [HEALTHCHECK], { env: { ...env }, stdio: 'inherit' });
  return new Promise((resolve) => child.once('exit', resolve));
}

test.each([
  ['on the loopback address', {}],
  ['on every address', { ADMIN_HOST: '0.0.0.0' }],
  ['under a name of its own', { ADMIN_HOST: '0.0.0.0', ALLOWED_HOSTS: 'gateway.internal' }],
  ['behind a token', { ADMIN_TOKEN: 'open-sesame' }],
])('is 0 while a gateway %s lives, and 1 when it is gone', async (_where, env) => {
  const gateway = await startGateway({ upstreams: { u: 'http://127.0.0.1:9/mcp' }, env });
  const asked = { ...env, ADMIN_PORT: new URL(gateway.adminUrl).port };
  try {
    expect(await healthcheck(asked)).toBe(0);
  } finally {
    await gateway.close();
  }
  expect(await healthcheck(asked)).toBe(1);
});
