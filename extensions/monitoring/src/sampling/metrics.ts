/** Every metric by name: what has a history, and what a rule may watch. */
import type { Sample } from './sample.ts';

/** What a metric's values are measured in. */
export const units = ['percent', 'bytes', 'bytes/s', '1/s', 'count', 'ms', 'days', '°C', 'W'] as const;
/** What a metric's values are measured in. */
export type Unit = (typeof units)[number];

/** What a metric has a series for each of. */
export const scopes = [
    'core',
    'disk',
    'device',
    'interface',
    'container',
    'sensor',
    'drive',
    'gpu',
    'raid',
    'check'
] as const;

/** A metric. One with a `scope` has a series `name:instance` for each disk, device, and so on. */
export interface Metric {
    readonly name: string;
    readonly unit: Unit;
    readonly scope: (typeof scopes)[number] | null;
    readonly summary: string;
}

interface Entry extends Metric {
    /** The values in a sample; the instance is `''` where there is only one. */
    readonly read: (sample: Sample) => readonly (readonly [instance: string, value: number | null])[];
}

const one = (
    name: string,
    unit: Unit,
    summary: string,
    read: (sample: Sample) => number | null | undefined
): Entry => ({ name, unit, scope: null, summary, read: (sample) => [['', read(sample) ?? null]] });
/** Makes metrics that each element of a list has. */
const scoped =
    <T>(
        prefix: string,
        scope: Metric['scope'],
        list: (sample: Sample) => readonly T[],
        instanceOf: (element: T) => string
    ) =>
    (name: string, unit: Unit, summary: string, read: (element: T) => number | null): Entry => ({
        name: `${prefix}.${name}`,
        unit,
        scope,
        summary,
        read: (sample) => list(sample).map((element) => [instanceOf(element), read(element)])
    });
const core = scoped(
    'cpu',
    'core',
    ({ cpu }) => cpu?.perCore ?? [],
    (each) => each.core
);
const disk = scoped(
    'disk',
    'disk',
    ({ disks }) => disks,
    ({ mount }) => mount
);
const device = scoped(
    'device',
    'device',
    ({ devices }) => devices,
    ({ name }) => name
);
const network = scoped(
    'network',
    'interface',
    ({ interfaces }) => interfaces,
    ({ name }) => name
);
const container = scoped(
    'container',
    'container',
    ({ containers }) => containers,
    ({ name }) => name
);
const sensor = scoped(
    'sensor',
    'sensor',
    ({ sensors }) => sensors,
    ({ name }) => name
);
const drive = scoped(
    'drive',
    'drive',
    ({ drives }) => drives,
    ({ name }) => name
);
const gpu = scoped(
    'gpu',
    'gpu',
    ({ gpus }) => gpus,
    ({ name }) => name
);
const raid = scoped(
    'raid',
    'raid',
    ({ raids }) => raids,
    ({ name }) => name
);
const check = scoped(
    'check',
    'check',
    ({ checks }) => checks,
    ({ name }) => name
);

const entries: readonly Entry[] = [
    one('cpu.usage', 'percent', 'Time in which the processors did anything', ({ cpu }) => cpu?.usage),
    one('cpu.user', 'percent', 'Time in programs', ({ cpu }) => cpu?.user),
    one('cpu.system', 'percent', 'Time in the kernel', ({ cpu }) => cpu?.system),
    one('cpu.iowait', 'percent', 'Idle time with a disk request under way', ({ cpu }) => cpu?.iowait),
    one('cpu.steal', 'percent', 'Time that the hypervisor gave to others', ({ cpu }) => cpu?.steal),
    core('core', 'percent', 'Time in which one processor did anything', ({ usage }) => usage),
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
    one(
        'pressure.cpu',
        'percent',
        'Time in which tasks waited for a processor',
        ({ pressure }) => pressure?.cpu
    ),
    one(
        'pressure.memory',
        'percent',
        'Time in which tasks waited for memory',
        ({ pressure }) => pressure?.memory
    ),
    one('pressure.io', 'percent', 'Time in which tasks waited for a disk', ({ pressure }) => pressure?.io),
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
    container('rx', 'bytes/s', 'Bytes received', ({ rxBytesPerSecond }) => rxBytesPerSecond),
    container('tx', 'bytes/s', 'Bytes sent', ({ txBytesPerSecond }) => txBytesPerSecond),
    container('processes', 'count', 'Processes', ({ processes }) => processes),
    sensor('temperature', '°C', 'Temperature that a sensor measures', ({ temperature }) => temperature),
    drive('wear', 'percent', 'Used part of the life of a drive', ({ wear }) => wear),
    drive('temperature', '°C', 'Temperature of a drive', ({ temperature }) => temperature),
    raid('missing', 'count', 'Disks that an array lacks', ({ missing }) => missing),
    gpu('usage', 'percent', 'Time in which a graphics processor did anything', ({ usage }) => usage),
    gpu('memory', 'bytes', 'Used memory of a graphics processor', ({ memoryUsed }) => memoryUsed),
    gpu('temperature', '°C', 'Temperature of a graphics processor', ({ temperature }) => temperature),
    gpu('power', 'W', 'Power that a graphics processor draws', ({ power }) => power),
    check('up', 'count', '1 when an uptime check is up or degraded, 0 when it is down', ({ up }) => up),
    check('latency', 'ms', 'Time of the last good try of an uptime check', ({ latencyMs }) => latencyMs),
    check(
        'certificateDays',
        'days',
        'Days until the certificate ends that an uptime check saw',
        ({ certificateDays }) => certificateDays
    )
];
const byName = new Map(entries.map((entry) => [entry.name, entry]));

/** All metrics, in the order of the documentation. */
export const metrics: readonly Metric[] = entries;

/** A metric, and the instance of it that is meant. */
export interface MetricReference {
    readonly metric: Metric;
    /** Null when no instance is named. */
    readonly instance: string | null;
}

/** Reads `metric` or `metric:instance`; null for an unknown metric. The instance need not exist: it may come later. */
export function parseSeriesName(text: string): MetricReference | null {
    const colon = text.indexOf(':');
    const metric = byName.get(colon < 0 ? text : text.slice(0, colon));
    if (metric === undefined || (colon >= 0 && (metric.scope === null || colon === text.length - 1))) {
        return null;
    }
    return { metric, instance: colon < 0 ? null : text.slice(colon + 1) };
}

/** Names the series of a metric and an instance; `''` is the instance of a metric without instances. */
export function nameSeries(metric: string, instance: string): string {
    return instance === '' ? metric : `${metric}:${instance}`;
}

/** Reads the known values of a sample, by metric and instance. */
export function readValues(sample: Sample): Map<string, Map<string, number>> {
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
