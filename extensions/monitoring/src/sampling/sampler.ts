/** Takes samples: reads all counters and compares them with the reading before. */
import type { Frozen } from '@portico/sdk';

import type { Machine } from '../machine.ts';
import type { Settings } from '../settings.ts';
import { matchesAny } from './glob.ts';
import { cpuShares, rate } from './rates.ts';
import type { CpuView, DiskView, Sample } from './sample.ts';
import { type ContainerCounters, Containers } from './sources/containers.ts';
import {
    type DeviceCounters,
    type InterfaceCounters,
    readDevices,
    readInterfaces
} from './sources/devices.ts';
import { type Disk, readMounts, SpaceProbe } from './sources/mounts.ts';
import { type Pressure, readPressure } from './sources/pressure.ts';
import { type RaidArray, readRaids } from './sources/raids.ts';
import { type Sensor, Sensors } from './sources/sensors.ts';
import {
    type Cpu,
    type Load,
    type Memory,
    readCpu,
    readLoad,
    readMemory,
    readUptime
} from './sources/system.ts';

/** Everything that was read at one moment; null where the machine does not say. */
export interface Reading {
    /** Milliseconds since 1970. */
    readonly at: number;
    /** Milliseconds by the clock that does not jump. */
    readonly monotonic: number;
    readonly cpu: Cpu | null;
    readonly load: Load | null;
    readonly memory: Memory | null;
    readonly uptime: number | null;
    readonly pressure: Pressure | null;
    readonly sensors: readonly Sensor[];
    readonly raids: readonly RaidArray[];
    readonly disks: readonly Disk[];
    /** Partitions included. */
    readonly devices: readonly DeviceCounters[] | null;
    readonly interfaces: readonly InterfaceCounters[] | null;
    readonly containers: readonly ContainerCounters[] | null;
}

/** A sample, and the reading that it was calculated from. */
export interface TakenSample {
    readonly sample: Sample;
    readonly reading: Reading;
    /** Milliseconds since the sample before; null when there was none. */
    readonly elapsedMs: number | null;
    /** Milliseconds that the sample took. */
    readonly tookMs: number;
}

/** What a sample holds that is not read with it. */
export type Extras = Pick<Sample, 'checks' | 'drives' | 'gpus'>;

type SamplingOptions = Frozen<
    Pick<
        Settings,
        | 'intervalSeconds'
        | 'remoteDisks'
        | 'containers'
        | 'excludeDisks'
        | 'excludeDevices'
        | 'excludeInterfaces'
    >
>;

/** A reading that is older than this many intervals, and older than a minute, gives no rates. */
const intervalsOfBaseline = 5;
const leastBaselineMs = 60_000;

/** Takes samples of one machine, and remembers the last reading. */
export class Sampler {
    readonly #machine: Machine;
    readonly #spaces: SpaceProbe;
    readonly #containers: Containers;
    readonly #sensors: Sensors;
    #before: Reading | null = null;

    constructor(machine: Machine) {
        this.#machine = machine;
        this.#spaces = new SpaceProbe(machine);
        this.#containers = new Containers(machine);
        this.#sensors = new Sensors(machine);
    }

