/** Processors, load, memory and uptime, as the kernel counts them. */
import type { Machine } from '../../machine.ts';

/** Time of a processor by what it did, in ticks of the kernel. `user` includes the time of guests. */
export interface CpuTimes {
    readonly user: number;
    readonly nice: number;
    readonly system: number;
    readonly idle: number;
    readonly iowait: number;
    readonly irq: number;
    readonly softirq: number;
    readonly steal: number;
}

/** The times of the processors since the machine started. */
export interface Cpu {
    readonly all: CpuTimes;
    /** By number. */
    readonly cores: ReadonlyMap<string, CpuTimes>;
    /** Number of processes that run or wait for a processor now. */
    readonly running: number;
    /** Number of processes that wait for a disk now. */
    readonly blocked: number;
    /** When the machine booted, seconds since 1970. */
    readonly bootedAt: number;
}

/** Averages of the load. */
export interface Load {
    readonly one: number;
    readonly five: number;
    readonly fifteen: number;
    /** Number of tasks. */
    readonly tasks: number;
}

/** Memory and swap, in bytes. */
export interface Memory {
    readonly total: number;
    readonly available: number;
    readonly free: number;
    readonly cached: number;
    readonly buffers: number;
    readonly swapTotal: number;
    readonly swapFree: number;
}

/** Ticks a second: `USER_HZ`, which is 100 wherever Linux runs. */
export const ticksPerSecond = 100;

/** Reads the processor times; null where the kernel does not say. */
export function readCpu(machine: Machine): Cpu | null {
    const cores = new Map<string, CpuTimes>();
    let all: CpuTimes | null = null;
    const single = new Map<string, number>();
    for (const line of linesOf(machine.read('/proc/stat'))) {
        const [name = '', ...fields] = line.split(/\s+/);
        if (name === 'cpu') {
            all = toTimes(fields);
        } else if (/^cpu\d+$/.test(name)) {
            cores.set(name.slice(3), toTimes(fields));
        } else {
            single.set(name, Number(fields[0]));
        }
    }
    return all === null
        ? null
        : {
              all,
              cores,
              running: single.get('procs_running') ?? 0,
              blocked: single.get('procs_blocked') ?? 0,
              bootedAt: single.get('btime') ?? 0
          };
}

/** Old kernels have fewer columns, which count as 0. */
function toTimes(fields: readonly string[]): CpuTimes {
    const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0] =
        fields.map(Number);
    return { user, nice, system, idle, iowait, irq, softirq, steal };
}

/** Reads the load; null where the kernel does not say. */
export function readLoad(machine: Machine): Load | null {
    const match = /^(\S+) (\S+) (\S+) \d+\/(\d+)/.exec(machine.read('/proc/loadavg') ?? '');
    return match === null
        ? null
        : {
              one: Number(match[1]),
              five: Number(match[2]),
              fifteen: Number(match[3]),
              tasks: Number(match[4])
          };
}

/** Reads memory and swap; null where the kernel does not say. */
export function readMemory(machine: Machine): Memory | null {
    const kib = new Map(
        linesOf(machine.read('/proc/meminfo')).map((line) => {
            const [name = '', value = ''] = line.split(/:\s+/);
            return [name, Number.parseInt(value, 10) * 1024] as const;
        })
    );
    const field = (name: string): number => kib.get(name) ?? 0;
    const total = kib.get('MemTotal');
    if (total === undefined) {
        return null;
    }
    const [free, buffers, cached] = [
        field('MemFree'),
        field('Buffers'),
        field('Cached') + field('SReclaimable')
    ];
    // Kernels before 3.14 do not estimate the available memory.
    const available = kib.get('MemAvailable') ?? Math.min(total, free + buffers + cached);
    return {
        total,
        available,
        free,
        cached,
        buffers,
        swapTotal: field('SwapTotal'),
        swapFree: field('SwapFree')
    };
}

/** Reads the seconds since the boot; null where the kernel does not say. */
export function readUptime(machine: Machine): number | null {
    const text = machine.read('/proc/uptime');
    return text === null ? null : Number.parseFloat(text);
}

/** Splits a file that may be absent into its lines, without empty ones. */
export function linesOf(text: string | null): string[] {
    return (text ?? '').split('\n').filter((line) => line !== '');
}
