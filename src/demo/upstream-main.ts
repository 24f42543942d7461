/** Owns: the example upstream as a process of its own, for containers: HOST and PORT say where it listens. */
import { startExampleUpstream } from './example-upstream.js';

const { HOST: host = '127.0.0.1', PORT: port = '3000' } = process.env;
const upstream = await startExampleUpstream({
  host,
  port: Number(port),
  resources: 300,
  pageSize: 25,
  pageDelayMs: 40,
});
process.stdout.write(`${JSON.stringify({ msg: 'listening', url: upstream.url })}\n`);
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => {
    upstream.close().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  });
}
