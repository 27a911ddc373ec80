/** Tells one process from a later one with the same number. */
import { readFileSync } from 'node:fs';

/** When a process began, in ticks after the boot; empty when there is no such process. A pid alone may be another process by now. */
export function processStart(pid: number): string {
    try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
        // The program's name comes before, in brackets, and may hold closing brackets itself.
        return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
    } catch {
        return '';
    }
}
