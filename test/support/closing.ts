/** Whatever a test opens is closed after it, the last first. */
import { afterEach } from 'vitest';

/** Returns a function that takes what is to be closed, and gives it back. */
export function closeAfterEach(): <T extends { close(): unknown }>(open: T) => T {
  const opened: { close(): unknown }[] = [];
  afterEach(async () => {
    for (const one of opened.splice(0).reverse()) await one.close();
  });
  return (open) => {
    opened.push(open);
    return open;
  };
}
