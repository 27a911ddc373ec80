/** Pressure: how long tasks waited for a processor, for memory or for a disk, as the kernel counts it (PSI, Linux 4.20). */
import type { Machine } from '../../machine.ts';

/** What tasks wait for. */
export const pressureKinds = ['cpu', 'memory', 'io'] as const;
/** Microseconds since the boot in which at least one task waited. */
export type Pressure = Readonly<Record<(typeof pressureKinds)[number], number>>;

/** Reads the pressure; null where the kernel does not count it. */
export function readPressure(machine: Machine): Pressure | null {
    const totals = pressureKinds.map((kind) =>
        Number(/^some .*\btotal=(\d+)/m.exec(machine.read(`/proc/pressure/${kind}`) ?? '')?.[1] ?? Number.NaN)
    );
    const [cpu = Number.NaN, memory = Number.NaN, io = Number.NaN] = totals;
    return totals.some(Number.isNaN) ? null : { cpu, memory, io };
}
