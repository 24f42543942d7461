/** Owns: the log: pino with the fields that must never be printed taken out. */
import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger } from 'pino';

/** Paths whose values are credentials wherever they might come up. */
const REDACTED = ['headers', '*.headers', 'authorization', '*.authorization', 'cookie', '*.cookie'];

/** Lines for people on stdout, instead of JSON; in colours on a terminal. */
export async function prettyDestination(): Promise<DestinationStream> {
  const { build } = await import('pino-pretty');
  return build({ sync: true, translateTime: 'SYS:HH:MM:ss.l', ignore: 'pid,hostname' });
}

/** A logger at `level` that writes one JSON object a line to `destination`, or to stdout. */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  const options = { level, base: null, redact: { paths: REDACTED, censor: '(hidden)' } };
  return destination === undefined ? pino(options) : pino(options, destination);
}
