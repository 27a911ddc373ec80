/** A machine whose clocks and files a test sets. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { createMachine, type Machine, type Space } from '../../../extensions/monitoring/src/machine.ts';
import { until } from '../../support/until.ts';

/** A folder with a copy of parts of `/proc`, `/sys` and a few more. */
export const snapshot = (name: string): string =>
    fileURLToPath(new URL(`sampling/snapshots/${name}`, import.meta.url));

const usual: Space = { total: 1_000_000, free: 400_000, available: 300_000, inodes: 1_000, inodesFree: 900 };

export class TestMachine implements Machine {
    /** Milliseconds since 1970. */
    time = Date.parse('2026-03-01T12:00:00.100Z');
    /** The clock that does not jump. */
    steady = 5_000;
    /** Files that differ from the snapshot; null: absent. */
    readonly files = new Map<string, string | null>();
    /** By mount point; a promise may stay open. */
    readonly spaces = new Map<string, Space | Promise<Space>>();
    #machine: Machine;
    #due: { readonly milliseconds: number; readonly resolve: () => void } | null = null;
    #idle: () => void = () => undefined;

    constructor(folder: string = snapshot('first')) {
        this.#machine = createMachine(folder);
    }

    use(folder: string): void {
        this.#machine = createMachine(folder);
    }

    read(path: string): string | null {
        return this.files.has(path) ? (this.files.get(path) ?? null) : this.#machine.read(path);
    }

    async load(path: string): Promise<string | null> {
        return this.files.has(path) ? (this.files.get(path) ?? null) : this.#machine.load(path);
    }

    list(path: string): readonly string[] {
        return this.#machine.list(path);
    }

    folders(path: string): readonly string[] {
        return this.#machine.folders(path);
    }

    link(path: string): string | null {
        return this.#machine.link(path);
    }

    owner(): number {
        return 33;
    }

    async space(mount: string): Promise<Space> {
        return this.spaces.get(mount) ?? usual;
    }

    now(): number {
        return this.time;
    }

    monotonic(): number {
        return this.steady;
    }

    pass(milliseconds: number): void {
        this.time += milliseconds;
        this.steady += milliseconds;
    }

    wait(milliseconds: number, signal: AbortSignal): Promise<void> {
        return new Promise((resolve, reject) => {
            this.#due = { milliseconds, resolve };
            signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
            this.#idle();
        });
    }

    /** Lets time pass until the next sample is due, and waits for it to be taken. Returns how long that was. */
    async tick(): Promise<number> {
        const due = await until(() => this.#due, 'the monitor to wait for the next sample', 60_000);
        this.#due = null;
        const idle = new Promise<void>((resolve) => {
            this.#idle = resolve;
        });
        this.pass(due.milliseconds);
        due.resolve();
        await idle;
        return due.milliseconds;
    }
}

/** Waits until a process has used so many more seconds of processor time, however long that takes. */
export async function worked(pid: number | undefined, seconds: number): Promise<void> {
    const used = (): number => {
        const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
            .replace(/^.*\)\s/s, '')
            .split(' ');
        return (Number(fields[11]) + Number(fields[12])) / 100;
    };
    const before = used();
    await until(() => used() - before >= seconds, 'the process to work', 60_000);
}

/** The memory of the snapshot with another part of it used. */
export function memoryOf(usedPercent: number): string {
    return `MemTotal: 1000000 kB\nMemFree: 1 kB\nMemAvailable: ${Math.round((100 - usedPercent) * 10_000)} kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n`;
}
