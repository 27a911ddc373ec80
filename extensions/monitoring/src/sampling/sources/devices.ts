/** Counters of block devices and network interfaces. */
import type { Machine } from '../../machine.ts';
import { linesOf } from './system.ts';

/** Counters of a block device since the boot. */
export interface DeviceCounters {
    readonly name: string;
    /** Its number as mounts have it: `254:0`. */
    readonly number: string;
    /** Whether it is part of another device, which counts the same requests again. */
    readonly partition: boolean;
    readonly reads: number;
    readonly readBytes: number;
    readonly readMs: number;
    readonly writes: number;
    readonly writtenBytes: number;
    readonly writeMs: number;
    /** Milliseconds during which at least one request was under way. */
    readonly busyMs: number;
}

/** Counters of a network interface since it was created. */
export interface InterfaceCounters {
    readonly name: string;
    readonly rxBytes: number;
    readonly rxPackets: number;
    readonly rxErrors: number;
    readonly rxDropped: number;
    readonly txBytes: number;
    readonly txPackets: number;
    readonly txErrors: number;
    readonly txDropped: number;
}

/** `/proc/diskstats` counts in these sectors, whatever the sectors of the device are. */
const sectorBytes = 512;

/** Reads the counters of devices that have had a request; null where the kernel does not say. */
export function readDevices(machine: Machine): DeviceCounters[] | null {
    const text = machine.read('/proc/diskstats');
    if (text === null) {
        return null;
    }
    const whole = new Set(machine.list('/sys/block'));
    return linesOf(text).flatMap((line) => {
        const [major, minor, name = '', ...fields] = line.trim().split(/\s+/);
        const [
            reads = 0,
            ,
            readSectors = 0,
            readMs = 0,
            writes = 0,
            ,
            writtenSectors = 0,
            writeMs = 0,
            ,
            busyMs = 0
        ] = fields.map(Number);
        if (reads + writes === 0) {
            return [];
        }
        // In sysfs, a `/` of a device's name is written `!`. Without sysfs, everything counts as a whole device.
        const partition = whole.size > 0 && !whole.has(name.replaceAll('/', '!'));
        return [
            {
                name,
                number: `${major}:${minor}`,
                partition,
                reads,
                readBytes: readSectors * sectorBytes,
                readMs,
                writes,
                writtenBytes: writtenSectors * sectorBytes,
                writeMs,
                busyMs
            }
        ];
    });
}

/**
 * Reads the counters of all network interfaces; null where the kernel does not say.
 *
 * @param path - another process's view: that of its network namespace
 */
export function readInterfaces(machine: Machine, path = '/proc/net/dev'): InterfaceCounters[] | null {
    const text = machine.read(path);
    if (text === null) {
        return null;
    }
    return linesOf(text).flatMap((line) => {
        // There may be no space between a name and its first counter, and the name of an alias contains a colon.
        const match = /^\s*(\S.*?):\s*(\d+(?:\s+\d+){15})\s*$/.exec(line);
        if (match === null) {
            return [];
        }
        const [
            rxBytes = 0,
            rxPackets = 0,
            rxErrors = 0,
            rxDropped = 0,
            ,
            ,
            ,
            ,
            txBytes = 0,
            txPackets = 0,
            txErrors = 0,
            txDropped = 0
        ] = (match[2] ?? '').split(/\s+/).map(Number);
        return [
            {
                name: match[1] ?? '',
                rxBytes,
                rxPackets,
                rxErrors,
                rxDropped,
                txBytes,
                txPackets,
                txErrors,
                txDropped
            }
        ];
    });
}
