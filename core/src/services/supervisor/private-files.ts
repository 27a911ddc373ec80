/** The private files of a service's run: written again for each run, and gone with it. */
import { chmodSync, chownSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { Spec } from './store.ts';

/**
 * Where the private files of a run are. For root that is in memory, so that they reach the disk in no second place. The mark is a secret, so no other
 * account can make the folder first.
 */
export function filesFolder(mark: string): string {
    return join(process.getuid?.() === 0 ? '/run' : tmpdir(), `portico-service-${mark}`);
}

/** Writes the private files of a service, if it has any. Another account than the panel's can read them and change none of the names. */
export function writeFiles(spec: Spec): void {
    const { privateFiles, account } = spec.command;
    if (privateFiles === undefined) {
        return;
    }
    removeFiles(spec);
    writeFilesTo(filesFolder(spec.mark), privateFiles, account);
}

/** Writes files into a new folder, 0600, that belong to an account; null: to the one of this process. */
export function writeFilesTo(
    folder: string,
    files: Readonly<Record<string, string>>,
    account: Spec['command']['account']
): void {
    mkdirSync(folder, { mode: 0o700 });
    for (const [name, text] of Object.entries(files)) {
        const path = join(folder, name);
        writeFileSync(path, text, { mode: 0o600, flag: 'wx' });
        if (account !== null) {
            chownSync(path, account.uid, account.gid);
        }
    }
    if (account !== null) {
        chmodSync(folder, 0o711);
    }
}

/** Removes the private files of a service's run. */
export function removeFiles({ mark }: Spec): void {
    rmSync(filesFolder(mark), { recursive: true, force: true });
}
