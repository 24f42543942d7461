/**
 * The benchmark: `npm run bench` (a few minutes), `npm run bench -- --quick` (under one), `--small` for hits on
 * 100 resources alone, `--json FILE` for the numbers.
 * All contenders of a group run at once, one loaded at a time, in turns, so that what the machine does meanwhile meets
 * all of them alike. Every figure is a ratio to the group's reference, measured in the same run. Needs wrk and taskset.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { requestOf } from './data.mjs';
import { measure } from './load.mjs';

const isQuick = process.argv.includes('--quick');
const isOnlySmall = process.argv.includes('--small');
const jsonAt = process.argv.indexOf('--json');
const ROUNDS = isQuick ? 1 : 5;
const SECONDS = isQuick ? 1 : 2;
const SERVER_CPU = '0';
const LOAD_CPU = '1';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'mcg-bench-'));
const children = new Set();

/** Starts a process of Node; what it writes goes to a file, as a log does, so that no reader slows it down. */
function start(args, env = {}) {
  const path = join(folder, String(children.size));
  const child = spawn('taskset', ['-c', SERVER_CPU, process.execPath, ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', openSync(path, 'w'), 'inherit'],
  });
  children.add(child);
  return { child, path };
}

/** The first whole line of a process that holds `text`, as soon as it is there. */
async function lineOf({ child, path }, text = '') {
  for (;;) {
    const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
    const found = lines.find((line) => line.includes(text));
    if (found !== undefined) return found;
    if (child.exitCode !== null) throw new Error('it ended before it listened');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

async function contender(kind, size, target = '') {
  const port = await lineOf(start([here('contender.mjs'), kind, size, target]));
  return `http://127.0.0.1:${port}/mcp`;
}

async function gateway(upstream, env = {}) {
  const upstreams = { UPSTREAMS: `u=${upstream}`, UPSTREAM_U_WATCH: 'off' };
  const started = start([here('../dist/main.js')], { ...upstreams, PORT: '0', ADMIN_PORT: '0', ...env });
  const { url } = JSON.parse(await lineOf(started, '"listening"'));
  return { endpoint: `${url}/mcp/u`, pid: started.child.pid };
}

async function startRedis() {
  if (spawnSync('which', ['redis-server']).status !== 0) return undefined;
  const port = 20_000 + (process.pid % 20_000);
  const child = spawn('redis-server', [
    '--port',
    String(port),
    '--save',
    '',
    '--maxmemory-policy',
    'noeviction',
  ]);
  children.add(child);
  for await (const line of createInterface({ input: child.stdout }))
    if (line.includes('Ready to accept')) break;
  return `redis://127.0.0.1:${port}`;
}

const LIST = requestOf('resources/list');
const READ = requestOf('resources/read', { uri: 'file:///a' });
const CALL = requestOf('tools/call', { name: 'measure' });
const asSomebody = ({ headers, body }) => ({
  body,
  headers: {
    ...headers,
    authorization: `Bearer ${'x'.repeat(800)}`,
    'user-agent': 'agent/1.0',
    'accept-encoding': 'gzip, deflate',
    'accept-language': '*',
    'sec-fetch-mode': 'cors',
    'x-request-id': 'a-request',
  },
});

/** Who answers hits of one size; the reference comes first. */
async function hits(size, request, redis) {
  const upstream = await contender('upstream', size);
  const locked = await contender('upstream', `${size}:private`);
  const list = [
    { name: 'reference: barest Fastify splice', url: await contender('splice', size), request },
    { name: 'bare node:http, fixed bytes', url: await contender('bare', size), request },
    { name: 'gateway: hit', url: (await gateway(upstream)).endpoint, request },
    {
      name: 'gateway: private hit, full headers',
      url: (await gateway(locked)).endpoint,
      request: asSomebody(request),
    },
  ];
  if (redis !== undefined) {
    // A memory that holds nothing: each answer comes from Redis.
    const env = { REDIS_URL: redis, CACHE_MAX_BYTES: '1', REDIS_KEY_PREFIX: `b${size}` };
    list.push({
      name: 'gateway: hit in Redis, memory emptied',
      url: (await gateway(upstream, env)).endpoint,
      request,
    });
  }
  if (size === '100')
    list.push({ name: 'SDK server, asked directly', url: await contender('sdk', size), request });
  return list;
}

async function calls() {
  const upstream = await contender('upstream', '100');
  return [
    { name: 'reference: thin undici pipe', url: await contender('pipe', '100', upstream), request: CALL },
    { name: 'gateway: pass-through', url: (await gateway(upstream)).endpoint, request: CALL },
  ];
}

const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];

async function compare(title, contenders, connections) {
  const runs = contenders.map(() => []);
  for (const { url, request } of contenders)
    await measure({ url, request, connections, seconds: 1, cpu: LOAD_CPU });
  for (let round = 0; round < ROUNDS; round += 1)
    for (const [i, { url, request }] of contenders.entries())
      runs[i].push(await measure({ url, request, connections, seconds: SECONDS, cpu: LOAD_CPU }));
  const rows = contenders.map(({ name }, i) => {
    const ratios = runs[i].map(({ perSecond }, round) => perSecond / runs[0][round].perSecond);
    const p99 = runs[i].map(({ p99Ms }, round) => p99Ms / runs[0][round].p99Ms);
    return {
      name,
      ratio: median(ratios),
      range: [Math.min(...ratios), Math.max(...ratios)],
      p99Ratio: median(p99),
      perSecond: Math.round(median(runs[i].map(({ perSecond }) => perSecond))),
    };
  });
  print(title, rows);
  return { title, connections, rows };
}

function print(title, rows) {
  process.stdout.write(`\n${title}\n`);
  for (const { name, ratio, range, p99Ratio, perSecond } of rows) {
    const spread = `${range[0].toFixed(2)}–${range[1].toFixed(2)}`;
    process.stdout.write(
      `  ${name.padEnd(40)} ${ratio.toFixed(3)}  (${spread})  p99 ${p99Ratio.toFixed(2)}  ${perSecond}/s\n`,
    );
  }
}

/** What the process costs while nobody asks. */
async function sidecar(upstream) {
  const startedAt = performance.now();
  const names = Array.from({ length: 50 }, (_, i) => `u${i}=${upstream}`).join(',');
  const env = { UPSTREAMS: names, UPSTREAM_U0_WATCH: 'auto', UPSTREAM_U_WATCH: undefined };
  const { pid } = await gateway(upstream, env);
  const readyMs = Math.round(performance.now() - startedAt);
  const cpuOf = () => readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ').slice(13, 15).map(Number);
  const before = cpuOf();
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  const after = cpuOf();
  const idleMs = (after[0] + after[1] - before[0] - before[1]) * 10;
  const rssKb = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  const cost = { readyMs, residentMb: Math.round(rssKb / 1024), idleCpuMsIn5s: idleMs };
  process.stdout.write(`\nThe sidecar with 50 upstreams: ${JSON.stringify(cost)}\n`);
  return cost;
}

function stopAll() {
  for (const child of children) child.kill('SIGTERM');
  children.clear();
}

try {
  const redis = await startRedis();
  const results = [];
  const small = await hits('100', LIST, redis);
  const widths = isQuick || isOnlySmall ? [16] : [16, 1, 128];
  for (const connections of widths)
    results.push(await compare(`Hit, 100 resources, ${connections} connections`, small, connections));
  let cost;
  if (!isOnlySmall) {
    results.push(
      await compare('Hit, resources/read of 4 kB, 16 connections', await hits('read', READ, redis), 16),
    );
    results.push(
      await compare('Hit, 10,000 resources, 16 connections', await hits('10000', LIST, redis), 16),
    );
    results.push(await compare('Pass-through, a call of 4 kB, 16 connections', await calls(), 16));
    cost = await sidecar(await contender('upstream', '100'));
  }
  if (jsonAt !== -1)
    writeFileSync(process.argv[jsonAt + 1], JSON.stringify({ results, sidecar: cost }, undefined, 2));
} finally {
  stopAll();
}
