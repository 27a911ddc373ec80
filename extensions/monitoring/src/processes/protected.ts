/** Processes that no caller may send a signal to, and the units that they run in. */
import process from 'node:process';

import type { Machine } from '../machine.ts';
import { readProcess } from '../sampling/sources/processes.ts';
import type { Ctx } from '../settings.ts';

/** Says why a process is protected; null when it is not. */
export async function protectionOf(ctx: Ctx, machine: Machine, pid: number): Promise<string | null> {
    if (pid === 1) {
        return 'the first process of the machine';
    }
    if (readProcess(machine, pid)?.kernel === true) {
        return "one of the kernel's own";
    }
    if (pid === process.pid) {
        return 'the panel';
    }
    if (ancestorsOf(machine, process.pid).includes(pid)) {
        return 'one that the panel was started by';
    }
    return isEngine(machine, pid, await ctx.panel.folders()) ? 'the proxy engine' : null;
}

/** Lists the processes above one, its parent first. */
export function ancestorsOf(machine: Machine, pid: number): number[] {
    const found: number[] = [];
    let next = readProcess(machine, pid)?.parent ?? 0;
    while (next > 0 && !found.includes(next)) {
        found.push(next);
        next = readProcess(machine, next)?.parent ?? 0;
    }
    return found;
}

/** The systemd unit that a process runs in, such as `nginx.service`; null where its control group names none. */
export function unitOf(machine: Machine, pid: number): string | null {
    return unitsOf(machine, pid).findLast((name) => /\.(?:service|scope)$/.test(name)) ?? null;
}

/** Says why a unit is protected; null when it is not. The unit of the panel is, that of the engine, and those around them. */
export async function unitProtection(ctx: Ctx, machine: Machine, unit: string): Promise<string | null> {
    if (unitsOf(machine, process.pid).includes(unit)) {
        return 'the panel runs in it';
    }
    const folders = await ctx.panel.folders();
    const engine = machine
        .list('/proc')
        .filter((name) => /^\d+$/.test(name))
        .find((pid) => isEngine(machine, Number(pid), folders));
    return engine !== undefined && unitsOf(machine, Number(engine)).includes(unit)
        ? 'the proxy engine runs in it'
        : null;
}

/** The names of the control groups that a process is in, the outermost first. */
function unitsOf(machine: Machine, pid: number): string[] {
    const text = machine.read(`/proc/${pid}/cgroup`) ?? '';
    // The line of systemd: version 2, or its own hierarchy of version 1.
    const path = /^(?:0:|\d+:name=systemd):(.*)$/m.exec(text)?.[1] ?? '';
    return path.split('/').filter((name) => name !== '');
}

/** The panel starts the engine with `run --config`, and a file of the panel's own folders. */
function isEngine(machine: Machine, pid: number, folders: readonly string[]): boolean {
    const args = (machine.read(`/proc/${pid}/cmdline`) ?? '').split('\0');
    const config = args[args.indexOf('--config') + 1] ?? '';
    return (
        args.includes('run') &&
        args.includes('--config') &&
        folders.some((folder) => config.startsWith(`${folder}/`))
    );
}
