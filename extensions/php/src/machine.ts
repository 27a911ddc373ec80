/** What the plugin reads from the machine by itself: its own account, memory, and processes of accounts. */
import { readdir, readFile } from 'node:fs/promises';
import { availableParallelism, totalmem } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';

/** The machine as this plugin sees it. Tests may use a double. */
export interface Machine {
    /** Whether the panel runs as root. */
    readonly isRoot: () => boolean;
    readonly memoryBytes: () => number;
    readonly processors: () => number;
    /** Memory of all processes of an account, shared pages counted in part; a page that n processes share counts 1/n. */
    readonly memoryOf: (uid: number) => Promise<number>;
    /** Kills every process of an account, until there is none. @throws Error when some do not end within 5 seconds */
    readonly endProcesses: (uid: number) => Promise<void>;
}

const killMs = 5_000;
const pollMs = 20;
/** Accounts with a lower number belong to the system; root is 0. */
const lowestUid = 100;

/** The machine that the panel runs on. */
export const realMachine: Machine = {
    isRoot: () => process.getuid?.() === 0,
    memoryBytes: () => totalmem(),
    processors: () => availableParallelism(),
    memoryOf: async (uid) => {
        const sizes = await Promise.all((await processesOf(uid)).map(sizeOf));
        return sizes.reduce((sum, size) => sum + size, 0);
    },
    endProcesses
};

async function endProcesses(uid: number): Promise<void> {
    if (!Number.isInteger(uid) || uid < lowestUid) {
        throw new RangeError(`Processes of the account ${uid} are never ended`);
    }
    const end = performance.now() + killMs;
    for (;;) {
        const pids = await processesOf(uid);
        if (pids.length === 0) {
            return;
        }
        if (performance.now() > end) {
            throw new Error(`These processes do not end: ${pids.join(', ')}`);
        }
        pids.forEach(kill);
        await wait(pollMs);
    }
}

/** Processes that an account runs; those that have ended and wait for their parent are left out. */
async function processesOf(uid: number): Promise<readonly number[]> {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
    const found = await Promise.all(
        pids.map(async (pid) => {
            const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
            const isOwn = Number(/^Uid:\s+(\d+)/m.exec(status)?.[1] ?? -1) === uid;
            return isOwn && !/^State:\s+[ZX]/m.test(status) ? pid : null;
        })
    );
    return found.filter((pid) => pid !== null);
}

async function sizeOf(pid: number): Promise<number> {
    const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '');
    return Number(/^Pss:\s+(\d+) kB/m.exec(rollup)?.[1] ?? 0) * 1024;
}

function kill(pid: number): void {
    try {
        process.kill(pid, 'SIGKILL');
    } catch {
        // It ended by itself meanwhile.
    }
}
