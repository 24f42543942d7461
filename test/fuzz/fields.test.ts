/** Header fields and cursors: what of them is read, what travels on, and that nothing altered is taken for ours. */
import { isUtf8 } from 'node:buffer';
import { describe, expect, test } from 'vitest';
import { judgeAccess } from '../../src/core/access.js';
import { classify, decodeName } from '../../src/core/classify.js';
import { cursorTag, isGenuine, makeCursor, readCursor, tagOf } from '../../src/core/cursor.js';
import {
  acceptsBoth,
  contentCodings,
  contentTypeOf,
  endToEnd,
  mediaType,
  upstreamHeaders,
  valuesOf,
} from '../../src/core/headers.js';
import { readMessage } from '../../src/core/message.js';
import { renameChallenges } from '../../src/core/resource-metadata.js';
import { rpcRequest } from '../support/client.js';
import { rawHeaders } from '../support/core.js';
import { CURSORS, FIELD_VALUES } from './corpus.js';
import type { Random } from './random.js';
import { countInputs, fuzz, TIMEOUT_MS } from './runs.js';
import { expectSame } from './same.js';

const NAMES = [
  'Connection',
  'Accept',
  'content-type',
  'CONTENT-ENCODING',
  'Cookie',
  'X-Hop',
  'Authorization',
  'TE',
  'Host',
  'Mcp-Name',
];

/** The value as it stands in a field: no line ends. */
const textOf = (bytes: Buffer) => bytes.toString('latin1').replace(/[\r\n\0]/g, '');

function fieldsWith(value: string, random: Random): string[] {
  const fields: string[] = [];
  for (let count = random.below(6); count > 0; count -= 1)
    fields.push(random.pick(NAMES), textOf(random.pick(FIELD_VALUES)));
  const at = 2 * random.below(fields.length / 2 + 1);
  fields.splice(at, 0, random.pick(NAMES), value);
  return fields;
}

const pairsOf = (fields: readonly string[]) =>
  fields.flatMap((name, i) => (i % 2 === 0 ? [[name, fields[i + 1] ?? ''] as const] : []));

const HOP =
  /^(connection|keep-alive|proxy-authenticate|proxy-authorization|proxy-connection|te|trailer|transfer-encoding|upgrade)$/i;

