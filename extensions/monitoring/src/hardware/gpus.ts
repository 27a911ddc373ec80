/** Graphics processors of NVIDIA, as `nvidia-smi` sees them. Those of others have sensors of the kernel. */
import { isFailure } from '@portico/sdk';

import type { Machine } from '../machine.ts';
import type { Ctx } from '../settings.ts';

/** One graphics processor; null where it does not say. */
export interface Gpu {
    /** Its number. */
    readonly name: string;
    readonly model: string;
    readonly state: 'ok' | 'unknown';
    /** Percent. */
    readonly usage: number | null;
    /** Bytes. */
    readonly memoryUsed: number | null;
    readonly memoryTotal: number | null;
    /** Degrees Celsius. */
    readonly temperature: number | null;
    /** Watts. */
    readonly power: number | null;
}

const fields = [
    'index',
    'name',
    'utilization.gpu',
    'memory.used',
    'memory.total',
    'temperature.gpu',
    'power.draw'
];
const askSeconds = 20;
const mebibyte = 1024 * 1024;
const vendor = '0x10de';
const toolMissing = 50302;

/** Says whether the machine has a graphics processor of NVIDIA, by its class on the bus. */
export function hasGpu(machine: Machine): boolean {
    const root = '/sys/bus/pci/devices';
    return machine
        .list(root)
        .some(
            (name) =>
                machine.read(`${root}/${name}/vendor`)?.trim() === vendor &&
                machine.read(`${root}/${name}/class`)?.startsWith('0x03') === true
        );
}

/** Asks for all graphics processors. @returns null where nvidia-smi is not installed */
export async function askGpus(ctx: Ctx, signal: AbortSignal): Promise<Gpu[] | null> {
    try {
        const { code, stdout } = await ctx.exec(
            'nvidia-smi',
            [`--query-gpu=${fields.join(',')}`, '--format=csv,noheader,nounits'],
            { timeoutSeconds: askSeconds, signal }
        );
        return code === 0 ? parseGpus(stdout) : [];
    } catch (error) {
        if (isFailure(error) && error.code === toolMissing) {
            return null;
        }
        throw error;
    }
}

/** Reads the lines of nvidia-smi. What a card does not measure is `[N/A]` or `[Not Supported]`. */
export function parseGpus(text: string): Gpu[] {
    return text.split('\n').flatMap((line): Gpu[] => {
        const parts = line.split(',').map((part) => part.trim());
        const [name = '', model = '', ...numbers] = parts;
        if (parts.length !== fields.length || !/^\d+$/.test(name)) {
            return [];
        }
        const [usage, used, total, temperature, power] = numbers.map((part) =>
            /^\d+(?:\.\d+)?$/.test(part) ? Number(part) : null
        );
        const bytes = (value: number | null | undefined): number | null =>
            value == null ? null : value * mebibyte;
        return [
            {
                name,
                model: model.slice(0, 100),
                state: usage == null && temperature == null ? 'unknown' : 'ok',
                usage: usage ?? null,
                memoryUsed: bytes(used),
                memoryTotal: bytes(total),
                temperature: temperature ?? null,
                power: power ?? null
            }
        ];
    });
}
