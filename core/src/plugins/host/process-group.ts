/** A running program with everything that it started: signals go to the whole group, and whoever left the group is found by its environment. */
import type { ChildProcess } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';

/** Name of the variable by which a descendant is known. */
export const marker = 'PORTICO_CHILD';

const graceMs = 2_000;
const pollMs = 20;

export class ProcessGroup {
    readonly pid: number;
    readonly #mark: string;

    constructor(child: ChildProcess & { readonly pid: number }, mark: string) {
        this.pid = child.pid;
        this.#mark = mark;
    }

    /** False when nobody is left. */
    signal(name: NodeJS.Signals): boolean {
        try {
            return process.kill(-this.pid, name);
        }
        catch (error) {
            if ((error as NodeJS.ErrnoException).code === 'ESRCH') {
                return false;
            }
            throw error;
        }
    }

    get alive(): boolean {
        try {
            return process.kill(-this.pid, 0);
        }
        catch (error) {
            return (error as NodeJS.ErrnoException).code === 'EPERM';
        }
    }

    /** Asks everybody to end, then makes them. @throws Error that names who is left */
    async end(): Promise<void> {
        if (this.signal('SIGTERM')) {
            await this.#gone(graceMs);
            this.signal('SIGKILL');
            await this.#gone(graceMs);
        }
        const strays = await this.#strays();
        for (const pid of strays) {
            try {
                process.kill(pid, 'SIGKILL');
            }
            catch {
                // It ended by itself meanwhile.
            }
        }
        if (this.alive) {
            throw new Error(`The process group ${this.pid} does not end`);
        }
    }

    async #gone(milliseconds: number): Promise<void> {
        const end = performance.now() + milliseconds;
        while (this.alive && performance.now() < end) {
            await wait(pollMs);
        }
    }

    /** Descendants that made a group of their own. Their start environment cannot be changed by them. */
    async #strays(): Promise<number[]> {
        const wanted = `${marker}=${this.#mark}`;
        const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name)).map(Number);
        const found = await Promise.all(pids.map(async (pid) => {
            const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
            return environment.split('\0').includes(wanted) ? pid : null;
        }));
        return found.flatMap((pid) => pid ?? []);
    }
}
