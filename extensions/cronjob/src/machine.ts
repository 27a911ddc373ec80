/** What the plugin knows of the machine by itself: its clock, its boots and its processes. Tests turn the clock. */
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';

export interface Machine {
    /** Milliseconds since 1970. */
    readonly now: () => number;
    /** How often the clock is looked at while nothing is due. */
    readonly lookMs: number;
    /** A text of its own for each boot; null where the machine has none. */
    readonly boot: () => Promise<string | null>;
}

export const machine: Machine = {
    now: () => Date.now(),
    lookMs: 20_000,
    boot: () =>
        readFile('/proc/sys/kernel/random/boot_id', 'utf8').then(
            (text) => text.trim(),
            () => null
        )
};

const graceMs = 2_000;
const pollMs = 20;

/** Ends every process that was started with a variable of such a value. The environment that a process began with cannot be changed by it. Gives how many there were. */
export async function endMarked(name: string, values: ReadonlySet<string>): Promise<number> {
    const first = await marked(name, values);
    first.forEach((pid) => signal(pid, 'SIGTERM'));
    const end = performance.now() + graceMs;
    let left = first;
    while (left.length > 0 && performance.now() < end) {
        await wait(pollMs);
        left = await marked(name, values);
    }
    left.forEach((pid) => signal(pid, 'SIGKILL'));
    return first.length;
}

async function marked(name: string, values: ReadonlySet<string>): Promise<number[]> {
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
