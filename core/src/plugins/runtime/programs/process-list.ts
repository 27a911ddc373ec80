/** The processes of the machine. */
import { readdir, readFile } from 'node:fs/promises';

/** A process as the kernel shows it. */
export interface SeenProcess {
    readonly pid: number;
    /** One letter: `Z` has ended, and waits for its parent. */
    readonly state: string | undefined;
    readonly session: string | undefined;
    /** What it was started with, separated by zero bytes; empty where it may not be read. */
    readonly environment: string;
}

let running: Promise<readonly SeenProcess[]> | null = null;
let next: Promise<readonly SeenProcess[]> | null = null;

/**
 * All processes, seen after the call. Where many programs end at once, all who ask while a look is under way share the one after it: each look
 * reads two files of every process.
 */
export function lookAtProcesses(): Promise<readonly SeenProcess[]> {
    if (running === null) {
        return begin();
    }
    next ??= running.then(() => {
        next = null;
        return begin();
    });
    return next;
}

function begin(): Promise<readonly SeenProcess[]> {
    const look = readProcesses().finally(() => {
        if (running === look) {
            running = null;
        }
    });
    running = look;
    return look;
}

async function readProcesses(): Promise<readonly SeenProcess[]> {
    const names = await readdir('/proc').catch(() => []);
    return Promise.all(
        names
            .filter((name) => /^\d+$/.test(name))
            .map(async (name) => {
                const [stat, environment] = await Promise.all([
                    readFile(`/proc/${name}/stat`, 'utf8').catch(() => ''),
                    readFile(`/proc/${name}/environ`, 'utf8').catch(() => '')
                ]);
                // The program's name comes before, in brackets, and may hold closing brackets itself.
                const [state, , , session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
                return { pid: Number(name), state, session, environment };
            })
    );
}