    /** Takes a sample. Rates are null in the first one, and after a long gap. */
    async take(
        options: SamplingOptions,
        { checks, drives, gpus }: Extras = { checks: [], drives: [], gpus: [] }
    ): Promise<TakenSample> {
        const began = this.#machine.monotonic();
        const reading = await this.#read(options);
        const elapsedMs = this.#before === null ? null : reading.monotonic - this.#before.monotonic;
        const isNear =
            elapsedMs !== null &&
            elapsedMs <= Math.max(leastBaselineMs, intervalsOfBaseline * options.intervalSeconds * 1000);
        const calculated = calculate(isNear ? this.#before : null, reading, options);
        const sample = { ...calculated, checks: [...checks], drives: [...drives], gpus: [...gpus] };
        this.#before = reading;
        return { sample, reading, elapsedMs, tookMs: this.#machine.monotonic() - began };
    }

    async #read(options: SamplingOptions): Promise<Reading> {
        const machine = this.#machine;
        const counters = {
            at: machine.now(),
            monotonic: machine.monotonic(),
            cpu: readCpu(machine),
            load: readLoad(machine),
            memory: readMemory(machine),
            uptime: readUptime(machine),
            pressure: readPressure(machine),
            sensors: this.#sensors.read(),
            raids: readRaids(machine),
            devices: readDevices(machine),
            interfaces: readInterfaces(machine)
        };
        const mounts = readMounts(machine, {
            remote: options.remoteDisks,
            isExcluded: (mount) => matchesAny(mount, options.excludeDisks)
        });
        const [disks, containers] = await Promise.all([
            this.#spaces.measure(mounts),
            options.containers ? this.#containers.read() : null
        ]);
        return { ...counters, disks, containers };
    }
}

function calculate(
    before: Reading | null,
    now: Reading,
    options: SamplingOptions
): Omit<Sample, keyof Extras> {
    const seconds = before === null ? null : (now.monotonic - before.monotonic) / 1000;
    const devicesBefore = new Map(before?.devices?.map((each) => [each.name, each]));
    const interfacesBefore = new Map(before?.interfaces?.map((each) => [each.name, each]));
    const containersBefore = new Map(before?.containers?.map((each) => [each.id, each]));
    const { cpu, load, memory } = now;
    const used = memory === null ? 0 : memory.total - memory.available;
    const swapUsed = memory === null ? 0 : memory.swapTotal - memory.swapFree;
    return {
        at: new Date(now.at).toISOString(),
        intervalSeconds: seconds,
        uptimeSeconds: now.uptime,
        cpu: cpu === null ? null : toCpuView(before?.cpu ?? null, cpu),
        load:
            load === null
                ? null
                : {
                      one: load.one,
                      five: load.five,
                      fifteen: load.fifteen,
                      perCore: cpu === null || cpu.cores.size === 0 ? null : load.five / cpu.cores.size
                  },
        memory:
            memory === null
                ? null
                : {
                      total: memory.total,
                      used,
                      available: memory.available,
                      cached: memory.cached,
                      buffers: memory.buffers,
                      usedPercent: percent(used, memory.total)
                  },
        swap:
            memory === null
                ? null
                : {
                      total: memory.swapTotal,
                      used: swapUsed,
                      usedPercent: percent(swapUsed, memory.swapTotal)
                  },
        processes: {
            running: cpu?.running ?? null,
            blocked: cpu?.blocked ?? null,
            tasks: load?.tasks ?? null
        },
        pressure: toPressureView(before?.pressure ?? null, now.pressure, seconds),
        ...toHardwareView(now),
        disks: now.disks.map((disk) =>
            toDiskView(
                disk,
                now.devices?.find(({ number }) => number === disk.number),
                devicesBefore,
                seconds
            )
        ),
        devices: (now.devices ?? [])
            .filter(({ name, partition }) => !partition && !matchesAny(name, options.excludeDevices))
            .map((device) => ({
                name: device.name,
                ...toIoView(devicesBefore.get(device.name), device, seconds)
            })),
        interfaces: (now.interfaces ?? [])
            .filter(({ name }) => !matchesAny(name, options.excludeInterfaces))
            .map((each) => toInterfaceView(interfacesBefore.get(each.name), each, seconds)),
        containers: (now.containers ?? []).map((each) =>
            toContainerView(containersBefore.get(each.id), each, seconds, memory?.total ?? null)
        )
    };
}

function toCpuView(before: Cpu | null, now: Cpu): CpuView {
    const all = cpuShares(before?.all, now.all);
    return {
        cores: now.cores.size,
        usage: all?.usage ?? null,
        user: all?.user ?? null,
        system: all?.system ?? null,
        iowait: all?.iowait ?? null,
        steal: all?.steal ?? null,
        perCore: [...now.cores].map(([core, times]) => ({
            core,
            usage: cpuShares(before?.cores.get(core), times)?.usage ?? null
        }))
    };
}

function toHardwareView({ sensors, raids }: Reading): Pick<Sample, 'sensors' | 'raids'> {
    return {
        sensors: sensors.map(({ name, kind, value }) => ({
            name,
            temperature: kind === 'temperature' ? value : null,
            fan: kind === 'fan' ? value : null
        })),
        raids: raids.map(({ name, wanted, working, failedMembers }) => ({
            name,
            missing: wanted === null ? failedMembers.length : Math.max(0, wanted - (working ?? 0))
        }))
    };
}

function toPressureView(
    before: Pressure | null,
    now: Pressure | null,
    seconds: number | null
): Sample['pressure'] {
    const share = (kind: keyof Pressure): number | null => {
        const microseconds = rate(before?.[kind], now?.[kind], seconds);
        return microseconds === null ? null : Math.min(100, microseconds / 10_000);
    };
    return now === null ? null : { cpu: share('cpu'), memory: share('memory'), io: share('io') };
}

function toDiskView(
    { mount, source, type, readOnly, space }: Disk,
    device: DeviceCounters | undefined,
    before: ReadonlyMap<string, DeviceCounters>,
    seconds: number | null
): DiskView {
    const used = space === null ? null : space.total - space.free;
    const inodesUsed = space === null || space.inodes === 0 ? null : space.inodes - space.inodesFree;
    return {
        mount,
        source,
        type,
        readOnly,
        device: device?.name ?? null,
        total: space?.total ?? null,
        used,
        available: space?.available ?? null,
        // As `df` calculates it: space that is reserved for root counts neither as used nor as available.
        usedPercent: space === null || used === null ? null : percent(used, used + space.available),
        inodes: space === null || space.inodes === 0 ? null : space.inodes,
        inodesUsed,
        inodesUsedPercent: inodesUsed === null || space === null ? null : percent(inodesUsed, space.inodes),
        ...toIoView(device === undefined ? undefined : before.get(device.name), device, seconds)
    };
}

function toIoView(
    before: DeviceCounters | undefined,
    now: DeviceCounters | undefined,
    seconds: number | null
) {
    const busy = rate(before?.busyMs, now?.busyMs, seconds);
    return {
        readBytesPerSecond: rate(before?.readBytes, now?.readBytes, seconds),
        writeBytesPerSecond: rate(before?.writtenBytes, now?.writtenBytes, seconds),
        readsPerSecond: rate(before?.reads, now?.reads, seconds),
        writesPerSecond: rate(before?.writes, now?.writes, seconds),
        utilisation: busy === null ? null : Math.min(100, busy / 10)
    };
}

function toInterfaceView(
    before: InterfaceCounters | undefined,
    now: InterfaceCounters,
    seconds: number | null
): Sample['interfaces'][number] {
    return {
        name: now.name,
        rxBytesPerSecond: rate(before?.rxBytes, now.rxBytes, seconds),
        txBytesPerSecond: rate(before?.txBytes, now.txBytes, seconds),
        rxPacketsPerSecond: rate(before?.rxPackets, now.rxPackets, seconds),
        txPacketsPerSecond: rate(before?.txPackets, now.txPackets, seconds),
        rxErrorsPerSecond: rate(before?.rxErrors, now.rxErrors, seconds),
        txErrorsPerSecond: rate(before?.txErrors, now.txErrors, seconds),
        rxDroppedPerSecond: rate(before?.rxDropped, now.rxDropped, seconds),
        txDroppedPerSecond: rate(before?.txDropped, now.txDropped, seconds)
    };
}

function toContainerView(
    before: ContainerCounters | undefined,
    now: ContainerCounters,
    seconds: number | null,
    machineMemory: number | null
): Sample['containers'][number] {
    const cpu = rate(before?.cpuUs, now.cpuUs, seconds);
    const limit = now.memoryLimit ?? machineMemory;
    return {
        id: now.id,
        name: now.name,
        runtime: now.runtime,
        cpu: cpu === null ? null : cpu / 10_000,
        memory: now.memory,
        memoryLimit: now.memoryLimit,
        memoryPercent: now.memory === null || limit === null ? null : percent(now.memory, limit),
        readBytesPerSecond: rate(before?.readBytes, now.readBytes, seconds),
        writeBytesPerSecond: rate(before?.writtenBytes, now.writtenBytes, seconds),
        rxBytesPerSecond: rate(before?.rxBytes, now.rxBytes, seconds),
        txBytesPerSecond: rate(before?.txBytes, now.txBytes, seconds),
        processes: now.processes
    };
}

/** Null when the whole is zero. */
function percent(used: number, of: number): number | null {
    return of > 0 ? (used / of) * 100 : null;
}
