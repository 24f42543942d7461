import { createMemoryStore } from '../../src/cache/memory-store.js';
import { createClock } from '../../src/clock.js';
import { MAX_ENTRY_BYTES } from '../support/redis-stores.js';
import { storeContract } from './store-contract.js';

storeContract('the memory store', async () => ({
  store: createMemoryStore({ maxBytes: 10_000_000, maxEntryBytes: MAX_ENTRY_BYTES }),
  clock: createClock(),
  close: () => {},
}));
