/**
 * Owns: the dashboard, put together from its files as one page that asks for nothing from outside. A content security
 * policy names exactly the style and the script that are in it.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export interface DashboardPage {
  readonly html: string;
  readonly contentSecurityPolicy: string;
}

/** Reads the page's files, which lie beside this one. @throws where they are missing */
export function readDashboard(): DashboardPage {
  const read = (name: string) => readFileSync(new URL(`./dashboard/${name}`, import.meta.url), 'utf8');
  const style = read('page.css');
  const script = read('page.js');
  const html = read('page.html')
    .replace('<style></style>', () => `<style>${style}</style>`)
    .replace('<script type="module"></script>', () => `<script type="module">${script}</script>`);
  const policy = [
    "default-src 'none'",
    `style-src '${hashOf(style)}'`,
    `script-src '${hashOf(script)}'`,
    "connect-src 'self'",
    'img-src data:',
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ];
  return { html, contentSecurityPolicy: policy.join('; ') };
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}
