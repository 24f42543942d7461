/**
 * Owns: the short way of a hit (design, law 14), in front of the router: what a connection asked before, and what is at
 * hand for it, is answered without reading the request anew. What it says is what the long way says; whatever is
 * unclear takes the long way, with nothing taken from it.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { CacheCall } from '../cache/list-cache.js';
import type { CacheableRequest } from '../core/classify.js';
import type { RawHeaders } from '../core/headers.js';
import type { Drain } from './drain.js';
import { type HitTold, tellHit } from './exchange.js';
import { createRecall, type KnownHead, MAX_RECALLED_BYTES, recallIn } from './recall.js';
import { ownFieldsOn, putOnAnswer, writeEntry } from './reply.js';
import type { ServeDeps, ServeInput } from './task.js';

interface Known extends Pick<CacheCall, 'keys' | 'mayShare'>, HitTold {
  readonly era: CacheableRequest['era'];
  /** What the answer says to a script of the origin that asks. */
  readonly ownFields: RawHeaders;
}

export interface AtOnceDeps extends Pick<ServeDeps, 'listCache' | 'clock' | 'lines' | 'onEnd' | 'tracer'> {
  readonly track: Drain['track'];
}

export interface AtOnce {
  /** Answers a request, or gives it to `router` as it came. */
  front(req: IncomingMessage, res: ServerResponse, router: RequestListener): void;
  /** Keeps what was made of a request, for the next like it. */
  keep(input: ServeInput, call: CacheCall): void;
}

export function createAtOnce(deps: AtOnceDeps): AtOnce {
  const recall = createRecall<Known>();

  function answer(res: ServerResponse, head: KnownHead<Known>, body: Buffer): boolean {
    const recalled = recallIn(head, body);
    if (recalled === undefined) return false;
    const { value: known, idRaw } = recalled;
    const startedAt = deps.clock.now();
    const answer = deps.listCache.atHand(known);
    if (answer === undefined) return false;
    const untrack = deps.track(res);
    res.on('close', () => {
      untrack(res);
      tellHit(res, known, { pages: answer.pages, startedAt }, deps);
    });
    putOnAnswer(res, known.ownFields);
    writeEntry(res, answer, { idRaw, era: known.era });
    return true;
  }

  return {
    front(req, res, router) {
      const { url = '', rawHeaders } = req;
      const head = req.method === 'POST' ? recall.headOf(req.socket, { url, rawHeaders }) : undefined;
      const length = Number(req.headers['content-length']);
      if (head === undefined || !(length > 0 && length <= MAX_RECALLED_BYTES)) {
        router(req, res);
        return;
      }
      whenRead(req, length, (body) => {
        if (answer(res, head, body)) return;
        // Back to where it was before it was looked at: the router reads it for itself.
        req.pause();
        req.unshift(body);
        router(req, res);
      });
    },
    keep({ req, res, body }, { upstream, keys, mayShare, request }) {
      const { rpc, method, era, cursor } = request;
      const id = rpc.members.find(({ key }) => key === 'id');
      // A trace needs what is in the request.
      if (body === undefined || id === undefined || cursor !== undefined || deps.tracer !== undefined) return;
      const { url = '', rawHeaders } = req;
      const told = { upstream, method, outcome: 'hit', key: keys.shared.slice(0, 12) } as const;
      const known = {
        ...{ upstream, keys, mayShare, method, era },
        ownFields: ownFieldsOn(res),
        log: deps.lines.child(told),
      };
      recall.keep(req.socket, { url, rawHeaders, body }, id, known);
    },
  };
}

/** Calls back with the whole body once it is there; never where the client leaves before. */
function whenRead(req: IncomingMessage, length: number, done: (body: Buffer) => void): void {
  const chunks: Buffer[] = [];
  let read = 0;
  const onData = (chunk: Buffer) => {
    chunks.push(chunk);
    read += chunk.length;
    if (read < length) return;
    req.removeListener('data', onData);
    done(chunks.length === 1 ? chunk : Buffer.concat(chunks));
  };
  req.on('data', onData);
}
