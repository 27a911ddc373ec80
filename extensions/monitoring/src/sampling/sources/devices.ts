/** Counters of block devices and network interfaces. */
import type { Machine } from './machine.ts';
import { linesOf } from './system.ts';

/** Counters of a block device since the boot. The kernel counts sectors of 512 bytes, whatever the device's own are. */
export interface DeviceCounters {
    readonly name: string;
    /** `254:0`, as mounts name it. */
    readonly number: string;
    /** Part of another device, which counts the same again. */
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

/** Counters of a network interface since it came. */
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

const sectorBytes = 512;

/** Devices that never did anything have nothing to tell and are left out. */
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
        // In sysfs, a `/` of a device's name is a `!`. Without sysfs, everything is taken for a device of its own.
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

export function readInterfaces(machine: Machine): InterfaceCounters[] | null {
    const text = machine.read('/proc/net/dev');
    if (text === null) {
        return null;
    }
    return linesOf(text).flatMap((line) => {
        // A name may be glued to its first counter, and an alias has a colon of its own.
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
