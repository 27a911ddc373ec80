/** What the plugin reads from the machine by itself: the clock, the boot id and the list of processes. */
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';

/** The clock and the boots of a machine. Tests use a double whose clock they set. */
export interface Machine {
    /** Milliseconds since 1970. */
    readonly now: () => number;
    /** How often the clock is read while nothing is due, in milliseconds. */
    readonly pollMs: number;
    /** The id of the current boot; null where the machine has none. */
    readonly boot: () => Promise<string | null>;
}

/** The machine that the panel runs on. */
export const realMachine: Machine = {
    now: () => Date.now(),
    pollMs: 20_000,
    boot: () =>
        readFile('/proc/sys/kernel/random/boot_id', 'utf8').then(
            (text) => text.trim(),
            () => null
        )
};

const graceMs = 2_000;
const processPollMs = 20;

/**
 * Ends every process that was started with the environment variable `name` set to one of the values: SIGTERM first, SIGKILL after 2 seconds.
 * A process cannot change the environment that the kernel shows of its start. Resolves with how many processes were found.
 */
export async function endProcessesWith(name: string, values: ReadonlySet<string>): Promise<number> {
    const first = await processesWith(name, values);
    first.forEach((pid) => signal(pid, 'SIGTERM'));
    const end = performance.now() + graceMs;
    let left = first;
    while (left.length > 0 && performance.now() < end) {
        await wait(processPollMs);
        left = await processesWith(name, values);
    }
    left.forEach((pid) => signal(pid, 'SIGKILL'));
    return first.length;
}

async function processesWith(name: string, values: ReadonlySet<string>): Promise<number[]> {
    if (values.size === 0) {
        return [];
    }
    const pids = (await readdir('/proc').catch(() => [])).filter((entry) => /^\d+$/.test(entry)).map(Number);
    const found = await Promise.all(
        pids.map(async (pid) => {
            const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
            return environment
                .split('\0')
                .some((line) => line.startsWith(`${name}=`) && values.has(line.slice(name.length + 1)))
                ? pid
                : null;
        })
    );
    return found.filter((pid) => pid !== null);
}

function signal(pid: number, name: NodeJS.Signals): void {
    try {
        process.kill(pid, name);
    } catch {
        // It ended by itself meanwhile.
    }
}
