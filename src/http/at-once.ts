/**
 * Owns: the short way of a hit (design, law 14): what a connection asked before, and what is at hand for it, is answered
 * without reading the request anew. What it says is what the long way says; whatever is unclear takes the long way.
 */
import type { CacheCall } from '../cache/list-cache.js';
import type { CacheableRequest } from '../core/classify.js';
import { tellEnd } from './exchange.js';
import { createRecall } from './recall.js';
import { writeEntry } from './reply.js';
import type { ServeDeps, ServeInput } from './task.js';

type Known = Pick<CacheCall, 'upstream' | 'keys' | 'mayShare'> & Pick<CacheableRequest, 'method' | 'era'>;

export interface AtOnce {
  /** `known`: the connection asked this before, but nothing is at hand for it. */
  answer(input: ServeInput): 'answered' | 'known' | 'new';
  /** Keeps what was made of a request, for the next like it. */
  keep(input: ServeInput, call: CacheCall): void;
}

export function createAtOnce(deps: ServeDeps): AtOnce {
  const recall = createRecall<Known>();
  return {
    answer({ req, res, body }) {
      // A trace needs what is in the request.
      if (body === undefined || deps.tracer !== undefined) return 'new';
      const { url = '', rawHeaders } = req;
      const recalled = recall.find(req.socket, { url, rawHeaders, body });
      if (recalled === undefined) return 'new';
      const { upstream, method, era, keys } = recalled.value;
      const startedAt = deps.clock.now();
      const answer = deps.listCache.atHand(recalled.value);
      if (answer === undefined) return 'known';
      const { pages } = answer;
      const summary = { upstream, method, outcome: 'hit', key: keys.shared.slice(0, 12), pages } as const;
      res.once('close', () => tellEnd(res, summary, startedAt, deps));
      writeEntry(res, answer, { idRaw: recalled.idRaw, era });
      return 'answered';
    },
    keep({ req, body }, { upstream, keys, mayShare, request }) {
      const { rpc, method, era, cursor } = request;
      const id = rpc.members.find(({ key }) => key === 'id');
      if (body === undefined || id === undefined || cursor !== undefined) return;
      const { url = '', rawHeaders } = req;
      recall.keep(req.socket, { url, rawHeaders, body }, id, { upstream, keys, mayShare, method, era });
    },
  };
}
