/** What the gateway composes itself is valid MCP: hits, walked lists, its own errors and requests (laws 2, 12, 14, 21). */
import { describe, expect, test } from 'vitest';
import { post, rpcRequest } from '../support/client.js';
import { flushes, watching } from '../support/flushes.js';
import { createGate, until } from '../support/gate.js';
import { heldLegacyWatch } from '../support/legacy-watch.js';
import { CACHEABLE, paged, resultOf, threePages } from '../support/lists.js';
import { useScenario } from '../support/scenario.js';
import { hasSchemas, schemaOf } from '../support/schema.js';
import { heldWatch, type Respond, sendEvent, sendResult } from '../support/upstream.js';

const start = useScenario();

/** The definition of a method's messages: `ListTools`, `ReadResource` and so on. */
const NAMES: Readonly<Record<string, string>> = {
  'tools/list': 'ListTools',
  'prompts/list': 'ListPrompts',
  'resources/list': 'ListResources',
  'resources/templates/list': 'ListResourceTemplates',
  'resources/read': 'ReadResource',
  'server/discover': 'Discover',
};
const METHODS = CACHEABLE.map(([method, params]) => ({ method, params, name: NAMES[method] ?? '' }));
const LEGACY_METHODS = METHODS.filter(({ method }) => method !== 'server/discover');

/** Every list in two pages; `change` makes of a result what this upstream sends. */
function twoPages(change: (result: Record<string, unknown>) => object = (result) => result): Respond {
  return (request, res) => {
    const isList = String(request.json.method).endsWith('/list');
    const hasNext = isList && request.json.params.cursor === undefined;
    sendResult(res, request, { ...change(resultOf(request, 'v')), ...(hasNext && { nextCursor: 'c1' }) });
  };
}

/** What an upstream that predates the hints sends. */
const unhinted = ({ ttlMs: _, cacheScope: __, resultType: ___, ...rest }: Record<string, unknown>) => rest;

