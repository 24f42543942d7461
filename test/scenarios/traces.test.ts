/** Traces by OTLP, received by an endpoint of the test's own; and none where they are not wanted (law 23). */
import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { rpc } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { until } from '../support/gate.js';
import { startProcess } from '../support/process.js';
import { goodResult, sendError, sendResult, startUpstream } from '../support/upstream.js';

const closing = useClosers();

interface Span {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status: { readonly code?: number };
  readonly attributes: Readonly<Record<string, unknown>>;
}

const SERVER = 2;
const CLIENT = 3;
const FAILED = 2;
const CALLER = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const OTHER = '00-11111111111111111111111111111111-2222222222222222-01';

/** An OTLP endpoint that keeps the spans, and the whole text that it was sent. */
async function startCollector() {
  const spans: Span[] = [];
  let text = '';
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk);
    text += Buffer.concat(chunks).toString();
    for (const { scopeSpans } of JSON.parse(Buffer.concat(chunks).toString()).resourceSpans)
      for (const scope of scopeSpans) spans.push(...scope.spans.map(toSpan));
    res.setHeader('content-type', 'application/json').end('{}');
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  closing({ close: async () => void server.close() });
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  return { spans, text: () => text, url: `http://127.0.0.1:${port}` };
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects to find
function toSpan(span: any): Span {
  // biome-ignore lint/suspicious/noExplicitAny: as above
  const scalarOf = (value: any) => value.stringValue ?? value.intValue ?? value.boolValue;
  return {
    ...span,
    // biome-ignore lint/suspicious/noExplicitAny: as above
    attributes: Object.fromEntries(span.attributes.map(({ key, value }: any) => [key, scalarOf(value)])),
  };
}

async function start(env: Readonly<Record<string, string>>) {
  const upstream = closing(
    await startUpstream((req, res) => {
      if (req.json.method === 'prompts/list') return sendError(res, req, -32603);
      const cursor = Number(req.json.params.cursor ?? 0);
      const page = { tools: [{ name: `t${cursor}` }], ...(cursor < 2 && { nextCursor: String(cursor + 1) }) };
      return sendResult(res, req, goodResult(page));
    }),
  );
  const gateway = closing(startProcess({ UPSTREAMS: `u=${upstream.url}`, ...env }));
  const { url } = await gateway.listening;
  return { upstream, gateway, endpoint: `${url}/mcp/u` };
}

test('a request is a span, each exchange with the upstream one below it, and the upstream is told', async () => {
  const collector = await startCollector();
  const { upstream, gateway, endpoint } = await start({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_SERVICE_NAME: 'sidecar',
  });
  const headers = { traceparent: CALLER, authorization: 'Bearer canary' };
  await rpc(endpoint, 'tools/list', { headers });
  await rpc(endpoint, 'tools/list', { headers, meta: { traceparent: OTHER } });
  const made = { 'mcp-protocol-version': 'canary' };
  const secret = { name: 'canary', arguments: { secret: 'canary' } };
  await rpc(endpoint, 'tools/call', { era: 'legacy', params: secret, headers: made });
  await upstream.close();
  await rpc(endpoint, 'prompts/list');
  gateway.kill('SIGTERM');
  expect(await gateway.exited).toBe(0);

  const { spans } = collector;
  const [miss, hit, call, failed] = spans.filter(({ kind }) => kind === SERVER);
  expect(spans.filter(({ kind }) => kind === SERVER)).toHaveLength(4);
  const below = (parent: Span | undefined) => spans.filter((span) => span.parentSpanId === parent?.spanId);
  expect(miss).toMatchObject({
    name: 'tools/list',
    traceId: CALLER.split('-')[1],
    parentSpanId: CALLER.split('-')[2],
  });
  expect(miss?.attributes).toMatchObject({
    'mcp.method.name': 'tools/list',
    'mcp_cache_gateway.upstream': 'u',
    'mcp_cache_gateway.outcome': 'miss',
    'mcp_cache_gateway.pages': 3,
    'http.response.status_code': 200,
  });
  expect(below(miss).map(({ kind }) => kind)).toEqual([CLIENT, CLIENT, CLIENT]);
  expect(hit).toMatchObject({ traceId: OTHER.split('-')[1], parentSpanId: OTHER.split('-')[2] });
  expect(hit?.links).toMatchObject([{ traceId: CALLER.split('-')[1], spanId: CALLER.split('-')[2] }]);
  expect(miss?.links ?? []).toEqual([]);
  expect(hit?.attributes['mcp_cache_gateway.outcome']).toBe('hit');
  expect(below(hit)).toEqual([]);
  expect(call).toMatchObject({ name: 'tools/call' });
  expect(miss?.attributes['mcp.protocol.version']).toBe('2026-07-28');
  expect(call?.attributes).not.toHaveProperty('mcp.protocol.version');
  expect(call?.parentSpanId ?? '').toBe('');
  expect(below(call)).toHaveLength(1);
  expect(failed).toMatchObject({ status: { code: FAILED } });
  expect(failed?.attributes['error.type']).toBe('upstream-unreachable');
  expect(below(failed)[0]?.status.code).toBe(FAILED);

  const told = upstream.requests.map((request) => request.headers.traceparent);
  const sent = [...below(miss), ...below(call)].map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`);
  expect(told).toEqual(sent);
  expect(collector.text()).toContain('sidecar');
  expect(collector.text()).not.toContain('canary');
});

test('an endpoint that does not answer touches no request', async () => {
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://u:canary@127.0.0.1:1',
    OTEL_EXPORTER_OTLP_TIMEOUT: '200',
    OTEL_BSP_SCHEDULE_DELAY: '50',
  };
  const { endpoint, gateway } = await start(env);
  expect((await rpc(endpoint, 'tools/list')).status).toBe(200);
  const said = () => gateway.lines.filter(({ msg }) => msg.startsWith('traces could not be sent'));
  await until(() => said().length > 0);
  expect((await rpc(endpoint, 'tools/list')).status).toBe(200);
  gateway.kill('SIGTERM');
  expect(await gateway.exited).toBe(0);
  expect(said()).toHaveLength(1);
  expect(gateway.text()).not.toContain('canary');
});

test.each([
  ['no endpoint', {}],
  [
    'OTEL_TRACES_EXPORTER=none',
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', OTEL_TRACES_EXPORTER: 'none' },
  ],
  ['OTEL_SDK_DISABLED', { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', OTEL_SDK_DISABLED: 'true' }],
])('with %s the upstream gets what the client sent, to the letter', async (_title, env) => {
  const { upstream, endpoint } = await start(env);
  const headers = { traceparent: CALLER, tracestate: 'a=1,b=2' };
  await rpc(endpoint, 'tools/call', { headers, params: { name: 't' } });
  await until(() => upstream.count() === 1);
  expect(upstream.requests[0]?.headers).toMatchObject(headers);
  await rpc(endpoint, 'tools/call', { params: { name: 't' } });
  expect(upstream.requests[1]?.headers).not.toHaveProperty('traceparent');
});
