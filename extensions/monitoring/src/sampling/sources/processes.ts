/** Processes and what they use. Command lines can contain secrets, so they are read apart, only for callers that may see them. */
import type { Machine } from '../../machine.ts';
import { linesOf, readCpu, readMemory, ticksPerSecond } from './system.ts';

/** A process as answers have it, without its command line. */
export interface ProcessView {
    readonly pid: number;
    readonly parent: number;
    readonly name: string;
    readonly state: string;
    readonly user: string | null;
    /** Percent of one processor since the list before; null without one, and for a process that is newer. */
    readonly cpu: number | null;
    /** Bytes. */
    readonly memory: number;
    readonly memoryPercent: number | null;
    readonly threads: number;
    readonly startedAt: string | null;
}

/** A process as the kernel has it. */
export interface ProcessStat {
    readonly pid: number;
    readonly parent: number;
    readonly name: string;
    readonly state: string;
    readonly ticks: number;
    readonly threads: number;
    readonly started: number;
    readonly pages: number;
    /** A thread of the kernel's own. */
    readonly kernel: boolean;
}

/** Processor time is not measured from a list of this age or older. */
const baselineMs = 120_000;
/** Nor from a younger list than this: the difference would be a few single ticks. */
const closestMs = 250;
/** Number of files that are read before other work gets its turn. */
const batch = 200;
const commandBytes = 4_096;
/** The flag of the kernel's own threads (`PF_KTHREAD` in `include/linux/sched.h`). */
const kernelThread = 0x0020_0000;

/** Lists processes, and remembers their processor time for the next list. */
export class ProcessList {
    readonly #machine: Machine;
    #pageBytes: number | null = null;
    /** Processor time by process in the last two lists, newest first. */
    #baselines: { readonly at: number; readonly ticks: ReadonlyMap<string, number> }[] = [];

    constructor(machine: Machine) {
        this.#machine = machine;
    }

    /** Lists all processes, unsorted. */
    async list(): Promise<ProcessView[]> {
        const all = await readProcesses(this.#machine);
        const at = this.#machine.monotonic();
        const base = this.#baselines.find((each) => at - each.at >= closestMs && at - each.at < baselineMs);
        const total = readMemory(this.#machine)?.total ?? 0;
        const bootedAt = readCpu(this.#machine)?.bootedAt ?? 0;
        const users = readUsers(this.#machine);
        const pageBytes = (this.#pageBytes ??= readPageBytes(this.#machine));
        const views = all.map((stat): ProcessView => {
            const { pid, parent, name, state, threads } = stat;
            const before = base?.ticks.get(identityOf(stat));
            const uid = this.#machine.owner(`/proc/${pid}`);
            const memory = stat.pages * pageBytes;
            return {
                pid,
                parent,
                name,
                state,
                threads,
                memory,
                user: uid === null ? null : (users.get(uid) ?? String(uid)),
                cpu:
                    base === undefined || before === undefined || stat.ticks < before
                        ? null
                        : ((stat.ticks - before) / ticksPerSecond / ((at - base.at) / 1000)) * 100,
                memoryPercent: total === 0 ? null : (memory / total) * 100,
                startedAt: startOf(stat, bootedAt)
            };
        });
        const [newest] = this.#baselines;
        if (newest === undefined || at - newest.at >= closestMs) {
            const ticks = new Map(all.map((stat) => [identityOf(stat), stat.ticks]));
            this.#baselines = [{ at, ticks }, ...this.#baselines.slice(0, 1)];
        }
        return views;
    }

    /** Reads a command line; null for kernel threads, and for processes that have ended. */
    async command(pid: number): Promise<string | null> {
        const text = await this.#machine.load(`/proc/${pid}/cmdline`);
        return text === null || text === ''
            ? null
            : text.slice(0, commandBytes).replace(/\0+$/, '').replaceAll('\0', ' ');
    }
}

/** Reads the bytes of a page of memory. */
export function readPageBytes(machine: Machine): number {
    const text = machine.read('/proc/self/smaps') ?? '';
    return Number(/^KernelPageSize:\s+(\d+) kB$/m.exec(text)?.[1] ?? 4) * 1024;
}

/** Reads all processes, unsorted; other work gets its turn meanwhile. */
export async function readProcesses(machine: Machine): Promise<ProcessStat[]> {
    const pids = machine.list('/proc').filter((name) => /^\d+$/.test(name));
    const found: ProcessStat[] = [];
    for (const [index, pid] of pids.entries()) {
        const one = readProcess(machine, Number(pid));
        if (one !== null) {
            found.push(one);
        }
        if (index % batch === batch - 1) {
            await new Promise((resolve) => {
                setImmediate(resolve);
            });
        }
    }
    return found;
}

/** Reads one process; null when it has ended. */
export function readProcess(machine: Machine, pid: number): ProcessStat | null {
    return parseStat(machine.read(`/proc/${pid}/stat`));
}

/** Reads the names of accounts by their numbers. */
export function readUsers(machine: Machine): ReadonlyMap<number, string> {
    return new Map(
        linesOf(machine.read('/etc/passwd')).map((line) => {
            const [name = '', , uid] = line.split(':');
            return [Number(uid), name] as const;
        })
    );
}

/** When a process started, RFC 3339. @param bootedAt - seconds since 1970; 0 where it is unknown, and then the answer is null */
export function startOf({ started }: ProcessStat, bootedAt: number): string | null {
    return bootedAt === 0 ? null : new Date((bootedAt + started / ticksPerSecond) * 1000).toISOString();
}

/** Tells a process from a later one with the same number. */
export function identityOf({ pid, started }: ProcessStat): string {
    return `${pid} ${started}`;
}

/** Reads `/proc/<pid>/stat`. The name stands in parentheses and may contain parentheses, so the last one ends it. */
function parseStat(text: string | null): ProcessStat | null {
    if (text === null) {
        return null;
    }
    const [open, close] = [text.indexOf('('), text.lastIndexOf(')')];
    const fields = text.slice(close + 2).split(' ');
    const number = (index: number): number => Number(fields[index] ?? 0);
    if (open < 0 || close < open || fields.length < 22) {
        return null;
    }
    return {
        pid: Number.parseInt(text, 10),
        name: text.slice(open + 1, close),
        state: fields[0] ?? '?',
        parent: number(1),
        ticks: number(11) + number(12),
        threads: number(17),
        started: number(19),
        pages: Math.max(0, number(21)),
        kernel: (number(6) & kernelThread) !== 0
    };
}
