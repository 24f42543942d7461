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

/** How long a line may wait for others to go out with, in milliseconds, and how many bytes are enough for a write. */
const GATHER_MS = 5;
const GATHER_BYTES = 8_192;

/**
 * JSON on stdout. Lines that come shortly one after the other go out together, so that no request waits for the log;
 * what is left is written when the process exits.
 */
export function jsonDestination(sleep: (ms: number) => Promise<void>): DestinationStream {
  const stdout = destination({ dest: 1, sync: false, minLength: GATHER_BYTES });
  let isWaiting = false;
  const flush = () => {
    isWaiting = false;
    stdout.flush();
  };
  return {
    write(line) {
      stdout.write(line);
      if (isWaiting) return;
      isWaiting = true;
      sleep(GATHER_MS).then(flush);
    },
  };
}

/** The same logger without its search for what must be taken out: for lines whose fields are all the gateway's own words. */
export function lineLogger(log: Logger): Logger {
  return log.child({}, { redact: [] });
}

/** A logger at `level` that writes one JSON object a line to `destination`, or to stdout. */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  const options = { level, base: null, redact: { paths: REDACTED, censor: '(hidden)' } };
  return destination === undefined ? pino(options) : pino(options, destination);
}
