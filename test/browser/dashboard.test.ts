/** The dashboard in a real browser: design, section 2 (`GET /` of the admin listener). */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { keepPicture, openPage, startBrowser } from '../support/browser.js';
import { rpc } from '../support/client.js';
import { closeAfterEach } from '../support/closing.js';
import { type RunningGateway, startGateway } from '../support/gateway.js';
import {
  goodResult,
  heldWatch,
  type ScriptedUpstream,
  sendResult,
  startUpstream,
} from '../support/upstream.js';

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
}, 60_000);
afterAll(() => browser.close());

const closing = closeAfterEach();
let upstream: ScriptedUpstream;

beforeEach(async () => {
  upstream = closing(
    await startUpstream((req, res) => {
      const cursor = Number(req.json.params.cursor ?? 0);
      const tools = [{ name: `<img src=x onerror="document.title='broken'">` }];
      if (req.json.method === 'prompts/list')
        sendResult(res, req, { ...goodResult({ prompts: [] }), ttlMs: 0 });
      else sendResult(res, req, goodResult({ tools, ...(cursor < 2 && { nextCursor: String(cursor + 1) }) }));
    }),
  );
  upstream.respondToWatch = heldWatch().respond;
});

async function start(env: Readonly<Record<string, string>> = {}): Promise<RunningGateway> {
  return closing(await startGateway({ upstreams: { docs: upstream.url, crm: upstream.url }, env }));
}

async function open(gateway: RunningGateway, options: Parameters<typeof openPage>[2] = {}) {
  return closing(await openPage(browser, gateway.adminUrl, options));
}

describe('the dashboard', () => {
  test('says how to begin where nothing has been asked yet', async () => {
    const gateway = await start();
    const { page, faults } = await open(gateway);
    await page.getByText('Nothing has been asked yet').waitFor();
    expect(await page.locator('#first-request').textContent()).toContain(`${gateway.url}/mcp/docs`);
    expect(await page.getByRole('article', { name: 'Upstream crm' }).textContent()).toContain('No entries');
    await keepPicture(page, 'dashboard-empty');
    expect(faults).toEqual([]);
  });

  test('shows a miss, the hit after it, and why something is not kept', async () => {
    const gateway = await start();
    for (let i = 0; i < 4; i += 1) await rpc(gateway.endpoint('docs'), 'tools/list');
    await rpc(gateway.endpoint('docs'), 'prompts/list');
    const { page, faults } = await open(gateway);
    const card = page.getByRole('article', { name: 'Upstream docs' });
    await card.getByRole('row', { name: /tools\/list public/ }).waitFor();
    expect(await card.locator('dl').textContent()).toMatch(/Hits3Misses2.*Requests saved9/);
    expect(await card.getByRole('list').textContent()).toMatch(/1zero-lifetime/);
    expect(await card.getByText('told of changes').count()).toBe(1);
    const bar = await card.locator('.bar > i').evaluate((fill) => fill.getBoundingClientRect().width);
    expect(bar).toBeGreaterThan(0);
    expect(await page.title()).toBe('mcp-cache-gateway');
    await rpc(gateway.endpoint('docs'), 'tools/list');
    await card.locator('dl').getByText('4', { exact: true }).waitFor();
    expect(faults).toEqual([]);
  });

  test('flushes once that is confirmed, and shows it; by keyboard alone', async () => {
    const gateway = await start();
    await rpc(gateway.endpoint('docs'), 'tools/list');
    const { page } = await open(gateway);
    const card = page.getByRole('article', { name: 'Upstream docs' });
    await card.getByRole('row', { name: /tools\/list/ }).waitFor();
    const button = page.getByRole('button', { name: 'Flush docs' });
    for (let i = 0; i < 10 && (await button.and(page.locator(':focus')).count()) === 0; i += 1)
      await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Flush docs?' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    expect((await rpc(gateway.endpoint('docs'), 'tools/list')).cacheStatus).toContain('hit');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByText('Flushed: docs').waitFor();
    await page.getByRole('row', { name: /docs by hand 1/ }).waitFor();
    await card.getByText('No entries').waitFor();
    expect((await rpc(gateway.endpoint('docs'), 'tools/list')).cacheStatus).toContain('fwd=miss');
  });

  test('flushes all upstreams', async () => {
    const gateway = await start();
    const { page } = await open(gateway);
    await page.getByRole('button', { name: 'Flush all' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Flush', exact: true }).click();
    await page.getByText('Flushed: docs, crm').waitFor();
  });

  test('asks for ADMIN_TOKEN where there is one, and keeps it for the tab alone', async () => {
    const gateway = await start({ ADMIN_TOKEN: 'open-sesame' });
    const { page, faults } = await open(gateway);
    await page.getByLabel('Admin token').fill('wrong');
    await page.keyboard.press('Enter');
    await page.getByText('does not take this token').waitFor();
    expect(await page.locator('#board').isVisible()).toBe(false);
    await page.getByLabel('Admin token').fill('open-sesame');
    await page.keyboard.press('Enter');
    await page.getByRole('article', { name: 'Upstream docs' }).waitFor();
    await page.reload();
    await page.getByRole('article', { name: 'Upstream docs' }).waitFor();
    expect(page.url()).not.toContain('sesame');
    expect(await page.evaluate('localStorage.length')).toBe(0);
    expect(faults).toEqual([]);
  });

  test('says that the gateway is gone, and keeps what it knew', async () => {
    const gateway = await start();
    await rpc(gateway.endpoint('docs'), 'tools/list');
    const { page } = await open(gateway);
    await page.getByRole('row', { name: /tools\/list/ }).waitFor();
    await gateway.close();
    await page.getByText('The gateway does not answer.').waitFor();
    expect(await page.getByRole('row', { name: /tools\/list/ }).count()).toBe(1);
  });

  test.each([
    ['light', { width: 1200, height: 800 }],
    ['dark', { width: 1200, height: 800 }],
    ['light', { width: 360, height: 740 }],
    ['dark', { width: 360, height: 740 }],
  ] as const)('is readable in %s colours on %o', async (colorScheme, viewport) => {
    const gateway = await start();
    for (let i = 0; i < 9; i += 1) await rpc(gateway.endpoint('docs'), 'tools/list');
    const token = { headers: { authorization: 'Bearer one' } };
    for (const method of ['prompts/list', 'tools/call']) await rpc(gateway.endpoint('docs'), method, token);
    await rpc(gateway.endpoint('crm'), 'tools/list');
    await fetch(`${gateway.adminUrl}/cache/flush?upstream=crm`, { method: 'POST' });
    const { page } = await open(gateway, { colorScheme, viewport });
    await page.getByRole('row', { name: /tools\/list/ }).waitFor();
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
    const redOf = async (property: string) =>
      Number(await page.evaluate(`/\\d+/.exec(getComputedStyle(document.documentElement).${property})[0]`));
    const [ink, ground] = [await redOf('color'), await redOf('backgroundColor')];
    expect(ink > ground).toBe(colorScheme === 'dark');
    await keepPicture(page, `dashboard-${colorScheme}-${viewport.width}`);
  });
});

test('the page comes with a policy that lets in nothing but what is in it', async () => {
  const gateway = await start();
  const response = await fetch(`${gateway.adminUrl}/`);
  const policy = response.headers.get('content-security-policy') ?? '';
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toMatch(/unsafe|\*/);
  expect(await response.text()).not.toMatch(/(?:src|href)="(?!data:|#)/);
});
