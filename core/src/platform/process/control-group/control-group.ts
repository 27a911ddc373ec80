/** One control group: its limits, what its processes used, and their common end. The files are those of the kernel's documents `cgroup-v1` and `cgroup-v2`. */
import { readFileSync } from 'node:fs';
import { appendFile, mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import type { Controller, Hierarchy } from './hierarchy.ts';

/** Limits of all processes of a group together. */
export interface GroupLimits {
    /** Memory with the page cache, without swap. What does not fit ends a process of the group. At least 1 MiB. */
    readonly memoryBytes?: number;
    /** Per cent of one processor: 200 is two processors. At least 1. */
    readonly cpuPercent?: number;
    /** Processes and threads at the same time. */
    readonly processes?: number;
}

/** What all processes of a group used together. */
export interface GroupUsage {
    readonly cpuSeconds: number;
    /** A kernel before 5.19 with version 2 keeps no peak: then the most that a reading saw. */
    readonly memoryPeakBytes: number;
}

/** The machine lets this process make no control group, or none with a limit that was asked for. */
export class GroupUnavailable extends Error {}

/** Microseconds over which the kernel measures processor time. */
const periodMicros = 100_000;
const endMs = 2_000;
const pollMs = 10;
const refusals = new Set(['EACCES', 'EBUSY', 'EINVAL', 'ENOENT', 'ENOTSUP', 'EPERM', 'EROFS']);

/** A control group that exists. */
export class ControlGroup {
    readonly #version: 1 | 2;
    readonly #folders: Hierarchy['folders'];
    readonly #limits: GroupLimits;
    #usage: GroupUsage | null = null;
    #removal: Promise<boolean> | null = null;

    /**
     * Makes a group.
     *
     * @throws GroupUnavailable where this process may not make it; nothing of it is left then
     */
    static async create(
        { version, folders }: Hierarchy,
        name: string,
        limits: GroupLimits
    ): Promise<ControlGroup> {
        // In version 1 each controller costs a folder more, and `cpu` measures nothing.
        const { cpu: _cpu, ...others } = folders;
        const needed = version === 1 && limits.cpuPercent === undefined ? others : folders;
        const group = ControlGroup.of({ version, folders: needed }, name, limits);
        const made: string[] = [];
        try {
            if (version === 2) {
                await delegate(folders.memory ?? '');
            }
            for (const folder of group.#places()) {
                await mkdir(folder);
                made.push(folder);
            }
            await group.#limit();
            return group;
        } catch (error) {
            await Promise.all(made.map((folder) => removed(folder)));
            throw refusals.has((error as NodeJS.ErrnoException).code ?? '')
                ? new GroupUnavailable((error as Error).message, { cause: error })
                : error;
        }
    }

    /** A group that exists already. */
    static of({ version, folders }: Hierarchy, name: string, limits: GroupLimits = {}): ControlGroup {
        const own = Object.entries(folders).map(([controller, folder]) => [controller, join(folder, name)]);
        return new ControlGroup(
            { version, folders: Object.fromEntries(own) as Hierarchy['folders'] },
            limits
        );
    }

    private constructor({ version, folders }: Hierarchy, limits: GroupLimits) {
        this.#version = version;
        this.#folders = folders;
        this.#limits = limits;
    }

    /** Moves a process into the group. Processes that it started before stay where they are. */
    async add(pid: number): Promise<void> {
        for (const folder of this.#places()) {
            await writeFile(join(folder, 'cgroup.procs'), String(pid));
        }
    }

    /** The processes in the group. */
    pids(): readonly number[] {
        const [folder = ''] = this.#places();
        const text = contentOf(join(folder, 'cgroup.procs'));
        return text.split('\n').filter(Boolean).map(Number);
    }

    /** What the processes used until now, or until the group was removed; null where the machine does not measure it. */
    usage(): GroupUsage | null {
        const memory = this.#peak();
        const cpu =
            this.#version === 2
                ? numberAfter(this.#read('cpuacct', 'cpu.stat'), 'usage_usec') / 1e6
                : numberOf(this.#read('cpuacct', 'cpuacct.usage')) / 1e9;
        if (Number.isFinite(memory) && Number.isFinite(cpu)) {
            this.#usage = {
                cpuSeconds: cpu,
                memoryPeakBytes: Math.max(memory, this.#usage?.memoryPeakBytes ?? 0)
            };
        }
        return this.#usage;
    }

    /** Whether the kernel ended a process of the group because it had too little memory. */
    ranOutOfMemory(): boolean {
        const file = this.#version === 2 ? 'memory.events' : 'memory.oom_control';
        return (
            this.#limits.memoryBytes !== undefined && numberAfter(this.#read('memory', file), 'oom_kill') > 0
        );
    }

    /** Kills all processes of the group, however they hide from their parent. @throws Error when some do not end */
    async kill(): Promise<void> {
        const until = performance.now() + endMs;
        let left = this.pids();
        if (left.length > 0) {
            // What cannot fork cannot outrun the loop.
            await this.#write('pids', 'pids.max', '0').catch(() => undefined);
        }
        for (; left.length > 0; left = this.pids()) {
            for (const pid of left) {
                try {
                    process.kill(pid, 'SIGKILL');
                } catch {
                    // The process ended by itself meanwhile.
                }
            }
            if (performance.now() > until) {
                throw new Error(`The processes ${left.join(', ')} do not end`);
            }
            await wait(pollMs);
        }
    }

    /** Removes the group, and keeps its last usage. Resolves with false when a process is in it. */
    async remove(): Promise<boolean> {
        const removal = (this.#removal ??= this.#remove());
        const isGone = await removal;
        if (!isGone && this.#removal === removal) {
            this.#removal = null;
        }
        return isGone;
    }

    async #remove(): Promise<boolean> {
        this.usage();
        let isGone = true;
        for (const folder of this.#places()) {
            isGone = (await removed(folder)) && isGone;
        }
        return isGone;
    }

    /** The folders of the group, each once. */
    #places(): readonly string[] {
        return [...new Set(Object.values(this.#folders))];
    }

    async #limit(): Promise<void> {
        const { memoryBytes, cpuPercent, processes } = this.#limits;
        const isSecond = this.#version === 2;
        if (memoryBytes !== undefined) {
            await this.#write(
                'memory',
                isSecond ? 'memory.max' : 'memory.limit_in_bytes',
                String(memoryBytes)
            );
            // Without swap in the kernel, there is no such file and nothing to limit.
            await this.#write(
                'memory',
                isSecond ? 'memory.swap.max' : 'memory.memsw.limit_in_bytes',
                isSecond ? '0' : String(memoryBytes)
            ).catch(() => undefined);
        }
        if (cpuPercent !== undefined) {
            const quota = Math.round((cpuPercent * periodMicros) / 100);
            await (isSecond
                ? this.#write('cpu', 'cpu.max', `${quota} ${periodMicros}`)
                : this.#write('cpu', 'cpu.cfs_quota_us', String(quota)));
        }
        if (processes !== undefined) {
            await this.#write('pids', 'pids.max', String(processes));
        }
    }

    #peak(): number {
        if (this.#version === 1) {
            return numberOf(this.#read('memory', 'memory.max_usage_in_bytes'));
        }
        const peak = numberOf(this.#read('memory', 'memory.peak'));
        return Number.isFinite(peak) ? peak : numberOf(this.#read('memory', 'memory.current'));
    }

    #write(controller: Controller, file: string, value: string): Promise<void> {
        const folder = this.#folders[controller];
        return folder === undefined
            ? Promise.reject(new GroupUnavailable(`This machine has no control groups for ${controller}`))
            : writeFile(join(folder, file), value);
    }

    #read(controller: Controller, file: string): string {
        return contentOf(join(this.#folders[controller] ?? '', file));
    }
}

/** Version 2: the group above passes its controllers on to its children. @throws GroupUnavailable where it does not pass on memory */
async function delegate(above: string): Promise<void> {
    const file = join(above, 'cgroup.subtree_control');
    const wanted = ['memory', 'cpu', 'pids'];
    const lacking = async (): Promise<readonly string[]> => {
        const passed = (await readFile(file, 'utf8')).split(/[\s+]+/);
        return wanted.filter((controller) => !passed.includes(controller));
    };
    // One by one, because the kernel takes all of a line or nothing.
    for (const controller of await lacking()) {
        await appendFile(file, `+${controller} `).catch(() => undefined);
    }
    if ((await lacking()).includes('memory')) {
        throw new GroupUnavailable(`${above} passes no memory control on`);
    }
}

/** Removes the folder of a group; true when it is gone. A process that just ended may hold it for a moment. */
async function removed(folder: string): Promise<boolean> {
    for (let tries = 0; tries < 20; tries += 1) {
        try {
            await rmdir(folder);
            return true;
        } catch (error) {
            const { code } = error as NodeJS.ErrnoException;
            if (code !== 'EBUSY') {
                return code === 'ENOENT';
            }
            await wait(pollMs);
        }
    }
    return false;
}

/** Synchronous, because what happened must be known when a program's end is told. These files are the kernel's own memory. */
function contentOf(file: string): string {
    try {
        return readFileSync(file, 'utf8');
    } catch {
        return '';
    }
}

function numberOf(text: string): number {
    return text.trim() === '' ? NaN : Number(text);
}

/** The number after a word that begins a line. */
function numberAfter(text: string, word: string): number {
    return numberOf(new RegExp(`^${word} (\\d+)$`, 'm').exec(text)?.[1] ?? '');
}
