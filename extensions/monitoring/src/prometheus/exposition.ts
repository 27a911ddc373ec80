/**
 * The text format of Prometheus, version 0.0.4. Counters go out as the kernel has them, so that Prometheus makes the rates; units are base units.
 */
import type { Frozen } from '@portico/sdk';

import { matchesAny } from '../sampling/glob.ts';
import type { Vitals } from '../monitor.ts';
import type { Reading } from '../sampling/sampler.ts';
import type { Settings } from '../settings.ts';
import { ticksPerSecond } from '../sampling/sources/system.ts';
import type { AlertRow } from '../entities.ts';

export const expositionType = 'text/plain; version=0.0.4; charset=utf-8';

type Labels = Readonly<Record<string, string>>;
type Point = readonly [labels: Labels, value: number | null | undefined];
interface Family {
    readonly name: string;
    readonly type: 'counter' | 'gauge';
    readonly help: string;
    readonly points: readonly Point[];
}

interface Exposed {
    readonly reading: Reading;
    readonly firing: readonly AlertRow[];
    readonly vitals: Vitals;
    readonly settings: Frozen<Pick<Settings, 'excludeDevices' | 'excludeInterfaces'>>;
}

/** Metrics without a value are left out, HELP and TYPE with them. */
export function expose(exposed: Exposed): string {
    return families(exposed)
        .map(({ name, type, help, points }) => {
            const lines = points
                .filter((point): point is readonly [Labels, number] => typeof point[1] === 'number')
                .map(([labels, value]) => `${name}${labelsOf(labels)} ${numberOf(value)}\n`);
            return lines.length === 0
                ? ''
                : `# HELP ${name} ${help.replace(/\\/g, '\\\\').replace(/\n/g, '\\n')}\n# TYPE ${name} ${type}\n${lines.join('')}`;
        })
        .join('');
}

