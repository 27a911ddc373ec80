/** Processes: what each is called, holds and uses. Command lines can hold secrets and are read apart, only for those who may see them. */
import type { Machine } from './machine.ts';
import { linesOf, readCpu, readMemory, ticksPerSecond } from './system.ts';

export interface ProcessView {
    readonly pid: number;
    readonly parent: number;
    readonly name: string;
    readonly state: string;
    readonly user: string | null;
    /** Percent of one processor since the list before; null when there was none, or the process is newer. */
    readonly cpu: number | null;
    /** Bytes. */
    readonly memory: number;
    readonly memoryPercent: number | null;
    readonly threads: number;
    readonly startedAt: string | null;
}

interface Counted {
    readonly pid: number;
    readonly parent: number;
    readonly name: string;
    readonly state: string;
    readonly ticks: number;
    readonly threads: number;
    readonly started: number;
    readonly pages: number;
}

/** A list of this age or older is no longer what "now" is measured from. */
const baselineMs = 120_000;
/** Two lists closer together would measure single ticks. */
const closestMs = 250;
/** Files read before others get their turn. */
const batch = 200;
const commandBytes = 4_096;

export class Processes {
    readonly #machine: Machine;
    #pageBytes: number | null = null;
    /** Processor time by process at the last two lists, newest first. */
    #baselines: { readonly at: number; readonly ticks: ReadonlyMap<string, number> }[] = [];

    constructor(machine: Machine) {
        this.#machine = machine;
    }

    /** All processes, unsorted. */
    async list(): Promise<ProcessView[]> {
        const counted = await this.#count();
        const at = this.#machine.monotonic();
        const base =
            this.#baselines.find((each) => at - each.at >= closestMs && at - each.at < baselineMs) ?? null;
        const total = readMemory(this.#machine)?.total ?? null;
        const bootedAt = readCpu(this.#machine)?.bootedAt ?? null;
        const users = this.#users();
        const pageBytes = this.#pageSize();
        const views = counted.map(
            ({ pid, parent, name, state, ticks, threads, started, pages }): ProcessView => {
                const before = base?.ticks.get(`${pid} ${started}`);
                const uid = this.#machine.owner(`/proc/${pid}`);
                const memory = pages * pageBytes;
                return {
                    pid,
                    parent,
                    name,
                    state,
                    threads,
                    memory,
                    user: uid === null ? null : (users.get(uid) ?? String(uid)),
                    cpu:
                        base === null || before === undefined || ticks < before
                            ? null
                            : ((ticks - before) / ticksPerSecond / ((at - base.at) / 1000)) * 100,
                    memoryPercent: total === null || total === 0 ? null : (memory / total) * 100,
                    startedAt:
                        bootedAt === null || bootedAt === 0
                            ? null
                            : new Date((bootedAt + started / ticksPerSecond) * 1000).toISOString()
                };
            }
        );
        if (this.#baselines.length === 0 || at - (this.#baselines[0]?.at ?? 0) >= closestMs) {
            this.#baselines = [
                {
                    at,
                    ticks: new Map(counted.map(({ pid, started, ticks }) => [`${pid} ${started}`, ticks]))
                },
                ...this.#baselines.slice(0, 1)
            ];
        }
        return views;
    }

    /** The command line; null for kernel threads and what has ended. */
    async command(pid: number): Promise<string | null> {
        const text = await this.#machine.load(`/proc/${pid}/cmdline`);
        return text === null || text === ''
            ? null
            : text.slice(0, commandBytes).replace(/\0+$/, '').replaceAll('\0', ' ');
    }

    async #count(): Promise<Counted[]> {
        const pids = this.#machine.list('/proc').filter((name) => /^\d+$/.test(name));
        const counted: Counted[] = [];
        for (const [index, pid] of pids.entries()) {
            const one = parse(this.#machine.read(`/proc/${pid}/stat`));
            if (one !== null) {
                counted.push(one);
            }
            if (index % batch === batch - 1) {
                await new Promise((resolve) => {
                    setImmediate(resolve);
                });
            }
        }
        return counted;
    }

    #users(): Map<number, string> {
        return new Map(
            linesOf(this.#machine.read('/etc/passwd')).map((line) => {
                const [name = '', , uid] = line.split(':');
                return [Number(uid), name] as const;
            })
        );
    }

    #pageSize(): number {
        return (this.#pageBytes ??=
            Number(
                /^KernelPageSize:\s+(\d+) kB$/m.exec(this.#machine.read('/proc/self/smaps') ?? '')?.[1] ?? 4
            ) * 1024);
    }
}

/** The name stands in parentheses and may hold any of its own, so the last one ends it. */
function parse(text: string | null): Counted | null {
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
        pages: Math.max(0, number(21))
    };
}
