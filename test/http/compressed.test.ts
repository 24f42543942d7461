/** An upstream that packs whatever it sends: law 23, case C44. */
import {
  brotliCompressSync,
  brotliDecompressSync,
  deflateSync,
  gunzipSync,
  gzipSync,
  inflateSync,
} from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { valuesOf } from '../../src/core/headers.js';
import { rpcRequest } from '../support/client.js';
import { until } from '../support/gate.js';
import { heldStream } from '../support/held-stream.js';
import { catalogue, namesOf, page, paged, threePages } from '../support/lists.js';
import { openWire, rawFields, send, type WireAnswer, wireText } from '../support/raw.js';
import { type Scenario, useScenario } from '../support/scenario.js';
import type { Respond } from '../support/upstream.js';

const start = useScenario();

const PACK = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync };
const UNPACK: Record<string, (bytes: Buffer) => Buffer> = {
  gzip: gunzipSync,
  deflate: inflateSync,
  br: brotliDecompressSync,
  identity: (bytes) => bytes,
};
const CODINGS = ['gzip', 'deflate', 'br'] as const;

/** Packs what the other would have sent, whatever the client accepts. */
function packing(coding: (typeof CODINGS)[number], respond: Respond): Respond {
  return (request, res) => {
    const end = (text: string) => {
      const packed = PACK[coding](text);
      const headers = { 'content-type': 'application/json', 'content-encoding': coding };
      res.writeHead(200, { ...headers, 'content-length': packed.length }).end(packed);
    };
    return respond(request, Object.assign(Object.create(res), { writeHead: () => {}, end }));
  };
}

async function ask({ gateway }: Scenario, method: string, accepted: string): Promise<WireAnswer> {
  const { headers, body } = rpcRequest(method, { params: method === 'tools/call' ? { name: 't' } : {} });
  return send(gateway.endpoint('u'), {
    headers: rawFields({ ...headers, 'accept-encoding': accepted }),
    body,
  });
}

/** What a client reads that goes by the fields; fails where they do not fit the bytes. */
function read(answer: WireAnswer) {
  const [coding = 'identity', ...more] = valuesOf(answer.headers, 'content-encoding');
  expect([answer.isWhole, more]).toEqual([true, []]);
  const length = valuesOf(answer.headers, 'content-length');
  if (length.length > 0) expect(length).toEqual([String(answer.body.length)]);
  return { coding, json: JSON.parse(String(UNPACK[coding]?.(answer.body))) };
}

describe.each(CODINGS)('an upstream that packs with %s', (coding) => {
  test('fills the cache, and a hit is plain for whoever wants it plain', async () => {
    const scenario = await start(packing(coding, paged({ '-': page(['a', 'ü']) })));
    const first = read(await ask(scenario, 'tools/list', coding));
    expect(namesOf(first)).toEqual(['a', 'ü']);
    for (const accepted of ['identity', '', 'gzip, br']) {
      const hit = read(await ask(scenario, 'tools/list', accepted));
      expect(hit.coding).toBe('identity');
      expect(namesOf(hit)).toEqual(['a', 'ü']);
    }
    expect(scenario.upstream.count()).toBe(1);
  });

  test('is walked page by page, and the whole list is plain', async () => {
    const scenario = await start(packing(coding, paged(threePages('t'))));
    const { coding: got, json } = read(await ask(scenario, 'tools/list', coding));
    expect([got, namesOf({ json })]).toEqual(['identity', ['t0', 't1', 't2', 't3', 't4', 't5']]);
    expect(scenario.upstream.count()).toBe(3);
    expect((await ask(scenario, 'tools/list', 'identity')).status).toBe(200);
    expect(scenario.upstream.count()).toBe(3);
  });

  test('has what is not cached passed on as it packed it', async () => {
    const scenario = await start(packing(coding, catalogue()));
    const answer = await ask(scenario, 'tools/call', 'identity');
    expect(read(answer).coding).toBe(coding);
    expect(scenario.upstream.requests[0]?.headers['accept-encoding']).toBe('identity');
  });
});

describe('what the client accepts is what the upstream is asked for', () => {
  test.each([['gzip, br'], ['identity'], ['zstd;q=1, *;q=0']])('%s', async (accepted) => {
    const scenario = await start(catalogue());
    await ask(scenario, 'tools/list', accepted);
    await ask(scenario, 'tools/call', accepted);
    expect(scenario.upstream.requests.map(({ headers }) => headers['accept-encoding'])).toEqual([
      accepted,
      accepted,
    ]);
  });

  test('and nothing where it says nothing', async () => {
    const scenario = await start(catalogue());
    const { headers, body } = rpcRequest('tools/call');
    await send(scenario.gateway.endpoint('u'), { headers: rawFields(headers), body });
    expect(scenario.upstream.requests[0]?.headers).not.toHaveProperty('accept-encoding');
  });
});

describe('packed bytes without a word of it', () => {
  test('arrive as they came, and are not stored', async () => {
    const packed = gzipSync('{"jsonrpc":"2.0","id":1,"result":{"tools":[],"ttlMs":60000}}');
    const scenario = await start((_request, res) => {
      res.writeHead(200, { 'content-type': 'application/json' }).end(packed);
    });
    for (let i = 0; i < 2; i += 1) {
      expect((await ask(scenario, 'tools/list', 'gzip')).body.equals(packed)).toBe(true);
    }
    expect(scenario.upstream.count()).toBe(2);
  });
});

describe('a packed event stream', () => {
  test.each(['gzip', 'br'] as const)('of %s arrives event by event, as it was packed', async (coding) => {
    const stream = heldStream(coding);
    const { gateway } = await start(stream.respond);
    const { headers, body } = rpcRequest('tools/call', { params: { name: 't' } });
    const wire = await openWire(gateway.url);
    wire.write(wireText(gateway.endpoint('u'), { ...headers, 'accept-encoding': coding }, body));
    await wire.sees(`content-encoding: ${coding}`);
    let length = wire.received().length;
    for (let i = 0; i < 3; i += 1) {
      await stream.send({ jsonrpc: '2.0', method: 'notifications/progress', params: { progress: i } });
      await until(() => wire.received().length > length);
      length = wire.received().length;
    }
    expect(wire.received()).not.toContain('progress');
    await wire.close();
  });
});
