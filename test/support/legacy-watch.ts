/** The legacy watch as an upstream sees it: a session of the gateway's own, and its GET stream in a test's hand. */
import type { ServerResponse } from 'node:http';
import { beginEvents, type HeldWatch, sendEvent, sendResult } from './upstream.js';

/** Knows no `subscriptions/listen`; takes `initialize` and the GET stream of that session. */
export function heldLegacyWatch(): HeldWatch {
  const streams = new Set<ServerResponse>();
  return {
    streams,
    respond(request, res) {
      const method = request.json?.method;
      if (method === 'initialize') {
        const serverInfo = { name: 'legacy', version: '1' };
        const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo };
        sendResult(res, request, result, { 'mcp-session-id': 'watch-session' });
      } else if (method !== undefined) {
        res.writeHead(method === 'notifications/initialized' ? 202 : 400).end();
      } else if (request.httpMethod === 'GET') {
        beginEvents(res);
        streams.add(res);
        res.on('close', () => streams.delete(res));
      } else {
        res.writeHead(204).end();
      }
    },
    notify(method, params = {}) {
      for (const res of streams) sendEvent(res, { jsonrpc: '2.0', method, params });
    },
    cut() {
      for (const res of streams) res.destroy();
    },
  };
}
