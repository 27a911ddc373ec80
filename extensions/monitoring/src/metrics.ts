/** Every metric by name: what has a history, what a rule may watch. */
import type { Sample } from './sampling/sample.ts';

export type Unit = 'percent' | 'bytes' | 'bytes/s' | '1/s' | 'count';

/** A metric. Those with a `scope` exist once for each disk, device, interface, container or core, and are then called `name:instance`. */
export interface Metric {
    readonly name: string;
    readonly unit: Unit;
    readonly scope: 'core' | 'disk' | 'device' | 'interface' | 'container' | null;
    readonly summary: string;
}

type Read = (sample: Sample) => readonly (readonly [instance: string, value: number | null])[];
interface Entry extends Metric {
    readonly read: Read;
}

const one = (
    name: string,
    unit: Unit,
    summary: string,
    read: (sample: Sample) => number | null | undefined
): Entry => ({ name, unit, scope: null, summary, read: (sample) => [['', read(sample) ?? null]] });
const disk = (
    name: string,
    unit: Unit,
    summary: string,
    read: (disk: Sample['disks'][number]) => number | null
): Entry => ({
    name: `disk.${name}`,
    unit,
    scope: 'disk',
    summary,
    read: ({ disks }) => disks.map((each) => [each.mount, read(each)])
});
const device = (
    name: string,
    unit: Unit,
    summary: string,
    read: (device: Sample['devices'][number]) => number | null
): Entry => ({
    name: `device.${name}`,
    unit,
    scope: 'device',
    summary,
    read: ({ devices }) => devices.map((each) => [each.name, read(each)])
});
const network = (
    name: string,
    unit: Unit,
    summary: string,
    read: (network: Sample['interfaces'][number]) => number | null
): Entry => ({
    name: `network.${name}`,
    unit,
    scope: 'interface',
    summary,
    read: ({ interfaces }) => interfaces.map((each) => [each.name, read(each)])
});
const container = (
    name: string,
    unit: Unit,
    summary: string,
    read: (container: Sample['containers'][number]) => number | null
): Entry => ({
    name: `container.${name}`,
    unit,
    scope: 'container',
    summary,
    read: ({ containers }) => containers.map((each) => [each.name, read(each)])
});

