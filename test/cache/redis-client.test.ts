import { describe, expect, test } from 'vitest';
import { parseRedisUrl } from '../../src/core/redis-url.js';

describe('a REDIS_URL', () => {
  test.each([
    ['redis://h', { kind: 'single', tls: false, nodes: [{ host: 'h', port: 6379 }], db: 0 }],
    ['redis://h:1/', { kind: 'single', tls: false, nodes: [{ host: 'h', port: 1 }], db: 0 }],
    [
      'rediss://h.example:6380/3',
      { kind: 'single', tls: true, nodes: [{ host: 'h.example', port: 6380 }], db: 3 },
    ],
    ['redis://[::1]:7000', { kind: 'single', tls: false, nodes: [{ host: '::1', port: 7000 }], db: 0 }],
    [
      'redis://:p%40ss%3A@h',
      { kind: 'single', tls: false, nodes: [{ host: 'h', port: 6379 }], db: 0, password: 'p@ss:' },
    ],
    [
      'redis://me:secret@h',
      {
        kind: 'single',
        tls: false,
        nodes: [{ host: 'h', port: 6379 }],
        db: 0,
        username: 'me',
        password: 'secret',
      },
    ],
    [
      'redis-sentinel://a,b:26380/main',
      {
        kind: 'sentinel',
        tls: false,
        nodes: [
          { host: 'a', port: 26_379 },
          { host: 'b', port: 26_380 },
        ],
        db: 0,
        master: 'main',
      },
    ],
    [
      'rediss-sentinel://:pw@a/main/2',
      {
        kind: 'sentinel',
        tls: true,
        nodes: [{ host: 'a', port: 26_379 }],
        db: 2,
        master: 'main',
        password: 'pw',
      },
    ],
    [
      'redis-cluster://a:1,b:2',
      {
        kind: 'cluster',
        tls: false,
        nodes: [
          { host: 'a', port: 1 },
          { host: 'b', port: 2 },
        ],
        db: 0,
      },
    ],
    ['rediss-cluster://a', { kind: 'cluster', tls: true, nodes: [{ host: 'a', port: 6379 }], db: 0 }],
  ])('%s is read', (url, address) => {
    expect(parseRedisUrl(url)).toEqual(address);
  });

  test.each([
    '',
    'h:6379',
    'http://h',
    'redis:/h',
    'redis://',
    'redis://h:0',
    'redis://h:70000',
    'redis://h/name',
    'redis://a,b',
    'redis://h:x',
    'redis://h?db=1',
    'redis://%zz@h',
    'redis-sentinel://a',
    'redis-sentinel://a/',
    'redis-sentinel://a/main/x',
    'redis-cluster://a/1',
    'redis-cluster://a,,b',
  ])('%j is none', (url) => {
    expect(parseRedisUrl(url)).toBeUndefined();
  });
});