function families({ reading, firing, vitals, settings }: Exposed): Family[] {
    const { cpu, load, memory, uptime, disks } = reading;
    const devices = (reading.devices ?? []).filter(
        ({ name, partition }) => !partition && !matchesAny(name, settings.excludeDevices)
    );
    const interfaces = (reading.interfaces ?? []).filter(
        ({ name }) => !matchesAny(name, settings.excludeInterfaces)
    );
    const containers = reading.containers ?? [];
    const counter = (name: string, help: string, points: readonly Point[]): Family => ({
        name: `portico_${name}_total`,
        type: 'counter',
        help,
        points
    });
    const gauge = (name: string, help: string, points: readonly Point[]): Family => ({
        name: `portico_${name}`,
        type: 'gauge',
        help,
        points
    });
    const only = (value: number | null | undefined): readonly Point[] => [[{}, value]];
    const perDisk = (read: (disk: (typeof disks)[number]) => number | undefined): readonly Point[] =>
        disks.map((disk) => [{ device: disk.source, fstype: disk.type, mountpoint: disk.mount }, read(disk)]);
    const perDevice = (read: (device: (typeof devices)[number]) => number): readonly Point[] =>
        devices.map((device) => [{ device: device.name }, read(device)]);
    const perInterface = (read: (each: (typeof interfaces)[number]) => number): readonly Point[] =>
        interfaces.map((each) => [{ device: each.name }, read(each)]);
    const perContainer = (read: (each: (typeof containers)[number]) => number | null): readonly Point[] =>
        containers.map((each) => [{ id: each.id, name: each.name, runtime: each.runtime }, read(each)]);
    return [
        counter(
            'cpu_seconds',
            'Time of each processor by what it did.',
            [...(cpu?.cores ?? [])].flatMap(([core, times]) =>
                Object.entries(times).map(([mode, ticks]): Point => [
                    { cpu: core, mode },
                    ticks / ticksPerSecond
                ])
            )
        ),
        gauge('load1', 'Load, average of a minute.', only(load?.one)),
        gauge('load5', 'Load, average of five minutes.', only(load?.five)),
        gauge('load15', 'Load, average of fifteen minutes.', only(load?.fifteen)),
        gauge('uptime_seconds', 'Time since the boot.', only(uptime)),
        gauge('processes_running', 'Tasks that run or could run.', only(cpu?.running)),
        gauge('processes_blocked', 'Tasks that wait for a disk.', only(cpu?.blocked)),
        gauge('memory_size_bytes', 'Memory of the machine.', only(memory?.total)),
        gauge('memory_available_bytes', 'Memory that programs could still have.', only(memory?.available)),
        gauge('memory_cached_bytes', 'Memory that holds files.', only(memory?.cached)),
        gauge('swap_size_bytes', 'Swap of the machine.', only(memory?.swapTotal)),
        gauge('swap_free_bytes', 'Swap that is free.', only(memory?.swapFree)),
        gauge(
            'filesystem_size_bytes',
            'Size of a file system.',
            perDisk(({ space }) => space?.total)
        ),
        gauge(
            'filesystem_free_bytes',
            'Space that root could still use.',
            perDisk(({ space }) => space?.free)
        ),
        gauge(
            'filesystem_avail_bytes',
            'Space that everybody else could still use.',
            perDisk(({ space }) => space?.available)
        ),
        gauge(
            'filesystem_files',
            'Inodes of a file system.',
            perDisk(({ space }) => space?.inodes)
        ),
        gauge(
            'filesystem_files_free',
            'Inodes that are free.',
            perDisk(({ space }) => space?.inodesFree)
        ),
        gauge(
            'filesystem_readonly',
            'Whether a file system is mounted read only.',
            perDisk(({ readOnly }) => Number(readOnly))
        ),
        counter(
            'disk_read_bytes',
            'Bytes read from a device.',
            perDevice(({ readBytes }) => readBytes)
        ),
        counter(
            'disk_written_bytes',
            'Bytes written to a device.',
            perDevice(({ writtenBytes }) => writtenBytes)
        ),
        counter(
            'disk_reads_completed',
            'Reads that ended.',
            perDevice(({ reads }) => reads)
        ),
        counter(
            'disk_writes_completed',
            'Writes that ended.',
            perDevice(({ writes }) => writes)
        ),
        counter(
            'disk_read_time_seconds',
            'Time that reads took, added up.',
            perDevice(({ readMs }) => readMs / 1000)
        ),
        counter(
            'disk_write_time_seconds',
            'Time that writes took, added up.',
            perDevice(({ writeMs }) => writeMs / 1000)
        ),
        counter(
            'disk_io_time_seconds',
            'Time in which a request was under way.',
            perDevice(({ busyMs }) => busyMs / 1000)
        ),
        counter(
            'network_receive_bytes',
            'Bytes received.',
            perInterface(({ rxBytes }) => rxBytes)
        ),
        counter(
            'network_receive_packets',
            'Packets received.',
            perInterface(({ rxPackets }) => rxPackets)
        ),
        counter(
            'network_receive_errs',
            'Packets that came broken.',
            perInterface(({ rxErrors }) => rxErrors)
        ),
        counter(
            'network_receive_drop',
            'Received packets that were dropped.',
            perInterface(({ rxDropped }) => rxDropped)
        ),
        counter(
            'network_transmit_bytes',
            'Bytes sent.',
            perInterface(({ txBytes }) => txBytes)
        ),
        counter(
            'network_transmit_packets',
            'Packets sent.',
            perInterface(({ txPackets }) => txPackets)
        ),
        counter(
            'network_transmit_errs',
            'Packets that could not be sent.',
            perInterface(({ txErrors }) => txErrors)
        ),
        counter(
            'network_transmit_drop',
            'Packets that were dropped instead of sent.',
            perInterface(({ txDropped }) => txDropped)
        ),
        counter(
            'container_cpu_seconds',
            'Processor time of a container.',
            perContainer(({ cpuUs }) => (cpuUs === null ? null : cpuUs / 1e6))
        ),
        gauge(
            'container_memory_bytes',
            'Memory of a container, without the part of the cache that is given back first.',
            perContainer(({ memory: used }) => used)
        ),
        gauge(
            'container_memory_limit_bytes',
            'Limit of the memory of a container, where there is one.',
            perContainer(({ memoryLimit }) => memoryLimit)
        ),
        counter(
            'container_read_bytes',
            'Bytes that a container read from disks.',
            perContainer(({ readBytes }) => readBytes)
        ),
        counter(
            'container_written_bytes',
            'Bytes that a container wrote to disks.',
            perContainer(({ writtenBytes }) => writtenBytes)
        ),
        gauge(
            'container_processes',
            'Processes of a container.',
            perContainer(({ processes }) => processes)
        ),
        gauge(
            'alert_firing',
            'Alerts that fire now.',
            firing.map((alert) => [
                {
                    id: String(alert.id),
                    rule: alert.name,
                    metric: alert.metric,
                    instance: alert.instance,
                    severity: alert.severity
                },
                1
            ])
        ),
        counter('monitoring_samples', 'Samples taken since the start.', only(vitals.samples)),
        gauge(
            'monitoring_sample_duration_seconds',
            'How long the newest sample took.',
            only(vitals.tookMs === null ? null : vitals.tookMs / 1000)
        ),
        gauge('monitoring_series', 'Series of which history is kept.', only(vitals.series))
    ];
}

function labelsOf(labels: Labels): string {
    const pairs = Object.entries(labels).map(
        ([name, value]) =>
            `${name}="${value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n')}"`
    );
    return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function numberOf(value: number): string {
    return Number.isNaN(value) ? 'NaN' : Number.isFinite(value) ? String(value) : value > 0 ? '+Inf' : '-Inf';
}
