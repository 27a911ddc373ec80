/** What is known of one process beside its row in the list. */
import type { Machine } from '../machine.ts';
import type { ProcessView } from '../sampling/sources/processes.ts';
import { listPorts, type OpenPort } from './ports.ts';
import { ancestorsOf, unitOf } from './protected.ts';

/** A relative of a process. */
interface Relative {
    readonly pid: number;
    readonly name: string;
}

/** The details of one process. */
export interface ProcessDetail {
    /** From its parent up to the first process. */
    readonly parents: Relative[];
    readonly children: Relative[];
    /** Null where they may not be seen. */
    readonly openFiles: number | null;
    /** Bytes since it started; null where they may not be seen. */
    readonly io: { readonly readBytes: number; readonly writeBytes: number } | null;
    readonly ports: OpenPort[];
    readonly unit: string | null;
}

/** Reads the details of one process. @param all - the list that it was found in */
export async function readDetail(
    machine: Machine,
    pid: number,
    all: readonly ProcessView[]
): Promise<ProcessDetail> {
    const names = new Map(all.map((each) => [each.pid, each.name]));
    const open = machine.list(`/proc/${pid}/fd`);
    return {
        parents: ancestorsOf(machine, pid).map((each) => ({ pid: each, name: names.get(each) ?? '' })),
        children: all
            .filter(({ parent }) => parent === pid)
            .map(({ pid: child, name }) => ({ pid: child, name })),
        openFiles: open.length === 0 ? null : open.length,
        io: readIo(machine, pid),
        ports: (await listPorts(machine)).filter((each) => each.pid === pid),
        unit: unitOf(machine, pid)
    };
}

function readIo(machine: Machine, pid: number): ProcessDetail['io'] {
    const text = machine.read(`/proc/${pid}/io`) ?? '';
    const [read, write] = ['read_bytes', 'write_bytes'].map(
        (key) => new RegExp(`^${key}: (\\d+)$`, 'm').exec(text)?.[1]
    );
    return read === undefined || write === undefined
        ? null
        : { readBytes: Number(read), writeBytes: Number(write) };
}
