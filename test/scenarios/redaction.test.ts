/** Nothing that a client or an operator keeps secret comes out, at any level of the log (laws 8 and 24; F.4). */
import { describe, expect, test } from 'vitest';
import { ACKNOWLEDGED } from '../../src/core/protocol.js';
import { rpc } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { until } from '../support/gate.js';
import { type RunningGateway, startGateway } from '../support/gateway.js';
import { heldStream } from '../support/held-stream.js';
import { startProcess } from '../support/process.js';
import { goodResult, sendError, sendJson, sendResult, startUpstream } from '../support/upstream.js';

const closing = useClosers();

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];
const SECRETS = {
  UPSTREAM_U_AUTHORIZATION: 'Bearer canary-injected',
  UPSTREAM_U_HEADERS: '{"x-key":"canary-header"}',
  ADMIN_TOKEN: 'canary-admin',
  REDIS_URL: 'redis://user:canary-redis@127.0.0.1:1/0',
  PAGE_SIZE: '1',
};
const CALLER = {
  authorization: 'Bearer canary-token',
  cookie: 'a=canary-cookie',
  'x-api-key': 'canary-key',
  'mcp-session-id': 'canary-session',
};

/** An upstream whose every answer holds something that is nobody else's business. */
function startTeller() {
  return startUpstream((req, res) => {
    const method = req.json?.method;
    if (method === undefined) return sendJson(res, {}, 400);
    if (method === 'prompts/list') return sendError(res, req, -32603);
    if (method === 'resources/list') return sendJson(res, '{"canary-broken"', 200);
    if (method === 'resources/templates/list') return void res.destroy();
    const page = { tools: [{ name: 'canary-tool' }, { name: 'canary-other' }] };
    return sendResult(res, req, { ...goodResult(page), cacheScope: 'private' });
  });
}

/** Everything that can be asked, in both eras, well and badly. */
async function askEverything(endpoint: string, adminUrl: string): Promise<void> {
  const url = `${endpoint}?q=canary-query`;
  for (const era of ['modern', 'legacy'] as const) {
    const asked = { era, headers: CALLER };
    const first = await rpc(url, 'tools/list', asked);
    const cursor = first.json.result?.nextCursor;
    if (cursor !== undefined) await rpc(url, 'tools/list', { ...asked, params: { cursor } });
    await rpc(url, 'tools/list', { ...asked, params: { cursor: 'canary-cursor' } });
    await rpc(url, 'tools/call', {
      ...asked,
      params: { name: 'canary-name', arguments: { a: 'canary-argument' } },
    });
    await rpc(url, 'canary/method', asked);
    for (const method of ['prompts/list', 'resources/list', 'resources/templates/list'])
      await rpc(url, method, asked).catch(() => {});
  }
  await fetch(url, { method: 'POST', headers: CALLER, body: '{"canary-body"' });
  for (const path of ['/cache', '/metrics', '/', '/cache?upstream=canary-name']) {
    const response = await fetch(`${adminUrl}${path}`, { headers: { authorization: 'Bearer canary-admin' } });
    expect(await response.text(), path).not.toContain('canary');
  }
  await fetch(`${adminUrl}/cache/flush`, {
    method: 'POST',
    headers: { authorization: 'Bearer canary-admin' },
  });
  expect(
    (await fetch(`${adminUrl}/cache`, { headers: { authorization: 'Bearer canary-wrong' } })).status,
  ).toBe(401);
}

describe('the log keeps every secret', () => {
  test.each(LEVELS)('at level %s', async (level) => {
    const upstream = closing(await startTeller());
    const url = `${upstream.url}?key=canary-configured`;
    const stream = heldStream();
    upstream.respondToWatch = stream.respond;
    const gateway: RunningGateway = closing(
      await startGateway({ upstreams: { u: url }, env: { ...SECRETS, LOG_LEVEL: level } }),
    );
    await stream.send({ jsonrpc: '2.0', method: ACKNOWLEDGED, params: { notifications: {} } });
    await askEverything(gateway.endpoint('u'), gateway.adminUrl);
    const change = { uri: 'canary://uri', _meta: { text: 'canary-text' } };
    await stream.send({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: change });
    await stream.send({ jsonrpc: '2.0', method: 'notifications/tools/list_changed', params: change });
    const count = (msg: string) => gateway.logs.filter((line) => line.msg === msg).length;
    const isFlushed = () => gateway.logs.some(({ msg, reason }) => msg === 'flushed' && reason === 'watch');
    const isTold = LEVELS.indexOf(level) <= LEVELS.indexOf('info');
    const isWarned = LEVELS.indexOf(level) <= LEVELS.indexOf('warn');
    if (isTold) await until(() => count('request') >= 17 && isFlushed());
    if (isWarned) await until(() => count('request') > 0 && count('redis is away, memory serves alone') > 0);
    // Nothing that went wrong here is the gateway's own fault: its errors are others' and warnings.
    if (!isWarned) expect(gateway.logs).toEqual([]);
    expect(JSON.stringify(gateway.logs)).not.toContain('canary');
  });
});

test('LOG_PRETTY writes lines for people, with the same silence', async () => {
  const upstream = closing(await startTeller());
  const gateway = closing(
    startProcess(
      { UPSTREAMS: `u=${upstream.url}`, ...SECRETS, LOG_PRETTY: 'true', LOG_LEVEL: 'debug' },
      'text',
    ),
  );
  await until(() => gateway.text().includes('listening'));
  const [url = '', adminUrl = ''] = gateway.text().match(/http:\/\/127\.0\.0\.1:\d+/g) ?? [];
  await askEverything(`${url}/mcp/u`, adminUrl);
  await until(() => gateway.text().includes('flush by hand'));
  expect(gateway.text()).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] INFO/m);
  expect(gateway.text()).not.toContain('canary');
});
