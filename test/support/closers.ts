/** Whatever a test starts is closed after it, the last first. */
import { afterEach } from 'vitest';

interface Closable {
  close(): Promise<void>;
}

/** Gives a function that takes note of one thing to close, and hands it back. */
export function useClosers(): <T extends Closable>(thing: T) => T {
  const open: Closable[] = [];
  afterEach(async () => {
    for (const thing of open.splice(0).reverse()) await thing.close();
  });
  return (thing) => {
    open.push(thing);
    return thing;
  };
}
