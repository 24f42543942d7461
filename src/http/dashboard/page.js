/**
 * Owns: the dashboard in the browser: asks `/cache` every two seconds and shows what it says. What comes from there
 * becomes text nodes alone, never markup. Without an admin token that fits it asks for one, kept for this tab.
 */
const POLL_MS = 2000;
const TOAST_MS = 4000;
const MAX_REASONS = 4;
const TOKEN = 'mcp-cache-gateway-token';

/** What the words of `Cache-Status` mean for whoever wants to change something. */
const REASONS = {
  'zero-lifetime':
    'the server gave no lifetime (ttlMs is 0 or missing): see UPSTREAM_…_TTL_MS and …_MIN_TTL_MS',
  'not-cacheable-method': 'calls and other methods that are never cached',
  'has-cursor': 'pages asked for with a cursor of the server’s',
  'incomplete-request': 'requests without all that their revision demands',
  'unknown-version': 'a protocol version that the gateway does not know',
  'error-reply': 'the server answered with a JSON-RPC error',
  status: 'the server answered with an HTTP status other than 200',
  'too-large': 'larger than CACHE_MAX_ENTRY_BYTES',
  superseded: 'changed while it was fetched',
  uncacheable: 'proved uncacheable a moment ago',
  'upstream-failed': 'the server failed, a stale entry answered',
  'upstream-slow': 'the server was slow, a stale entry answered',
  backoff: 'the server failed a moment ago, a stale entry answered',
  'upstream-unreachable': 'the server could not be reached',
  'upstream-timeout': 'the server did not answer in time',
  'cursor-loop': 'the server’s cursors go round in a circle',
  'page-stale': 'a page of the list had no lifetime',
  'page-failed': 'a page of the list could not be had',
};

const FLUSHES = {
  watch: 'the server said that something changed',
  tap: 'the server told a client that something changed',
  'watch-connected': 'the watch connected: what it missed is unknown',
  operator: 'by hand',
};

const WATCHES = {
  connected: ['good', 'told of changes'],
  elsewhere: ['good', 'another replica is told of changes'],
  connecting: ['wait', 'asking to be told of changes'],
  waiting: ['wait', 'asks again soon to be told of changes'],
  refused: ['wait', 'offers no change notifications: lives by ttlMs'],
  unauthorized: ['wait', 'asks the gateway itself for credentials: lives by ttlMs'],
  off: ['wait', 'not watched: lives by ttlMs'],
  stopped: ['wait', 'no longer watched'],
};

const byId = (id) => document.getElementById(id);
const cards = new Map();
let token = sessionStorage.getItem(TOKEN) ?? '';
let lastSeenAt;
let clockOffsetMs = 0;

class SignInNeeded extends Error {}

async function ask(path, init = {}) {
  const headers = token === '' ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(path, { ...init, headers, cache: 'no-store' });
  if (response.status === 401) throw new SignInNeeded();
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response.json();
}

async function refresh() {
  try {
    const shown = await ask('cache');
    lastSeenAt = Date.now();
    clockOffsetMs = lastSeenAt - Date.parse(shown.now);
    show(shown);
    live('good', 'live');
  } catch (error) {
    if (error instanceof SignInNeeded) askForToken();
    else sayGone();
  }
}

function show(shown) {
  byId('sign-in').hidden = true;
  byId('gone').hidden = true;
  byId('board').hidden = false;
  byId('board').classList.remove('is-gone');
  byId('flush-all').hidden = false;
  const { memory, redis } = shown.tiers;
  const inRedis = redis === 'off' ? '' : ` · Redis ${redis === 'up' ? 'in use' : 'away'}`;
  byId('tiers').textContent =
    `up ${span(since(shown.since))} · memory ${size(memory.bytes)} of ${size(memory.maxBytes)}${inRedis}`;
  showFigures(shown.upstreams);
  showEmpty(shown);
  for (const upstream of shown.upstreams) cardOf(upstream.name).show(upstream, shown.limit);
  showFlushes(shown.flushes);
}

function showFigures(upstreams) {
  const sum = (field) => upstreams.reduce((total, upstream) => total + upstream[field], 0);
  const figures = [
    [ratio(sum('hits'), sum('misses') + sum('stale')), 'answered from the cache'],
    [count(sum('upstreamCallsSaved')), 'requests saved the servers'],
    [count(sum('entries')), `entries, ${size(sum('bytes'))}`],
    [count(sum('stale')), 'stale answers, while a server failed'],
  ];
  byId('figures').replaceChildren(
    ...figures.map(([figure, meaning]) =>
      make('div', {}, make('strong', {}, figure), make('span', { className: 'quiet' }, meaning)),
    ),
  );
}

