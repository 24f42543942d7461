/** An answer that breaks off while the gateway is busy with its head is seen to break off (law 23). */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { createClock } from '../../src/clock.js';
import { beginExchange } from '../../src/http/exchange.js';
import { passThrough } from '../../src/http/passthrough.js';
import { createLogger } from '../../src/telemetry.js';
import { createTransport, type Transport } from '../../src/upstream/transport.js';
import { useClosers } from '../support/closers.js';
import { startUpstream } from '../support/upstream.js';

const closing = useClosers();

test('the client is told, and does not wait for ever', async () => {
  const upstream = closing(
    await startUpstream((_request, res) => {
      res.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': '100' });
      res.write('a');
      setImmediate(() => res.destroy());
    }),
  );
  const own = createTransport();
  closing({ close: () => own.close() });
  /** Gives an answer on only when its body is gone. */
  const transport: Transport = {
    ...own,
    async send(outgoing, options) {
      const response = await own.send(outgoing, options);
      response.body.resume();
      await once(response.body, 'close');
      return response;
    },
  };
  const log = createLogger('silent');
  const never = new AbortController().signal;
  const failures: unknown[] = [];
  const server = createServer((req, res) => {
    const exchange = beginExchange(req, res, { clock: createClock(), log, lines: log, onEnd() {} });
    passThrough(exchange, {
      outgoing: { method: 'POST', origin: upstream.origin, path: '/', headers: [], body: Buffer.from('{}') },
      transport,
      timeoutMs: 10_000,
      observer: { async onStatus() {}, async onEvent() {} },
      added: [],
      ending: never,
      rename: (headers) => headers,
    }).catch((error: unknown) => {
      failures.push(error);
      res.destroy();
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  closing({ close: async () => void server.close() });
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  await expect(fetch(`http://127.0.0.1:${port}/`).then((response) => response.text())).rejects.toThrow();
  expect(failures).toHaveLength(1);
});
