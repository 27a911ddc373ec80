/** The registry of one panel: what is on its disk, and what can be installed. */
import type { Registry, RegistryOptions } from './ports.ts';

/** Makes the registry. Reads the lock; fetches nothing. */
export function createRegistry(options: RegistryOptions): Promise<Registry> {
    return Promise.reject(new Error(`The registry of ${options.dataDir} is not written yet`));
}
