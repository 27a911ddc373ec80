/** Which process it is: the kernel reuses process ids, so an id alone proves nothing. */
import { readFileSync } from 'node:fs';

/** Identifies one process for ever: the kernel reuses process ids, but not an id together with its start time. */
export interface ProcessIdentity {
    readonly pid: number;
    /** Clock ticks from the machine's boot to the process's start. */
    readonly ticks: number;
}

/** The identity of a living process; null when there is none, or only a zombie. */
export const identify = (pid: number): ProcessIdentity | null => {
    const fields =
        readProc(`/proc/${pid}/stat`)
            ?.replace(/^.*\)\s/s, '')
            .trim()
            .split(' ') ?? null;
    const state = fields?.[0] ?? 'X';
    return fields === null || 'ZXx'.includes(state) ? null : { pid, ticks: Number(fields[19]) };
};

/** Whether that very process still lives. */
export const isAlive = (identity: ProcessIdentity): boolean =>
    identify(identity.pid)?.ticks === identity.ticks;

/** When a process began. */
export const startOf = (identity: ProcessIdentity): Date => {
    const boot = Number(/^btime (\d+)$/m.exec(readProc('/proc/stat') ?? '')?.[1] ?? 0);
    // USER_HZ, the unit of the kernel's interface, is 100 on every architecture that Node runs on.
    return new Date(boot * 1000 + identity.ticks * 10);
};

/** A file of `/proc`; null when it cannot be read, for instance because the process has ended. */
export const readProc = (path: string): string | null => {
    try {
        return readFileSync(path, 'utf8');
    } catch {
        return null;
    }
};
