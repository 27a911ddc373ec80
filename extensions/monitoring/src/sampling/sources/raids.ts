/** Arrays of disks that the kernel keeps (md), from `/proc/mdstat`. */
import type { Machine } from '../../machine.ts';
import { linesOf } from './system.ts';

/** One software array of the kernel (`/proc/mdstat`). */
export interface RaidArray {
    /** Such as `md0`. */
    readonly name: string;
    /** Such as `raid1`; null while it is stopped. */
    readonly level: string | null;
    readonly state: 'ok' | 'degraded' | 'rebuilding' | 'failed' | 'inactive';
    readonly members: readonly string[];
    /** Members that the kernel took out. */
    readonly failedMembers: readonly string[];
    /** Disks that it should have, and those that work; null where the level has no redundancy. */
    readonly wanted: number | null;
    readonly working: number | null;
    /** Bytes. */
    readonly size: number | null;
    /** What is under way: `recovery`, `resync`, `reshape` or `check`. */
    readonly action: string | null;
    /** Percent of it. */
    readonly progress: number | null;
}

const head = /^(\S+) : (active|inactive)\s*(?:\((?:auto-)?read-only\)\s*)?(.*)$/;

/** Reads all arrays; none where the kernel keeps none. */
export function readRaids(machine: Machine): RaidArray[] {
    const found: RaidArray[] = [];
    let block: string[] = [];
    const end = (): void => {
        const array = parse(block);
        if (array !== null) {
            found.push(array);
        }
    };
    for (const line of linesOf(machine.read('/proc/mdstat'))) {
        if (/^\S/.test(line)) {
            end();
            block = [];
        }
        block.push(line);
    }
    end();
    return found;
}

function parse([first = '', ...rest]: readonly string[]): RaidArray | null {
    const [, name, activity, parts = ''] = head.exec(first) ?? [];
    if (name === undefined) {
        return null;
    }
    const words = parts.split(/\s+/).filter((word) => word !== '');
    const level = words.find((word) => !word.includes('[')) ?? null;
    const disks = words.flatMap((word) => {
        const match = /^(\S+?)\[\d+\](.*)$/.exec(word);
        return match === null ? [] : [{ name: match[1] ?? '', failed: (match[2] ?? '').includes('(F)') }];
    });
    const text = rest.join('\n');
    const [, wanted, working] = /\[(\d+)\/(\d+)\]/.exec(text) ?? [];
    const [, action, progress] =
        /\b(recovery|resync|reshape|check|repair)\s*=\s*(?:(\d+(?:\.\d+)?)%|DELAYED|PENDING|REMOTE)/.exec(
            text
        ) ?? [];
    const blocks = /^\s+(\d+) blocks/.exec(text)?.[1];
    const array = {
        name,
        level: activity === 'active' ? level : null,
        members: disks.map((disk) => disk.name),
        failedMembers: disks.filter((disk) => disk.failed).map((disk) => disk.name),
        wanted: wanted === undefined ? null : Number(wanted),
        working: working === undefined ? null : Number(working),
        size: blocks === undefined ? null : Number(blocks) * 1024,
        action: action ?? null,
        progress: progress === undefined ? null : Number(progress)
    };
    return { ...array, state: activity === 'active' ? judge(array, first) : 'inactive' };
}

function judge(
    { level, wanted, working, failedMembers, action }: Omit<RaidArray, 'state'>,
    first: string
): RaidArray['state'] {
    if (/\((?:FAILED|broken)\)|\bbroken\b/i.test(first) || (wanted !== null && working === 0)) {
        return 'failed';
    }
    if (wanted === null) {
        // Without redundancy, an array lives and dies with each of its members.
        return failedMembers.length > 0 ? 'failed' : 'ok';
    }
    const missing = wanted - (working ?? 0);
    if (missing > 0 || failedMembers.length > 0) {
        return missing > spareOf(level, wanted)
            ? 'failed'
            : action === 'recovery' || action === 'reshape'
              ? 'rebuilding'
              : 'degraded';
    }
    return 'ok';
}

/** How many disks an array can lose in the best case. */
function spareOf(level: string | null, wanted: number): number {
    const spares: Readonly<Record<string, number>> = {
        raid1: wanted - 1,
        raid4: 1,
        raid5: 1,
        raid6: 2,
        raid10: Math.floor(wanted / 2)
    };
    return spares[level ?? ''] ?? 0;
}
