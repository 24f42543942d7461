/** Owns: the container's own question whether the process lives: exit status 0 if the admin listener says so. */
import { request } from 'node:http';

const { ADMIN_HOST = '127.0.0.1', ADMIN_PORT = '9090', ALLOWED_HOSTS = '' } = process.env;
const wildcard: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
const host = wildcard[ADMIN_HOST] ?? ADMIN_HOST;
// The listener answers to the names that it was given, and to no other.
const named = ALLOWED_HOSTS.split(',', 1)[0]?.trim() ?? '';
const headers = named === '' || named === '*' || named === 'loopback' ? {} : { host: named };

const asked = request(
  { host, port: Number(ADMIN_PORT), path: '/healthz', headers, timeout: 2_000 },
  (response) => process.exit(response.statusCode === 200 ? 0 : 1),
);
asked.on('timeout', () => process.exit(1));
asked.on('error', () => process.exit(1));
asked.end();
