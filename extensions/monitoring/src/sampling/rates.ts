/** How fast counters grow. */
import type { CpuTimes } from './sources/system.ts';

/** Growth of a counter a second; null without an earlier reading, and when the counter was set back. */
export function rate(
    before: number | null | undefined,
    now: number | null | undefined,
    seconds: number | null
): number | null {
    if (before == null || now == null || seconds === null || seconds <= 0 || now < before) {
        return null;
    }
    return (now - before) / seconds;
}

/** What the processor did between two readings, in percent of the time. */
export interface CpuShares {
    readonly usage: number;
    readonly user: number;
    readonly system: number;
    readonly iowait: number;
    readonly steal: number;
}

const modes = ['user', 'nice', 'system', 'idle', 'iowait', 'irq', 'softirq', 'steal'] as const;

/** Compares two readings; null without an earlier one, when the counters were set back, or when no tick has passed. */
export function cpuShares(before: CpuTimes | undefined, now: CpuTimes): CpuShares | null {
    if (before === undefined || now.user < before.user || now.system < before.system) {
        return null;
    }
    // Idle and I/O-wait times may go back a little, since the kernel only estimates them.
    const spent = Object.fromEntries(
        modes.map((mode) => [mode, Math.max(0, now[mode] - before[mode])])
    ) as Record<(typeof modes)[number], number>;
    const total = modes.reduce((sum, mode) => sum + spent[mode], 0);
    if (total === 0) {
        return null;
    }
    const percent = (ticks: number): number => (ticks / total) * 100;
    return {
        usage: percent(total - spent.idle - spent.iowait),
        user: percent(spent.user + spent.nice),
        system: percent(spent.system + spent.irq + spent.softirq),
        iowait: percent(spent.iowait),
        steal: percent(spent.steal)
    };
}
