/** The drives of the machine, and what they say of themselves. */
import { isFailure, messageOf } from '@portico/sdk';

import type { Machine } from '../machine.ts';
import type { Ctx } from '../settings.ts';
import { type DriveHealth, parseSmart } from './smart.ts';

/** One drive of the machine, with its health. */
export interface Drive extends DriveHealth {
    /** As the kernel calls it: `sda`, `nvme0n1`. */
    readonly name: string;
    /** Bytes. */
    readonly size: number | null;
    readonly kind: 'ssd' | 'hdd' | 'unknown';
}

const noHealth: DriveHealth = {
    state: 'unknown',
    message: null,
    model: null,
    serial: null,
    temperature: null,
    wear: null,
    poweredHours: null,
    reallocatedSectors: null,
    pendingSectors: null
};
/** A drive that hangs must not hold up the others for longer. */
const askSeconds = 20;
const mostDrives = 100;
const sectorBytes = 512;
const toolMissing = 50302;
/** Optical drives, floppy drives, and the hidden paths of NVMe. */
const others = /^(?:sr|fd|nvme\d+c\d+n)\d+/;

/** Lists the drives that the kernel found, without what it makes of them: partitions, arrays, volumes, loops. */
export function listDrives(machine: Machine): Drive[] {
    return machine
        .list('/sys/block')
        .filter((name) => /^[a-z0-9]{1,30}$/.test(name) && !others.test(name))
        .filter((name) => machine.list(`/sys/block/${name}/device`).length > 0)
        .sort()
        .slice(0, mostDrives)
        .map((name) => {
            const sectors = Number(machine.read(`/sys/block/${name}/size`) ?? Number.NaN);
            const rotates = machine.read(`/sys/block/${name}/queue/rotational`)?.trim();
            return {
                ...noHealth,
                name,
                size: Number.isFinite(sectors) ? sectors * sectorBytes : null,
                kind: rotates === '1' ? 'hdd' : rotates === '0' ? 'ssd' : 'unknown',
                model: machine.read(`/sys/block/${name}/device/model`)?.trim() || null
            };
        });
}

/**
 * Asks each drive how it is, one after the other. A drive that sleeps is not woken up, and keeps its last values.
 *
 * @param before - what was known
 * @returns null where smartctl is not installed
 */
export async function askDrives(
    ctx: Ctx,
    machine: Machine,
    before: readonly Drive[],
    signal: AbortSignal
): Promise<Drive[] | null> {
    const asked: Drive[] = [];
    for (const drive of listDrives(machine)) {
        const health = await askDrive(ctx, drive.name, signal);
        if (health === null) {
            return null;
        }
        const known = before.find(({ name }) => name === drive.name);
        const last = health.state === 'standby' && known !== undefined ? known : drive;
        asked.push({
            ...last,
            ...Object.fromEntries(Object.entries(health).filter(([, value]) => value !== null)),
            message: health.message
        });
    }
    return asked;
}

async function askDrive(ctx: Ctx, name: string, signal: AbortSignal): Promise<DriveHealth | null> {
    try {
        const { stdout, timedOut } = await ctx.exec(
            'smartctl',
            ['--json', '--all', '--nocheck=standby', `/dev/${name}`],
            { timeoutSeconds: askSeconds, signal }
        );
        // The exit code is a set of bits that says the same as the text.
        return timedOut
            ? { ...noHealth, message: `It did not answer in ${askSeconds} seconds` }
            : (parseSmart(stdout) ?? { ...noHealth, message: 'smartctl gave no answer that can be read' });
    } catch (error) {
        if (isFailure(error) && error.code === toolMissing) {
            return null;
        }
        signal.throwIfAborted();
        return { ...noHealth, message: messageOf(error) };
    }
}
