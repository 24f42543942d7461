/** Owns: the log: pino with the fields that must never be printed taken out. */
import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger } from 'pino';

/** Paths whose values are credentials wherever they might come up. */
const REDACTED = ['headers', '*.headers', 'authorization', '*.authorization', 'cookie', '*.cookie'];

/** A logger at `level` that writes one JSON object a line to `destination`, or to stdout. */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  const options = { level, base: null, redact: { paths: REDACTED, censor: '(hidden)' } };
  return destination === undefined ? pino(options) : pino(options, destination);
}
