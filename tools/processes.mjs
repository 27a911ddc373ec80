// Finds the processes that a test file left behind, by what it gave them: its mark in the environment, or its temporary
// folder in their arguments or as their working folder. A detached process with an environment of its own is found too.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/**
 * The living processes that carry the mark or work in the folder, this process apart.
 * Without /proc (not Linux) the list is empty.
 */
export function leftBehind({ mark, folder }) {
    return processIds()
        .filter((pid) => pid !== process.pid && belongs(pid, mark, folder) && !isZombie(pid))
        .map((pid) => ({
            pid,
            command: (read(pid, 'cmdline') ?? '').replaceAll('\0', ' ').trim() || `process ${pid}`
        }));
}

/** Ends each of them, by its id. */
export function end(processes) {
    for (const { pid } of processes) {
        try {
            process.kill(pid, 'SIGKILL');
        } catch (error) {
            if (error.code !== 'ESRCH') {
                throw error;
            }
        }
    }
}

function belongs(pid, mark, folder) {
    const environment = read(pid, 'environ');
    if (environment?.split('\0').includes(mark)) {
        return true;
    }
    return inside(workingFolder(pid), folder) || read(pid, 'cmdline')?.includes(folder) === true;
}

const inside = (path, folder) => path === folder || path?.startsWith(`${folder}/`) === true;

// An orphan that its parent has not reaped yet still answers to a signal; only its state says that it is gone.
function isZombie(pid) {
    const stat = read(pid, 'stat');
    return stat === undefined || 'ZX'.includes(stat.slice(stat.lastIndexOf(')') + 2)[0]);
}

function processIds() {
    try {
        return readdirSync('/proc')
            .filter((name) => /^\d+$/.test(name))
            .map(Number);
    } catch {
        return [];
    }
}

function read(pid, file) {
    try {
        return readFileSync(`/proc/${pid}/${file}`, 'utf8');
    } catch {
        return undefined;
    }
}

function workingFolder(pid) {
    try {
        return readlinkSync(`/proc/${pid}/cwd`);
    } catch {
        return undefined;
    }
}
