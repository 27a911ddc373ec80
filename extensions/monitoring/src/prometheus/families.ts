/** The metric families of the exposition. Counters are as the kernel counts them, so that Prometheus calculates the rates; units are base units. */
import type { Frozen } from '@portico/sdk';

import type { AlertRow } from '../entities.ts';
import { matchesAny } from '../sampling/glob.ts';
import type { MonitorStatus } from '../sampling/monitor.ts';
import type { Extras, Reading } from '../sampling/sampler.ts';
import { ticksPerSecond } from '../sampling/sources/system.ts';
import type { Settings } from '../settings.ts';
import { counter, type Family, gauge, only, type Point } from './family.ts';
import { listExtras, listHardware } from './hardware.ts';

/** What an exposition is made from. */
export interface Exposed {
    readonly reading: Reading;
    readonly extras: Extras;
    readonly firing: readonly AlertRow[];
    readonly status: MonitorStatus;
    readonly settings: Frozen<Pick<Settings, 'excludeDevices' | 'excludeInterfaces'>>;
}

/** Lists all families, also those that have no values now. */
export function listFamilies(exposed: Exposed): Family[] {
    return [
        ...listMachine(exposed.reading),
        ...listFileSystems(exposed.reading),
        ...listDevices(exposed),
        ...listInterfaces(exposed),
        ...listContainers(exposed.reading),
        ...listHardware(exposed.reading),
        ...listExtras(exposed.extras),
        ...listOwn(exposed)
    ];
}

function listMachine({ cpu, load, memory, uptime }: Reading): Family[] {
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
        gauge('swap_free_bytes', 'Swap that is free.', only(memory?.swapFree))
    ];
}

function listFileSystems({ disks }: Reading): Family[] {
    const perDisk = (read: (disk: (typeof disks)[number]) => number | undefined): readonly Point[] =>
        disks.map((disk) => [{ device: disk.source, fstype: disk.type, mountpoint: disk.mount }, read(disk)]);
    return [
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
            'Space that accounts other than root could still use.',
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
        )
    ];
}

function listDevices({ reading, settings }: Exposed): Family[] {
    const devices = (reading.devices ?? []).filter(
        ({ name, partition }) => !partition && !matchesAny(name, settings.excludeDevices)
    );
    const perDevice = (read: (device: (typeof devices)[number]) => number): readonly Point[] =>
        devices.map((device) => [{ device: device.name }, read(device)]);
    return [
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
        )
    ];
}

function listInterfaces({ reading, settings }: Exposed): Family[] {
    const interfaces = (reading.interfaces ?? []).filter(
        ({ name }) => !matchesAny(name, settings.excludeInterfaces)
    );
    const perInterface = (read: (each: (typeof interfaces)[number]) => number): readonly Point[] =>
        interfaces.map((each) => [{ device: each.name }, read(each)]);
    return [
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
        )
    ];
}

function listContainers(reading: Reading): Family[] {
    const containers = reading.containers ?? [];
    const perContainer = (read: (each: (typeof containers)[number]) => number | null): readonly Point[] =>
        containers.map((each) => [{ id: each.id, name: each.name, runtime: each.runtime }, read(each)]);
    return [
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
        counter(
            'container_network_receive_bytes',
            'Bytes that a container received.',
            perContainer(({ rxBytes }) => rxBytes)
        ),
        counter(
            'container_network_transmit_bytes',
            'Bytes that a container sent.',
            perContainer(({ txBytes }) => txBytes)
        ),
        gauge(
            'container_processes',
            'Processes of a container.',
            perContainer(({ processes }) => processes)
        )
    ];
}

function listOwn({ firing, status }: Exposed): Family[] {
    return [
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
        counter('monitoring_samples', 'Samples taken since the start.', only(status.samples)),
        gauge(
            'monitoring_sample_duration_seconds',
            'How long the newest sample took.',
            only(status.tookMs === null ? null : status.tookMs / 1000)
        ),
        gauge('monitoring_series', 'Series of which history is kept.', only(status.series))
    ];
}
