/** The processes of the machine. */
import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setImmediate as turn } from 'node:timers/promises';

/** A process as the kernel shows it. */
export interface SeenProcess {
    readonly pid: number;
    /** One letter: `Z` has ended, and waits for its parent. */
    readonly state: string | undefined;
    readonly session: string | undefined;
    /** When it was started, in ticks of the machine's clock: no process is older than the one that made it. */
    readonly started: number;
    /**
     * What it was started with, separated by zero bytes; empty where it may not be read. It is read once, when it is first asked for. A process that changes
     * its memory can make this wait.
     */
    environment(): Promise<string>;
}

/** The number of processes that are looked at before other work goes on. */
const inOneTurn = 256;
const statBytes = 4_096;

let last: Promise<unknown> = Promise.resolve();
let next: Promise<readonly SeenProcess[]> | null = null;

/** All processes, seen after the call. Where many programs end at once, all who ask before a look begins share it, and what it reads. */
export function lookAtProcesses(): Promise<readonly SeenProcess[]> {
    if (next === null) {
        next = last
            .then(() => turn())
            .then(() => {
                next = null;
                return readProcesses();
            });
        last = next.catch(() => undefined);
    }
    return next;
}

/**
 * One process; null where there is none. It is read at once, as the kernel waits for nothing to tell it: by promises, the processes of a usual machine
 * take longer than a short program runs.
 */
export function lookAtProcess(pid: number): SeenProcess | null {
    const buffer = Buffer.allocUnsafe(statBytes);
    let file: number | null = null;
    try {
        file = openSync(`/proc/${pid}/stat`, 'r');
        const stat = buffer.toString('latin1', 0, readSync(file, buffer, 0, statBytes, 0));
        // The program's name comes before, in brackets, and may hold closing brackets itself.
        const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        return {
            pid,
            state: fields[0],
            session: fields[3],
            started: Number(fields[19]),
            environment: environmentOf(pid)
        };
    } catch {
        return null;
    } finally {
        if (file !== null) {
            closeSync(file);
        }
    }
}

function environmentOf(pid: number): () => Promise<string> {
    let text: Promise<string> | null = null;
    return () => (text ??= readFile(`/proc/${pid}/environ`, 'utf8').catch(() => ''));
}

async function readProcesses(): Promise<readonly SeenProcess[]> {
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    const seen: SeenProcess[] = [];
    for (const [index, pid] of pids.entries()) {
        const found = lookAtProcess(Number(pid));
        if (found !== null) {
            seen.push(found);
        }
        if (index % inOneTurn === inOneTurn - 1) {
            await turn();
        }
    }
    return seen;
}
