/**
 * Owns: where the events of an event stream end, and what data they carry (WHATWG HTML, section 9.2).
 * Reads bytes and keeps them; a library that reads text would decode every byte twice and, holding back a CR
 * at the end of a chunk, could show a client's parser an event before ours has seen it (design, law 19).
 * So a line ends here at its CR, at once, and an LF after it is swallowed. Data beyond `maxDataBytes` is dropped.
 */

export interface StreamEvent {
  /** The data of the event, its lines joined by LF; never empty. */
  readonly data: Buffer;
  /** The position in the chunk just fed at which the event ended. */
  readonly end: number;
}

export interface EventScanner {
  /** The events that end in this chunk. */
  feed(chunk: Buffer): StreamEvent[];
  /** The data of the complete lines of an event that has not ended yet; undefined where there is none. */
  pending(): Buffer | undefined;
  /** The last byte of that data, at no cost. */
  pendingEnd(): number | undefined;
}

const LF = 0x0a;
const CR = 0x0d;
const NEWLINE = Buffer.from('\n');
const NO_DATA = Buffer.alloc(0);
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** So many lines are joined into one piece: millions of short ones would each cost far more than their bytes. */
const LINES_A_PIECE = 1_024;

/** A scanner for one stream. */
export function createEventScanner(options: { readonly maxDataBytes: number }): EventScanner {
  let line: Buffer[] = [];
  /** The data so far: pieces of many lines, then single lines. */
  let data: Buffer[] = [];
  let pieces = 0;
  let heldBytes = 0;
  let overflowed = false;
  let lineIsEmpty = true;
  let isFirstLine = true;
  let swallowLf = false;

  function hold(bytes: Buffer): void {
    if (bytes.length === 0) return;
    lineIsEmpty = false;
    heldBytes += bytes.length;
    if (heldBytes > options.maxDataBytes) {
      overflowed = true;
      line = [];
      clearData();
    } else {
      line.push(bytes);
    }
  }

  function takeLine(isFirst: boolean): Buffer {
    let whole = line.length === 1 && line[0] !== undefined ? line[0] : Buffer.concat(line);
    line = [];
    if (isFirst && whole.subarray(0, 3).equals(BYTE_ORDER_MARK)) whole = whole.subarray(3);
    return whole;
  }

  /** Ends a line; returns the event's data where the line was blank and so ended an event. */
  function endLine(): Buffer | undefined {
    const wasEmpty = lineIsEmpty;
    const isFirst = isFirstLine;
    lineIsEmpty = true;
    isFirstLine = false;
    if (wasEmpty) return endEvent();
    if (overflowed) return undefined;
    const whole = takeLine(isFirst);
    const value = dataValue(whole);
    if (value === undefined) heldBytes -= whole.length;
    else addData(value);
    return undefined;
  }

  function addData(value: Buffer): void {
    data.push(value);
    if (data.length - pieces === LINES_A_PIECE) data.push(joinLines(data.splice(pieces++)));
  }

  function clearData(): void {
    data = [];
    pieces = 0;
  }

  function endEvent(): Buffer | undefined {
    const whole = overflowed ? undefined : joinLines(data);
    line = [];
    clearData();
    heldBytes = 0;
    overflowed = false;
    return whole !== undefined && whole.length > 0 ? whole : undefined;
  }

  return {
    feed(chunk) {
      const events: StreamEvent[] = [];
      let at = 0;
      if (swallowLf && chunk.length > 0) {
        if (chunk[0] === LF) at = 1;
        swallowLf = false;
      }
      let lf = chunk.indexOf(LF, at);
      let cr = chunk.indexOf(CR, at);
      while (lf !== -1 || cr !== -1) {
        const lineEnd = cr === -1 || (lf !== -1 && lf < cr) ? lf : cr;
        hold(chunk.subarray(at, lineEnd));
        at = lineEnd + 1;
        if (lineEnd === cr) {
          if (chunk[at] === LF) at += 1;
          else if (at === chunk.length) swallowLf = true;
        }
        const event = endLine();
        if (event !== undefined) events.push({ data: event, end: at });
        if (lf !== -1 && lf < at) lf = chunk.indexOf(LF, at);
        if (cr !== -1 && cr < at) cr = chunk.indexOf(CR, at);
      }
      hold(chunk.subarray(at));
      return events;
    },
    pending() {
      return overflowed || data.length === 0 ? undefined : joinLines(data);
    },
    pendingEnd: () => data.at(-1)?.at(-1),
  };
}

function joinLines(lines: readonly Buffer[]): Buffer {
  if (lines.length === 1 && lines[0] !== undefined) return lines[0];
  return Buffer.concat(lines.flatMap((line, i) => (i === 0 ? [line] : [NEWLINE, line])));
}

/** The value of a `data` field; undefined for comments and other fields. */
function dataValue(line: Buffer): Buffer | undefined {
  if (line.toString('latin1', 0, 4) !== 'data') return undefined;
  if (line.length === 4) return NO_DATA;
  if (line[4] !== 0x3a) return undefined;
  return line.subarray(line[5] === 0x20 ? 6 : 5);
}