describe('header fields', { timeout: TIMEOUT_MS }, () => {
  test('that are hop by hop or listed stay here, and all others travel in their order', () => {
    fuzz({ name: 'end to end', corpus: FIELD_VALUES, runs: 15_000 }, (bytes, random) => {
      const fields = fieldsWith(textOf(bytes), random);
      const pairs = pairsOf(fields);
      const listed = pairs
        .filter(([name]) => /^connection$/i.test(name))
        .flatMap(([, value]) => value.split(','));
      const isListed = (name: string) =>
        listed.some((one) => one.trim().toLowerCase() === name.toLowerCase());
      const wanted = pairs.filter(([name]) => !HOP.test(name) && !isListed(name));
      expectSame(endToEnd(fields), wanted.flat());
      const injected = { authorization: 'Bearer ours', headers: { cookie: 'ours' } };
      const sent = upstreamHeaders(fields, injected);
      const theirs = wanted.filter(([name]) => /^authorization$/i.test(name)).map(([, value]) => value);
      expectSame(valuesOf(sent, 'authorization'), theirs.length > 0 ? theirs : ['Bearer ours']);
      expectSame(valuesOf(sent, 'cookie'), ['ours']);
      expectSame(valuesOf(sent, 'host'), []);
    });
  });

  test('are read as their grammar says, whatever stands in them', () => {
    fuzz({ name: 'values', corpus: FIELD_VALUES, runs: 15_000 }, (bytes, random) => {
      const value = textOf(bytes);
      const fields = fieldsWith(value, random);
      const type = mediaType(value);
      expect(type).toBe(type.trim().toLowerCase());
      expect(type).not.toContain(';');
      const types = valuesOf(fields, 'content-type');
      expect(contentTypeOf(fields)).toBe(types.length === 1 ? mediaType(types[0]) : '');
      for (const coding of contentCodings(fields)) expect(coding).toMatch(/^[^,A-Z]+$/s);
      if (acceptsBoth(['accept', value])) {
        expect(value.toLowerCase()).toContain('application/json');
        expect(value.toLowerCase()).toContain('text/event-stream');
      }
      const verdict = judgeAccess(['Host', value], { hosts: ['loopback'], origins: ['loopback'] });
      if (verdict === 'allowed') expect(value).toMatch(/^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/i);
      const origin = judgeAccess(['Host', 'localhost', 'Origin', value], {
        hosts: ['loopback'],
        origins: ['loopback'],
      });
      if (origin === 'allowed' && URL.canParse(value))
        expect(new URL(value).hostname).toMatch(/^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/);
    });
  });

  test('that name a resource are decoded exactly, or not at all', () => {
    fuzz({ name: 'names', corpus: FIELD_VALUES, runs: 10_000 }, (bytes) => {
      const value = textOf(bytes);
      const name = decodeName(value);
      if (!value.startsWith('=?base64?') || !value.endsWith('?=') || value.length < 11) {
        expect(name).toBe(value);
      } else {
        const inner = value.slice(9, -2);
        const raw = Buffer.from(inner, 'base64');
        const isPlain = inner.length % 4 === 0 && /^[\w+/-]*={0,2}$/.test(inner) && !/[-_]/.test(inner);
        expect(name).toBe(isPlain && isUtf8(raw) ? raw.toString() : undefined);
      }
      const { headers, body } = rpcRequest('resources/read', { params: { uri: 'file:///ä' } });
      const found = classify(readMessage(Buffer.from(body)), rawHeaders({ ...headers, 'mcp-name': value }));
      expect(found.kind).toBe(name === 'file:///ä' ? 'cacheable' : 'refused');
    });
  });

  test('of challenges point to this gateway, and what is quoted stays', () => {
    const names = { resource: 'r', metadata: 'https://g.example/m' };
    fuzz({ name: 'challenges', corpus: FIELD_VALUES, runs: 10_000 }, (bytes) => {
      const value = textOf(bytes);
      const renamed = renameChallenges(['WWW-Authenticate', value, 'X', value], names);
      expectSame([renamed.length, renamed[0], renamed[2], renamed[3]], [4, 'WWW-Authenticate', 'X', value]);
      const text = renamed[1] ?? '';
      expectSame(renameChallenges(['www-authenticate', text], names)[1], text);
      if (!/resource_metadata/i.test(value)) expect(text).toBe(value);
    });
  });
});

const SEED = 'seed';
const PARTS = { tag: cursorTag({ name: 'u', url: 'http://u' }), seed: SEED, offset: 40, ownKey: 'key' };

describe('a cursor', { timeout: TIMEOUT_MS }, () => {
  const genuine = makeCursor(PARTS);

  test('with any one character changed, taken out or put in is no longer ours', () => {
    for (let at = 0; at < genuine.length; at += 1) {
      for (const char of [
        '',
        'A',
        'b',
        '0',
        '9',
        '-',
        '_',
        '.',
        '\n',
        'é',
        '\ud800',
        genuine.slice(at, at + 2),
      ]) {
        countInputs();
        const altered = genuine.slice(0, at) + char + genuine.slice(at + 1);
        const read = readCursor(altered);
        if (altered === genuine || read === undefined) continue;
        // The tag and the name of the snapshot are looked up before the code is checked.
        const { tag, snapshotId } = readCursor(genuine) ?? {};
        expect(read.tag !== tag || read.snapshotId !== snapshotId || !isGenuine(read, SEED, 'key')).toBe(
          true,
        );
      }
    }
  });

  test('of whatever text is read without a fault, and is ours only as we made it', () => {
    const corpus = [...CURSORS, Buffer.from(genuine)];
    fuzz({ name: 'cursors', corpus, runs: 20_000 }, (bytes) => {
      const text = bytes.toString('utf8');
      const read = readCursor(text);
      if (read === undefined) return;
      expect(`mcg.${read.tag}.${read.snapshotId}.${read.offset}.${read.code}`).toBe(text);
      expect(tagOf(text)).toBe(read.tag);
      const isOurs =
        isGenuine(read, SEED, 'key') && genuine.includes(read.snapshotId) && read.tag === PARTS.tag;
      expect(isOurs).toBe(text === genuine);
      expect(isGenuine(read, SEED, 'other')).toBe(false);
    });
  });
});
