import { expect, test } from 'vitest';
import { rpc } from '../support/client.js';
import { useClosers } from '../support/closers.js';
import { watching } from '../support/flushes.js';
import { startGateway } from '../support/gateway.js';
import { createCatalogue } from '../support/sdk-catalogue.js';
import { connectModern, REFRESH, startModernServer } from '../support/sdk-modern.js';

const closing = useClosers();

/** The text between the brackets of the one array `resources` in a list result. */
function itemsText(text: string): string {
  const key = '"resources":[';
  const start = text.indexOf(key) + key.length;
  let depth = 1;
  let inString = false;
  for (let at = start; at < text.length; at += 1) {
    const char = text[at];
    if (inString && char === '\\') at += 1;
    else if (char === '"') inString = !inString;
    else if (!inString && (char === '[' || char === '{')) depth += 1;
    else if (!inString && (char === ']' || char === '}')) depth -= 1;
    if (depth === 0) return text.slice(start, at);
  }
  throw new Error('the list does not end');
}

test('10,000 resources in 100 pages are, through the gateway, those of the direct listing to the letter', async () => {
  const catalogue = createCatalogue({ items: 10_000, pageSize: 100 });
  catalogue.resources[4_999] = {
    uri: 'test://resource/"quoted"\\[{and}]\u2028/\u{1f600}',
    name: 'ünïcødé\t\n',
    mimeType: 'text/plain',
    size: Number.MAX_SAFE_INTEGER,
  };
  const server = closing(
    await startModernServer({ catalogue, hint: { ttlMs: 60_000, cacheScope: 'public' } }),
  );
  const gateway = closing(await startGateway({ upstreams: { u: server.url } }));

  await watching(gateway);

  const texts: string[] = [];
  const items: unknown[] = [];
  let cursor: string | undefined;
  do {
    const page = await rpc(server.url, 'resources/list', { params: cursor === undefined ? {} : { cursor } });
    texts.push(itemsText(page.text));
    items.push(...page.json.result.resources);
    cursor = page.json.result.nextCursor;
  } while (cursor !== undefined);
  expect(texts).toHaveLength(100);
  expect(items).toEqual(catalogue.resources);

  for (const outcome of ['; fwd=miss; stored; ', '; hit; ']) {
    const { json, text, cacheStatus } = await rpc(gateway.endpoint('u'), 'resources/list');
    expect(cacheStatus).toContain(outcome);
    expect(json.result.nextCursor).toBeUndefined();
    expect(json.result.resources).toEqual(items);
    expect(itemsText(text) === texts.join(',')).toBe(true);
  }
  expect(catalogue.count('resources/list')).toBe(200);

  // By itself the official client gives up after 64 pages; through the gateway it needs one.
  const direct = closing(await connectModern(server.url));
  await expect(direct.client.listResources(undefined, REFRESH)).rejects.toThrow(/64/);
  const { client } = closing(await connectModern(gateway.endpoint('u')));
  expect((await client.listResources(undefined, REFRESH)).resources).toHaveLength(10_000);
});
