/** What a scenario begins with: one gateway before scripted upstreams, on a clock that the test moves. */
import { type RpcAnswer, type RpcOptions, rpc } from './client.js';
import { createTestClock, type TestClock } from './clock.js';
import { useClosers } from './closers.js';
import { type RunningGateway, startGateway } from './gateway.js';
import { type Respond, type ScriptedUpstream, startUpstream } from './upstream.js';

export interface ScenarioOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Answers the gateway's watch on `u`; it is refused unless a test says otherwise. */
  readonly watch?: Respond;
  /** A second upstream, `u2`. */
  readonly second?: Respond;
  /** What comes after the origin in the configured address of `u`. */
  readonly path?: string;
}

/** An answer, and how many requests the upstreams got for it. */
export type Asked = RpcAnswer & { readonly asked: number };

export interface Scenario {
  readonly clock: TestClock;
  readonly gateway: RunningGateway;
  readonly upstream: ScriptedUpstream;
  readonly second: ScriptedUpstream;
  /** Sends one request to `u`, or to the endpoint given, and counts what the upstreams get meanwhile. */
  ask(method: string, options?: RpcOptions & { readonly endpoint?: string }): Promise<Asked>;
  /** The same for `tools/list`. */
  list(options?: RpcOptions & { readonly endpoint?: string }): Promise<Asked>;
}

export type StartScenario = (respond: Respond, options?: ScenarioOptions) => Promise<Scenario>;

/** Gives a function that starts a scenario; all of it is closed after the test. */
export function useScenario(): StartScenario {
  const closing = useClosers();
  return async (respond, options = {}) => {
    const clock = createTestClock();
    const upstream = closing(await startUpstream(respond));
    const second = options.second === undefined ? upstream : closing(await startUpstream(options.second));
    if (options.watch !== undefined) upstream.respondToWatch = options.watch;
    const gateway = await startGateway({
      upstreams: {
        u: `${upstream.origin}${options.path ?? '/mcp'}`,
        ...(options.second !== undefined && { u2: second.url }),
      },
      clock,
      ...(options.env !== undefined && { env: options.env }),
    });
    closing({
      close: async () => {
        const closed = gateway.close();
        // No request in flight is waited for: the drain is over at once.
        clock.advance(1_000);
        await closed;
      },
    });
    const counted = () => upstream.count() + (second === upstream ? 0 : second.count());
    const ask: Scenario['ask'] = async (method, { endpoint, ...rest } = {}) => {
      const before = counted();
      const answer = await rpc(endpoint ?? gateway.endpoint('u'), method, rest);
      return { ...answer, asked: counted() - before };
    };
    return { clock, gateway, upstream, second, ask, list: (rest) => ask('tools/list', rest) };
  };
}