// Without the schemas there is nothing to hold the answers against; where they must be there, that is a failure.
describe.skipIf(!hasSchemas && process.env.CI === undefined)('the published schemas', () => {
  describe('of 2026-07-28 hold', () => {
    const modern = schemaOf('2026-07-28');

    test.each(METHODS)('$method: the first answer and the hit', async ({ method, params, name }) => {
      const { ask } = await start(twoPages());
      const first = await ask(method, { params });
      const hit = await ask(method, { params, id: 'h' });
      expect(hit.asked).toBe(0);
      for (const { json } of [first, hit]) expect(modern(`${name}ResultResponse`, json)).toEqual([]);
    });

    test('a hit where the operator gave the lifetime', async () => {
      const respond = twoPages(({ ttlMs: _, cacheScope: __, ...rest }) => rest);
      const { list } = await start(respond, { env: { CACHE_DEFAULT_TTL_MS: '5000' } });
      await list();
      const hit = await list();
      expect(hit.asked).toBe(0);
      expect(modern('ListToolsResultResponse', hit.json)).toEqual([]);
      expect(hit.json.result.cacheScope).toBe('private');
    });

    test('a walked list that flushes overtook', async () => {
      const watch = heldWatch();
      let shouts = 0;
      const scenario = await start(
        async (request, res) => {
          watch.notify('notifications/tools/list_changed');
          shouts += 1;
          await until(() => flushes(scenario.gateway, 'watch') === shouts);
          await paged(threePages('t'))(request, res);
        },
        { watch: watch.respond },
      );
      const answer = await scenario.list();
      expect(answer.json.result).toMatchObject({ ttlMs: 0 });
      expect(modern('ListToolsResultResponse', answer.json)).toEqual([]);
    });

    test.each(METHODS)('$method: the requests for all pages', async ({ method, params, name }) => {
      const { ask, upstream } = await start(twoPages());
      await ask(method, { params });
      expect(upstream.count()).toBe(method.endsWith('/list') ? 2 : 1);
      for (const { json } of upstream.requests) expect(modern(`${name}Request`, json)).toEqual([]);
    });

    test('its own errors', async () => {
      const gate = createGate();
      const { list, clock, upstream, gateway } = await start((_request, res) => void res.destroy(), {
        env: { MAX_BODY_BYTES: '2000' },
      });
      const mismatch = await list({ id: 'm', headers: { 'mcp-method': 'tools/call' } });
      expect(modern('HeaderMismatchError', mismatch.json)).toEqual([]);
      expect(mismatch.json.id).toBe('m');
      const unreachable = await list({ id: 0 });
      upstream.respond = () => gate.pass();
      const waiting = list({ id: '' });
      await gate.arrivals(1);
      clock.advance(30_000);
      const late = await waiting;
      gate.open();
      const { headers, body } = rpcRequest('tools/list', { params: { x: 'x'.repeat(2_000) } });
      const large = await post(gateway.endpoint('u'), body, headers);
      const lost = await post(`${gateway.url}/nowhere`, rpcRequest('tools/list').body, headers);
      const errors = [mismatch, unreachable, late, large, lost];
      expect(errors.map(({ status }) => status)).toEqual([400, 502, 504, 413, 404]);
      for (const { json } of errors) expect(modern('JSONRPCErrorResponse', json)).toEqual([]);
      expect([unreachable.json.id, late.json.id]).toEqual([0, '']);
    });

    test('its own subscription', async () => {
      const watch = heldWatch();
      const { upstream, gateway } = await start(twoPages(), { watch: watch.respond });
      await watching(gateway);
      const [request] = upstream.watchRequests;
      expect(modern('SubscriptionsListenRequest', request?.json)).toEqual([]);
      expect(request?.headers).toMatchObject({
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'subscriptions/listen',
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      });
    });

    test('and would tell what they do not hold', async () => {
      expect(modern('ListToolsResultResponse', { jsonrpc: '2.0', id: 1, result: { tools: [] } })).not.toEqual(
        [],
      );
      expect(modern('HeaderMismatchError', { jsonrpc: '2.0', error: { code: 1, message: '' } })).not.toEqual(
        [],
      );
      expect(() => modern('Nothing', {})).toThrow();
    });
  });

  describe('of 2025-11-25 hold', () => {
    const legacy = schemaOf('2025-11-25');

    test.each(LEGACY_METHODS)('$method: the answers and the requests', async ({ method, params, name }) => {
      const { ask, upstream } = await start(twoPages(unhinted), { env: { CACHE_DEFAULT_TTL_MS: '5000' } });
      const first = await ask(method, { params, era: 'legacy' });
      const hit = await ask(method, { params, era: 'legacy', id: 'h' });
      expect(hit.asked).toBe(0);
      for (const { json } of [first, hit]) {
        expect(legacy('JSONRPCResultResponse', json)).toEqual([]);
        expect(legacy(`${name}Result`, json.result)).toEqual([]);
        expect(json.result).not.toHaveProperty('ttlMs');
        expect(json.result).not.toHaveProperty('cacheScope');
      }
      for (const { json } of upstream.requests) expect(legacy(`${name}Request`, json)).toEqual([]);
    });

    test('its own session: initialize, initialized, and its answers to the server', async () => {
      const watch = heldLegacyWatch();
      const { upstream, gateway } = await start(twoPages(unhinted), { watch: watch.respond });
      await watching(gateway);
      const own = () => upstream.watchRequests.flatMap(({ json }) => (json === undefined ? [] : [json]));
      for (const [id, method] of [
        ['p', 'ping'],
        [7, 'roots/list'],
      ] as const) {
        for (const stream of watch.streams) sendEvent(stream, { jsonrpc: '2.0', id, method });
      }
      await until(() => own().length === 5);
      const [listen, initialize, initialized, pong, refusal] = own();
      expect(listen.method).toBe('subscriptions/listen');
      expect(legacy('InitializeRequest', initialize)).toEqual([]);
      expect(legacy('InitializedNotification', initialized)).toEqual([]);
      expect(legacy('JSONRPCResultResponse', pong)).toEqual([]);
      expect(pong).toMatchObject({ id: 'p', result: {} });
      expect(legacy('JSONRPCErrorResponse', refusal)).toEqual([]);
      expect(refusal).toMatchObject({ id: 7, error: { code: -32601 } });
    });

    test('its own errors', async () => {
      const { list } = await start((_request, res) => void res.destroy());
      const unreachable = await list({ id: 'e', era: 'legacy' });
      expect([unreachable.status, unreachable.json.id]).toEqual([502, 'e']);
      expect(legacy('JSONRPCErrorResponse', unreachable.json)).toEqual([]);
    });
  });
});
