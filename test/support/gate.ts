/** A gate holds whoever waits at it until a test opens it, and tells how many wait: no test sleeps. */
export interface Gate {
  /** Waits until the gate is opened. */
  pass(): Promise<void>;
  open(): void;
  /** Resolves when `count` have come to the gate, those already through included. */
  arrivals(count: number): Promise<void>;
}

export function createGate(): Gate {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  let arrived = 0;
  const waiting: { count: number; resolve: () => void }[] = [];
  return {
    pass() {
      arrived += 1;
      for (const one of waiting) if (arrived >= one.count) one.resolve();
      return opened;
    },
    open: () => open(),
    arrivals: (count) =>
      arrived >= count
        ? Promise.resolve()
        : new Promise((resolve) => {
            waiting.push({ count, resolve });
          }),
  };
}

/** Polls a condition that nothing announces, and fails after `limitMs`. */
export async function until(condition: () => boolean | Promise<boolean>, limitMs = 5_000): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error('the condition did not come true');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
