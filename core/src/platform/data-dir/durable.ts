/** What must survive a power failure. */
import { open } from 'node:fs/promises';

/** Brings a file, or a folder's list of names, to the disk. */
export async function syncPath(path: string): Promise<void> {
    const handle = await open(path, 'r');
    try {
        await handle.sync();
    } finally {
        await handle.close();
    }
}