function showEmpty({ url, upstreams }) {
  const asked = upstreams.some(({ hits, misses, stale, bypassed }) => hits + misses + stale + bypassed > 0);
  byId('empty').hidden = asked;
  if (asked) return;
  const endpoints = upstreams.map(({ name }) => `${url}/mcp/${name}`);
  const first = [
    `curl ${endpoints[0]} -H 'content-type: application/json' \\`,
    `  -H 'accept: application/json, text/event-stream' -H 'mcp-protocol-version: 2025-11-25' \\`,
    `  -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'`,
  ];
  byId('first-request').textContent = [...endpoints, '', ...first].join('\n');
}

function showFlushes(flushes) {
  byId('no-flushes').hidden = flushes.length > 0;
  byId('flushes').replaceChildren(
    ...flushes
      .slice(0, 20)
      .map(({ at, upstream, reason, entries }) =>
        row([`${span(since(at))} ago`, upstream, FLUSHES[reason] ?? reason, number(count(entries))]),
      ),
  );
}

function cardOf(name) {
  const known = cards.get(name);
  if (known !== undefined) return known;
  const root = byId('upstream-card').content.firstElementChild.cloneNode(true);
  const part = (which) => root.querySelector(`[data-part="${which}"]`);
  root.querySelector('h2').textContent = name;
  root.setAttribute('aria-label', `Upstream ${name}`);
  part('flush').setAttribute('aria-label', `Flush ${name}`);
  part('flush').addEventListener('click', () => flush(name));
  byId('upstreams').append(root);
  const card = { show: (upstream, limit) => showUpstream(root, part, upstream, limit) };
  cards.set(name, card);
  return card;
}

function showUpstream(root, part, upstream, limit) {
  const { hits, misses, stale, bypassed, watch } = upstream;
  const isUnauthorized = /^status 40[13]$/.test(watch.reason ?? '');
  const [kind, meaning] = WATCHES[isUnauthorized ? 'unauthorized' : watch.state] ?? ['wait', watch.state];
  part('watch').dataset.kind = kind;
  part('watch').textContent = meaning;
  part('watch').title =
    `${watch.state} for ${span(since(watch.since))}${watch.reason === null ? '' : `: ${watch.reason}`}`;
  const shares = { hit: hits, miss: misses, stale, bypass: bypassed };
  part('mix').setAttribute(
    'aria-label',
    `${hits} hits, ${misses} misses, ${stale} stale answers, ${bypassed} passed through`,
  );
  part('mix').replaceChildren(...mixOf(shares));
  const { lastFlush } = upstream;
  part('facts').replaceChildren(
    ...fact('Hit ratio', ratio(hits, misses + stale)),
    ...fact('Hits', count(hits), 'hit'),
    ...fact('Misses', count(misses), 'miss'),
    ...fact('Stale', count(stale), 'stale'),
    ...fact('Passed through', count(bypassed), 'bypass'),
    ...fact('Requests saved', count(upstream.upstreamCallsSaved)),
    ...fact(
      'Last flush',
      lastFlush === null
        ? 'none'
        : `${span(since(lastFlush.at))} ago, ${FLUSHES[lastFlush.reason] ?? lastFlush.reason}`,
    ),
    ...fact('Generation', make('code', {}, String(upstream.generation))),
  );
  part('reasons').replaceChildren(...reasonsOf(upstream.reasons));
  root.querySelector('summary').textContent =
    upstream.entries === 0
      ? 'No entries'
      : `${count(upstream.entries)} ${upstream.entries === 1 ? 'entry' : 'entries'}, ${size(upstream.bytes)}`;
  root.querySelector('tbody').replaceChildren(...upstream.list.map(entryRow));
  if (upstream.entries > 0 && !('seen' in root.dataset)) {
    root.dataset.seen = '';
    part('entries').open = upstream.entries <= 12;
  }
  part('more').textContent =
    upstream.entries > limit ? `the first ${limit} of ${count(upstream.entries)}` : '';
}

function mixOf(shares) {
  const kinds = Object.entries(shares).filter(([, many]) => many > 0);
  if (kinds.length === 0) kinds.push(['none', 1]);
  return kinds.map(([kind, many]) => {
    const bar = make('i', {});
    bar.dataset.kind = kind;
    bar.style.flexGrow = String(many);
    return bar;
  });
}

function reasonsOf(reasons) {
  return Object.entries(reasons)
    .sort(([, a], [, b]) => b - a)
    .slice(0, MAX_REASONS)
    .map(([reason, many]) =>
      make(
        'li',
        {},
        make('b', {}, count(many)),
        make('span', {}, make('code', {}, reason), ` ${REASONS[reason] ?? ''}`),
      ),
    );
}

