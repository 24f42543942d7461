/** Owns: the log: pino with the fields that must never be printed taken out. */
import { type DestinationStream, destination, type Logger, pino } from 'pino';

export type { Logger } from 'pino';

/** Paths whose values are credentials wherever they might come up. */
const REDACTED = ['headers', '*.headers', 'authorization', '*.authorization', 'cookie', '*.cookie'];

/** Lines for people on stdout, instead of JSON; in colours on a terminal. */
export async function prettyDestination(): Promise<DestinationStream> {
  const { build } = await import('pino-pretty');
  return build({ sync: true, translateTime: 'SYS:HH:MM:ss.l', ignore: 'pid,hostname' });
}

/**
 * JSON on stdout. Lines that come while others are being written go out together, so that no request waits for the log;
 * what is left is written when the process exits.
 */
export function jsonDestination(): DestinationStream {
  return destination({ dest: 1, sync: false });
}

/** A logger at `level` that writes one JSON object a line to `destination`, or to stdout. */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  const options = { level, base: null, redact: { paths: REDACTED, censor: '(hidden)' } };
  return destination === undefined ? pino(options) : pino(options, destination);
}
