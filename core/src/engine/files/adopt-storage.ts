/** Takes over the certificates of a backup as the engine's own. */
import { cpSync, lchownSync, lstatSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** Who the engine runs as. */
type Owner = { readonly uid: number; readonly gid: number; readonly switched: boolean };

/**
 * Moves `restored` to the engine's empty storage. An engine that has a storage of its own keeps that. May be killed at any moment and called
 * again.
 *
 * @param storage - exists, in a folder that belongs to the panel
 */
export const adoptStorage = (restored: string, storage: string, owner: Owner): void => {
    if (lstatSync(restored, { throwIfNoEntry: false })?.isDirectory() !== true) {
        return;
    }

    if (readdirSync(storage).length === 0) {
        const temporary = `${storage}.new`;
        rmSync(temporary, { recursive: true, force: true });
        cpSync(restored, temporary, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true });
        if (owner.switched) {
            for (const entry of readdirSync(temporary, { recursive: true, withFileTypes: true })) {
                lchownSync(join(entry.parentPath, entry.name), owner.uid, owner.gid);
            }

            lchownSync(temporary, owner.uid, owner.gid);
        }

        renameSync(temporary, storage);
    }

    rmSync(restored, { recursive: true });
};
