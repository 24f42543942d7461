/** Debian's Chromium, driven by playwright-core: one browser for a file, a page without history for each test. */
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const ARTIFACTS = fileURLToPath(new URL('../../artifacts/', import.meta.url));

/** Without these it looks for hosts of its maker's at every start. */
const QUIETLY = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: '/usr/bin/chromium', args: QUIETLY });
}

export interface WatchedPage {
  readonly page: Page;
  /** What it asked for outside of its own address, and what it complained of. */
  readonly faults: readonly string[];
  close(): Promise<void>;
}

/** Opens `url`, and takes note of everything that a good page does not do. */
export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('request', (request) => {
    const to = request.url();
    if (!to.startsWith(`${url}/`) && !to.startsWith('data:')) faults.push(`asked for ${to}`);
  });
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (message) => {
    // The browser's own line about a status is no complaint of the page.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      faults.push(message.text());
  });
  await page.goto(`${url}/`);
  return { page, faults, close: () => context.close() };
}

/** Keeps a picture of the page beside the results of the tests. */
export async function keepPicture(page: Page, name: string): Promise<void> {
  mkdirSync(ARTIFACTS, { recursive: true });
  await page.screenshot({ path: `${ARTIFACTS}${name}.png`, fullPage: true });
}
