/** Processors, load, memory and uptime, as the kernel counts them. */
import type { Machine } from './machine.ts';

/** Time of a processor by what it did, in ticks of the kernel. `user` has the guests in it already. */
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

export interface Cpu {
    readonly all: CpuTimes;
    readonly cores: ReadonlyMap<string, CpuTimes>;
    /** Processes that run or wait for a processor now. */
    readonly running: number;
    /** Processes that wait for a disk now. */
    readonly blocked: number;
    /** When the machine booted, seconds since 1970. */
    readonly bootedAt: number;
}

export interface Load {
    readonly one: number;
    readonly five: number;
    readonly fifteen: number;
    /** Tasks there are. */
    readonly tasks: number;
}

/** Bytes. */
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

const modes = ['user', 'nice', 'system', 'idle', 'iowait', 'irq', 'softirq', 'steal'] as const;

export function readCpu(machine: Machine): Cpu | null {
    const cores = new Map<string, CpuTimes>();
    let all: CpuTimes | null = null;
    const single = new Map<string, number>();
    for (const line of linesOf(machine.read('/proc/stat'))) {
        const [name = '', ...fields] = line.split(/\s+/);
        if (name === 'cpu') {
            all = times(fields);
        } else if (/^cpu\d+$/.test(name)) {
            cores.set(name.slice(3), times(fields));
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

/** Kernels of long ago have fewer columns. */
function times(fields: readonly string[]): CpuTimes {
    return Object.fromEntries(
        modes.map((mode, index) => [mode, Number(fields[index] ?? 0)])
    ) as unknown as CpuTimes;
}

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

export function readMemory(machine: Machine): Memory | null {
    const kib = new Map(
        linesOf(machine.read('/proc/meminfo')).map((line) => {
            const [name = '', value = ''] = line.split(/:\s+/);
            return [name, Number.parseInt(value, 10) * 1024] as const;
        })
    );
    const of = (name: string): number => kib.get(name) ?? 0;
    const total = kib.get('MemTotal');
    if (total === undefined) {
        return null;
    }
    const [free, buffers, cached] = [of('MemFree'), of('Buffers'), of('Cached') + of('SReclaimable')];
    // Kernels before 3.14 do not estimate what is available.
    const available = kib.get('MemAvailable') ?? Math.min(total, free + buffers + cached);
    return { total, available, free, cached, buffers, swapTotal: of('SwapTotal'), swapFree: of('SwapFree') };
}

/** Seconds since the boot. */
export function readUptime(machine: Machine): number | null {
    const text = machine.read('/proc/uptime');
    return text === null ? null : Number.parseFloat(text);
}

/** Lines of a file that may be absent, without the empty one at the end. */
export function linesOf(text: string | null): string[] {
    return (text ?? '').split('\n').filter((line) => line !== '');
}
