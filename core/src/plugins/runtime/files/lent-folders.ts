/** Folders that another plugin lends to this one while a tap runs, such as the target of `backup.collect`. */
import { type FileHandle, realpath } from 'node:fs/promises';

import { within } from './file-name.ts';

interface Lease {
    readonly folder: string;
    readonly handles: Set<FileHandle>;
}

/** The folders that are lent to one generation now. */
export class LentFolders {
    readonly #leases = new Set<Lease>();

    /** Opens a folder until the lease is disposed of. Files that are still open in it are closed then. */
    async lend(folder: string): Promise<AsyncDisposable> {
        const lease: Lease = { folder: await realpath(folder), handles: new Set() };
        this.#leases.add(lease);
        return {
            [Symbol.asyncDispose]: async () => {
                this.#leases.delete(lease);
                await Promise.allSettled([...lease.handles].map((handle) => handle.close()));
            }
        };
    }

    /** Real paths of the folders. */
    paths(): readonly string[] {
        return [...this.#leases].map(({ folder }) => folder);
    }

    /** Closes an open file of this real path with its lease; a path in no lent folder changes nothing. */
    bind(path: string, handle: FileHandle): void {
        for (const { folder, handles } of this.#leases) {
            if (within(path, folder)) {
                handles.add(handle);
            }
        }
    }
}