const entries: readonly Entry[] = [
    one('cpu.usage', 'percent', 'Time in which the processors did anything', ({ cpu }) => cpu?.usage),
    one('cpu.user', 'percent', 'Time in programs', ({ cpu }) => cpu?.user),
    one('cpu.system', 'percent', 'Time in the kernel', ({ cpu }) => cpu?.system),
    one('cpu.iowait', 'percent', 'Idle time with a disk request under way', ({ cpu }) => cpu?.iowait),
    one('cpu.steal', 'percent', 'Time that the hypervisor gave to others', ({ cpu }) => cpu?.steal),
    {
        name: 'cpu.core',
        unit: 'percent',
        scope: 'core',
        summary: 'Time in which one processor did anything',
        read: ({ cpu }) => (cpu?.perCore ?? []).map(({ core, usage }) => [core, usage])
    },
    one('load.one', 'count', 'Load, average of a minute', ({ load }) => load?.one),
    one('load.five', 'count', 'Load, average of five minutes', ({ load }) => load?.five),
    one('load.fifteen', 'count', 'Load, average of fifteen minutes', ({ load }) => load?.fifteen),
    one('load.perCore', 'count', 'Load of five minutes for each processor', ({ load }) => load?.perCore),
    one('memory.used', 'bytes', 'Memory that programs could not have', ({ memory }) => memory?.used),
    one(
        'memory.available',
        'bytes',
        'Memory that programs could still have',
        ({ memory }) => memory?.available
    ),
    one('memory.usedPercent', 'percent', 'Used part of the memory', ({ memory }) => memory?.usedPercent),
    one('swap.used', 'bytes', 'Used swap', ({ swap }) => swap?.used),
    one('swap.usedPercent', 'percent', 'Used part of the swap', ({ swap }) => swap?.usedPercent),
    one('processes.running', 'count', 'Tasks that run or could run', ({ processes }) => processes.running),
    one('processes.blocked', 'count', 'Tasks that wait for a disk', ({ processes }) => processes.blocked),
    disk('used', 'bytes', 'Used space', ({ used }) => used),
    disk('available', 'bytes', 'Space left', ({ available }) => available),
    disk(
        'usedPercent',
        'percent',
        'Used part of the space, as `df` says it',
        ({ usedPercent }) => usedPercent
    ),
    disk(
        'inodesUsedPercent',
        'percent',
        'Used part of the inodes',
        ({ inodesUsedPercent }) => inodesUsedPercent
    ),
    device('read', 'bytes/s', 'Bytes read', ({ readBytesPerSecond }) => readBytesPerSecond),
    device('write', 'bytes/s', 'Bytes written', ({ writeBytesPerSecond }) => writeBytesPerSecond),
    device('reads', '1/s', 'Reads that ended', ({ readsPerSecond }) => readsPerSecond),
    device('writes', '1/s', 'Writes that ended', ({ writesPerSecond }) => writesPerSecond),
    device(
        'utilisation',
        'percent',
        'Time in which a request was under way',
        ({ utilisation }) => utilisation
    ),
    network('rx', 'bytes/s', 'Bytes received', ({ rxBytesPerSecond }) => rxBytesPerSecond),
    network('tx', 'bytes/s', 'Bytes sent', ({ txBytesPerSecond }) => txBytesPerSecond),
    network('rxPackets', '1/s', 'Packets received', ({ rxPacketsPerSecond }) => rxPacketsPerSecond),
    network('txPackets', '1/s', 'Packets sent', ({ txPacketsPerSecond }) => txPacketsPerSecond),
    network('rxErrors', '1/s', 'Packets that came broken', ({ rxErrorsPerSecond }) => rxErrorsPerSecond),
    network(
        'txErrors',
        '1/s',
        'Packets that could not be sent',
        ({ txErrorsPerSecond }) => txErrorsPerSecond
    ),
    network(
        'rxDropped',
        '1/s',
        'Received packets that were dropped',
        ({ rxDroppedPerSecond }) => rxDroppedPerSecond
    ),
    network(
        'txDropped',
        '1/s',
        'Packets that were dropped instead of sent',
        ({ txDroppedPerSecond }) => txDroppedPerSecond
    ),
    container('cpu', 'percent', 'Time of one processor; two full ones are 200', ({ cpu }) => cpu),
    container(
        'memory',
        'bytes',
        'Memory without the part of the cache that is given back first',
        ({ memory }) => memory
    ),
    container(
        'memoryPercent',
        'percent',
        'Used part of its limit; without one, of the machine',
        ({ memoryPercent }) => memoryPercent
    ),
    container('read', 'bytes/s', 'Bytes read from disks', ({ readBytesPerSecond }) => readBytesPerSecond),
    container('write', 'bytes/s', 'Bytes written to disks', ({ writeBytesPerSecond }) => writeBytesPerSecond),
    container('processes', 'count', 'Processes', ({ processes }) => processes)
];
const byName = new Map(entries.map((entry) => [entry.name, entry]));

/** All metrics, in the order of the documentation. */
export const metrics: readonly Metric[] = entries;

/** A metric's name taken apart. */
export interface Named {
    readonly metric: Metric;
    /** Null when the name has none. */
    readonly instance: string | null;
}

/** Null for what is no metric; an instance that does not exist is no fault, it may come. */
export function parseName(text: string): Named | null {
    const colon = text.indexOf(':');
    const metric = byName.get(colon < 0 ? text : text.slice(0, colon));
    if (metric === undefined || (colon >= 0 && (metric.scope === null || colon === text.length - 1))) {
        return null;
    }
    return { metric, instance: colon < 0 ? null : text.slice(colon + 1) };
}

/** What a series is called. */
export function nameOf(metric: string, instance: string): string {
    return instance === '' ? metric : `${metric}:${instance}`;
}

/** The known values of a sample, by metric and instance (`''` where there is but one). */
export function valuesOf(sample: Sample): Map<string, Map<string, number>> {
    return new Map(
        entries.map(({ name, read }) => [
            name,
            new Map(
                read(sample).filter(
                    (pair): pair is readonly [string, number] => pair[1] !== null && Number.isFinite(pair[1])
                )
            )
        ])
    );
}
