/** Signals to single processes. */
import { errors } from '@portico/sdk';

import { fail } from '../errors.ts';
import type { Machine } from '../machine.ts';
import { readProcess, startOf } from '../sampling/sources/processes.ts';
import { readCpu } from '../sampling/sources/system.ts';
import type { Ctx } from '../settings.ts';
import { protectionOf } from './protected.ts';

/** The signals that can be sent. */
export const signalNames = ['TERM', 'KILL', 'INT', 'HUP', 'STOP', 'CONT', 'USR1', 'USR2'] as const;

/** One signal to one process, which is told from a later one with the same number by its start. */
export interface SignalOrder {
    readonly pid: number;
    readonly signal: (typeof signalNames)[number];
    /** RFC 3339, as the list has it. */
    readonly startedAt: string;
}

/**
 * Sends a signal to one process, never to its group. Resolves with the name of the process.
 *
 * @throws NOT_FOUND 40400; VERSION_STALE 41200 when the number belongs to another process by now; PROCESS_PROTECTED 40351;
 * SIGNAL_REFUSED 40970; TOOL_MISSING 50302
 */
export async function sendSignal(ctx: Ctx, machine: Machine, order: SignalOrder): Promise<string> {
    const { pid, signal } = order;
    compare(machine, order);
    const protection = await protectionOf(ctx, machine, pid);
    if (protection !== null) {
        throw fail.PROCESS_PROTECTED({ pid, reason: protection });
    }
    // Once more, since the question above took time.
    const name = compare(machine, order);
    const { code, stderr } = await ctx.exec('kill', ['-s', signal, '--', String(pid)], { timeoutSeconds: 5 });
    if (code !== 0) {
        if (readProcess(machine, pid) === null) {
            throw errors.notFound(`There is no process ${pid}`);
        }
        throw fail.SIGNAL_REFUSED({ pid, said: stderr.trim().slice(0, 200) });
    }
    return name;
}

function compare(machine: Machine, { pid, startedAt }: SignalOrder): string {
    const stat = readProcess(machine, pid);
    // The kernel takes the number of a thread for its whole process, so that a thread of the panel would stand for the panel.
    const leader = /^Tgid:\s+(\d+)$/m.exec(machine.read(`/proc/${pid}/status`) ?? '')?.[1];
    if (stat === null || Number(leader) !== pid) {
        throw errors.notFound(`There is no process ${pid}`);
    }
    const actual = startOf(stat, readCpu(machine)?.bootedAt ?? 0);
    if (actual === null || Date.parse(actual) !== Date.parse(startedAt)) {
        throw errors.stale(actual ?? 'unknown');
    }
    return stat.name;
}
