/** Secrets for programs that read them from files: a working folder of its own for each program, gone with it. */
import { chmod, lstat, mkdtemp, open, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { identify } from '../../../platform/process/process-identity.ts';
import type { MachineAccount } from './machine-accounts.ts';

/** Folders that end with a process: with its pid and the time of its start. */
const form = /^portico-files-(\d+)-(\d+)-/;

/** Makes the private files of programs. */
export class PrivateFiles {
    readonly #base: string;
    #swept: Promise<void> | null = null;

    /** @param base - where the folders are made; for root `/run`, which lies in memory, so that no secret reaches a disk */
    constructor(base = process.getuid?.() === 0 ? '/run' : tmpdir()) {
        this.#base = base;
    }

    /**
     * Writes files, 0600, that belong to an account (null: the panel's own), and returns their folder. Another account can use the folder,
     * but not change what is in it: so nothing in it can be swapped for a link before the panel removes it.
     */
    async write(files: Readonly<Record<string, string>>, account: MachineAccount | null): Promise<string> {
        await this.sweep();
        const mine = `portico-files-${process.pid}-${identify(process.pid)?.ticks}-`;
        const folder = await mkdtemp(join(this.#base, mine));
        try {
            for (const [name, text] of Object.entries(files)) {
                const file = await open(join(folder, name), 'wx', 0o600);
                try {
                    await file.writeFile(text);
                    if (account !== null) {
                        await file.chown(account.uid, account.gid);
                    }
                } finally {
                    await file.close();
                }
            }
            if (account !== null) {
                await chmod(folder, 0o711);
            }
            return folder;
        } catch (error) {
            await this.remove(folder);
            throw error;
        }
    }

    /** Removes a folder with its files. */
    async remove(folder: string): Promise<void> {
        await rm(folder, { recursive: true, force: true });
    }

    /** Removes, once, what processes left behind that were killed. */
    sweep(): Promise<void> {
        return (this.#swept ??= this.#sweep());
    }

    async #sweep(): Promise<void> {
        for (const name of await readdir(this.#base).catch(() => [])) {
            const [, pid = '', start = ''] = form.exec(name) ?? [];
            const folder = join(this.#base, name);
            if (pid !== '' && String(identify(Number(pid))?.ticks) !== start) {
                const stat = await lstat(folder).catch(() => null);
                // In a folder that all may write to, another account could have made it.
                if (stat?.isDirectory() === true && stat.uid === process.getuid?.()) {
                    await this.remove(folder);
                }
            }
        }
    }
}
