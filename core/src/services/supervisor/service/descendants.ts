/** Finds processes of a service beside its program: what the program started and left behind. */
import { readdirSync, readlinkSync } from 'node:fs';

import { identify, type ProcessIdentity, readProc } from '../../../platform/process/process-identity.ts';

/** Name of the environment variable that marks each process of a service. */
export const marker = 'PORTICO_SERVICE';

/** What proves that a process belongs to a service. */
export interface Belonging {
    /** Value of the marker. Programs that write their title over their environment lose it. */
    readonly mark: string;
    /** Paths of the pipes that only processes of this service have open. */
    readonly pipes: readonly string[];
    /** Session of the program; null when the number may mean another one by now. */
    readonly session: number | null;
}

/** The living processes of a service. */
export function findDescendants({ mark, pipes, session }: Belonging): readonly ProcessIdentity[] {
    const found: ProcessIdentity[] = [];
    for (const name of readdirSync('/proc')) {
        if (!/^\d+$/.test(name)) {
            continue;
        }
        const identity = identify(Number(name));
        if (
            identity !== null &&
            identity.pid !== process.pid &&
            ((session !== null && sessionOf(name) === session) ||
                readProc(`/proc/${name}/environ`)?.split('\0').includes(`${marker}=${mark}`) === true ||
                holds(name, pipes))
        ) {
            found.push(identity);
        }
    }
    return found;
}

function sessionOf(pid: string): number {
    const stat = readProc(`/proc/${pid}/stat`) ?? '';
    // The program's name comes before, in brackets, and may hold closing brackets itself.
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3]);
}

function holds(pid: string, pipes: readonly string[]): boolean {
    return ['1', '2'].some((fd) => {
        try {
            return pipes.includes(readlinkSync(`/proc/${pid}/fd/${fd}`));
        } catch {
            return false;
        }
    });
}
