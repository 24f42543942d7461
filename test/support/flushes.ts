/** What the gateway's log tells of flushes. */
import { until } from './gate.js';
import type { RunningGateway } from './gateway.js';

/** How many flushes of this reason there were so far: `watch`, `tap`, `watch-connected`. */
export function flushes(gateway: RunningGateway, reason: string): number {
  return gateway.logs.filter((line) => line.msg === 'flushed' && line.reason === reason).length;
}

/** Waits until the watch on the one upstream stands: the flush that comes with it is then over. */
export function watching(gateway: RunningGateway): Promise<void> {
  return until(() => flushes(gateway, 'watch-connected') === 1);
}
