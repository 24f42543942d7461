/** A gateway before one upstream that is nothing but an address: no watch, the process's own clock. */
import { useClosers } from './closers.js';
import { type RunningGateway, startGateway } from './gateway.js';
import { type RawUpstream, startRawUpstream } from './raw.js';

export interface Before {
  readonly gateway: RunningGateway;
  /** The endpoint of the upstream at the gateway. */
  readonly endpoint: string;
  readonly upstream: RawUpstream;
}

export type StartBefore = (
  answer: string | Buffer,
  options?: { readonly after?: 'keep' | 'end' | 'reset'; readonly env?: Readonly<Record<string, string>> },
) => Promise<Before>;

/** Gives a function that starts a gateway before an upstream that always answers with the same bytes. */
export function useRawUpstream(): StartBefore {
  const closing = useClosers();
  return async (answer, { env, ...options } = {}) => {
    const upstream = closing(await startRawUpstream(answer, options));
    const gateway = closing(
      await startGateway({ upstreams: { u: upstream.url }, env: { UPSTREAM_U_WATCH: 'off', ...env } }),
    );
    return { gateway, endpoint: gateway.endpoint('u'), upstream };
  };
}
