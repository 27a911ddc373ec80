/** A running program with everything that it started. Signals go to the whole process group; descendants that left the group are found by their environment. */
import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

import { lookAtProcesses, type SeenProcess } from './process-list.ts';

/** Name of the environment variable that marks a program and its descendants. */
export const marker = 'PORTICO_CHILD';

const graceMs = 2_000;
const pollMs = 20;

/** The process group of a program, with its descendants outside of the group. */
export class ProcessGroup {
    readonly pid: number;
    readonly #child: ChildProcess;
    readonly #mark: string;
    readonly #started: number;

    /** @param started - when the program was started, as {@link SeenProcess} tells it: nothing older is looked at; 0 where it is not known */
    constructor(child: ChildProcess & { readonly pid: number }, mark: string, started: number) {
        this.pid = child.pid;
        this.#child = child;
        this.#mark = mark;
        this.#started = started;
    }

    /** Signals the group. False when the group has no process any more. */
    signal(name: NodeJS.Signals): boolean {
        if (this.#isRecycled) {
            return false;
        }
        try {
            return process.kill(-this.pid, name);
        } catch (error) {
            if ((error as NodeJS.ErrnoException).code === 'ESRCH') {
                return false;
            }
            throw error;
        }
    }

    /** Whether a process of the group runs. */
    get alive(): boolean {
        if (this.#isRecycled) {
            return false;
        }
        try {
            return process.kill(-this.pid, 0);
        } catch (error) {
            return (error as NodeJS.ErrnoException).code === 'EPERM';
        }
    }

    /**
     * Asks all processes to end, then kills them.
     *
     * @param patienceMs - how long they may take to end by themselves
     * @throws Error that names the processes that are left
     */
    async end(asking: NodeJS.Signals = 'SIGTERM', patienceMs = graceMs): Promise<void> {
        if (this.signal(asking)) {
            await this.#gone(patienceMs);
            this.signal('SIGKILL');
            await this.#gone(graceMs);
        }
        const until = performance.now() + graceMs;
        let strays: readonly number[];
        do {
            strays = await this.#strays();
            for (const pid of strays) {
                try {
                    process.kill(pid, 'SIGKILL');
                } catch {
                    // The process ended by itself meanwhile.
                }
            }
            await wait(strays.length === 0 ? 0 : pollMs);
        } while (strays.length > 0 && performance.now() < until);
        if (strays.length > 0) {
            throw new Error(`The processes ${strays.join(', ')} do not end`);
        }
        if (this.alive) {
            throw new Error(`The process group ${this.pid} does not end`);
        }
    }

    /** Whether a process is left, in the group or outside of it. */
    async left(): Promise<boolean> {
        return this.alive || (await this.#strays()).length > 0;
    }

    /** Whether another process has the pid now. The kernel reuses a number only when no group and no session has it: all processes of this group are then gone. */
    get #isRecycled(): boolean {
        return (
            (this.#child.exitCode !== null || this.#child.signalCode !== null) &&
            existsSync(`/proc/${this.pid}`)
        );
    }

    async #gone(milliseconds: number): Promise<void> {
        const end = performance.now() + milliseconds;
        while (this.alive && performance.now() < end) {
            await wait(pollMs);
        }
    }

    /** Descendants in groups of their own. They are still in the same session, or have the mark in the environment that they were started with, which they cannot change. */
    async #strays(): Promise<number[]> {
        const wanted = `${marker}=${this.#mark}`;
        const leader = this.#isRecycled ? null : String(this.pid);
        const isOurs = async (seen: SeenProcess): Promise<boolean> =>
            seen.session === leader || (await seen.environment()).split('\0').includes(wanted);
        const all = await lookAtProcesses();
        const later = all.filter(({ state, started }) => state !== 'Z' && started >= this.#started);
        const ours = await Promise.all(later.map(isOurs));
        return later.filter((_, index) => ours[index]).map(({ pid }) => pid);
    }
}
