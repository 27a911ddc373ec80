// The folder for all temporary files of a run.

import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const GIB = 2 ** 30;
const ENOUGH = 6 * GIB;
const TMPFS = 0x01021994; // the type that statfs(2) gives for a tmpfs

/**
 * Makes the folder, which is removed when this process exits. It lies in memory where this process may mount a file system and memory suffices:
 * thousands of commits of databases would otherwise each wait for the disk.
 */
export function openScratch() {
    const folder = mkdtempSync(join(tmpdir(), 'pt'));
    const isMounted = mount(folder);
    chmodSync(folder, 0o1777); // as /tmp itself: an engine that runs as another user must get through
    process.once('exit', () => remove(folder, isMounted));
    return folder;
}

function mount(folder) {
    const size = Math.floor(process.availableMemory() / 2);
    return (
        process.platform === 'linux' &&
        process.getuid() === 0 &&
        size * 2 >= ENOUGH &&
        statfsSync(folder).type !== TMPFS &&
        spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder]).status === 0
    );
}

function remove(folder, isMounted) {
    if (isMounted) {
        spawnSync('umount', ['--lazy', folder]);
    }
    try {
        rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    } catch (error) {
        // For instance a mount that a test left there; the file of that test has failed for it.
        process.stderr.write(`The temporary folder ${folder} could not be removed: ${error.message}\n`);
    }
}