function entryRow({ method, scope, ageMs, remainingMs, items, pages, bytes, authContext }) {
  const share = remainingMs / Math.max(1, remainingMs + ageMs);
  const fill = make('i', {});
  fill.style.width = `${Math.round(share * 100)}%`;
  const bar = make('span', { className: 'bar' }, fill);
  if (share < 0.15) bar.dataset.kind = 'low';
  const left = remainingMs > 0 ? span(remainingMs) : 'stale';
  const whom = authContext === null ? scope : make('span', {}, `${scope} `, make('code', {}, authContext));
  const life = make('td', { className: 'life' }, bar, left);
  return row([
    make('code', {}, method),
    whom,
    life,
    number(span(ageMs)),
    number(count(items)),
    number(count(pages)),
    number(size(bytes)),
  ]);
}

async function flush(name) {
  const dialog = byId('confirm');
  byId('confirm-title').textContent = name === undefined ? 'Flush every upstream?' : `Flush ${name}?`;
  byId('confirm-text').textContent =
    'All that is cached is forgotten, here and on every replica that shares it. The next request of each list goes to the server.';
  dialog.returnValue = 'cancel';
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }));
  if (dialog.returnValue !== 'flush') return;
  const query = name === undefined ? '' : `?upstream=${encodeURIComponent(name)}`;
  try {
    const { flushed } = await ask(`cache/flush${query}`, { method: 'POST' });
    tell(`Flushed: ${flushed.join(', ')}`);
  } catch (error) {
    if (error instanceof SignInNeeded) askForToken();
    else tell(`It could not be flushed: ${error.message}`);
  }
  await refresh();
}

function tell(text) {
  byId('told').textContent = text;
  setTimeout(() => {
    if (byId('told').textContent === text) byId('told').textContent = '';
  }, TOAST_MS);
}

function askForToken() {
  live('wait', 'signed out');
  byId('board').hidden = true;
  byId('flush-all').hidden = true;
  if (!byId('sign-in').hidden) return;
  byId('sign-in').hidden = false;
  byId('sign-in-fault').textContent = token === '' ? '' : 'The gateway does not take this token.';
  token = '';
  sessionStorage.removeItem(TOKEN);
  byId('token').focus();
}

function sayGone() {
  live('bad', 'no answer');
  byId('board').classList.add('is-gone');
  byId('gone').hidden = false;
  const ago = lastSeenAt === undefined ? '' : ` What is shown is ${span(Date.now() - lastSeenAt)} old.`;
  byId('gone').textContent = `The gateway does not answer.${ago}`;
}

function live(kind, text) {
  byId('live').dataset.kind = kind;
  byId('live').textContent = text;
}

/** Milliseconds since an instant of the gateway's clock, whatever this machine's own says. */
function since(instant) {
  return Math.max(0, Date.now() - clockOffsetMs - Date.parse(instant));
}

function span(ms) {
  const s = Math.floor(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${String(s % 60).padStart(2, '0')} s`;
  if (s < 86_400)
    return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, '0')} min`;
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`;
}

function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(1)} kB`;
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
}

const count = (many) => many.toLocaleString('en');

function ratio(part, rest) {
  return part + rest === 0 ? '–' : `${((100 * part) / (part + rest)).toFixed(1)} %`;
}

function make(tag, fields, ...children) {
  const element = Object.assign(document.createElement(tag), fields);
  element.append(...children);
  return element;
}

const number = (text) => make('td', { className: 'number' }, text);
const row = (cells) =>
  make(
    'tr',
    {},
    ...cells.map((cell) => (cell instanceof HTMLTableCellElement ? cell : make('td', {}, cell))),
  );

/** One figure with its name; `kind` is its colour in the bar above. */
function fact(name, value, kind) {
  const dot = make('i', { className: 'dot' });
  dot.dataset.kind = kind;
  const term = kind === undefined ? make('dt', {}, name) : make('dt', {}, dot, name);
  return [make('div', {}, term, make('dd', {}, value))];
}

byId('flush-all').addEventListener('click', () => flush(undefined));
byId('sign-in').addEventListener('submit', (event) => {
  event.preventDefault();
  token = byId('token').value;
  sessionStorage.setItem(TOKEN, token);
  byId('token').value = '';
  byId('sign-in').hidden = true;
  refresh();
});

async function run() {
  for (;;) {
    const isAsking = !byId('sign-in').hidden;
    if (!document.hidden && !isAsking) await refresh();
    else if (document.hidden) live('wait', 'paused');
    await new Promise((resolve) => {
      setTimeout(resolve, POLL_MS);
      document.addEventListener('visibilitychange', resolve, { once: true });
    });
  }
}

run();
