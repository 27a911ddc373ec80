/** One run of a service's program: started by this supervisor, or by one before it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, constants, openSync, readFileSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';

import {
    type ControlGroup,
    GroupUnavailable
} from '../../../platform/process/control-group/control-group.ts';
import { ControlGroups } from '../../../platform/process/control-group/control-groups.ts';
import { findHierarchies, type Hierarchy } from '../../../platform/process/control-group/hierarchy.ts';
import { identify, isAlive, type ProcessIdentity } from '../../../platform/process/process-identity.ts';
import type { ServiceCommand, ServiceExit } from '../../port.ts';
import { filesFolder, removeFiles, writeFiles } from '../private-files.ts';
import type { RunRecord, Spec, Store } from '../store.ts';
import { findDescendants, marker } from './descendants.ts';
import type { OutputLog } from './output-log.ts';

/** Names the present boot of the machine. */
export const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();

/** Tells one command from another. */
export function commandHash(command: ServiceCommand): string {
    return createHash('sha256').update(JSON.stringify(command)).digest('hex').slice(0, 16);
}

const pollMs = 20;
/** How often a process that this supervisor did not start is looked at. */
const adoptedPollMs = 250;
const killMs = 5_000;
/**
 * Waits for a line on descriptor 3 before it becomes the program. A supervisor that is killed before it has written down which process this is
 * closes the descriptor, and then the program never starts. So no program runs that the supervisor's files do not name.
 */
const gate = 'read -r PORTICO_GO <&3 || exit 0; exec "$@" 3<&-';
/** The descriptor of the gate. */
const gated = 3;

/** What a run is made of. */
export interface RunParts {
    readonly spec: Spec;
    readonly store: Store;
    readonly log: OutputLog;
}

/** A running program with all its descendants. */
export class Run {
    readonly record: RunRecord;
    /** How the program itself ended. */
    readonly ended: Promise<ServiceExit>;
    readonly #parts: RunParts;
    readonly #outputs: readonly Output[];

    private constructor(record: RunRecord, ended: Promise<ServiceExit>, parts: RunParts) {
        this.record = record;
        this.ended = ended;
        this.#parts = parts;
        this.#outputs = (['stdout', 'stderr'] as const).map(
            (stream) => new Output(parts.store.pipe(stream), stream, parts.log)
        );
    }

    /**
     * Starts the program.
     * @param recorded - writes down which process it is, before the program begins
     * @throws Error when it cannot be started
     */
    static async start(parts: RunParts, recorded: (record: RunRecord) => void): Promise<Run> {
        const { command } = parts.spec;
        const hierarchies = findHierarchies();
        await new ControlGroups(() => hierarchies).end(groupName(parts.spec));
        const group = await makeGroup(hierarchies, parts.spec);
        try {
            writeFiles(parts.spec);
            const child = await spawnGated(parts);
            const ended = new Promise<ServiceExit>((resolve) =>
                child.once('exit', (code, signal) => {
                    const limit = group?.ranOutOfMemory() === true ? ({ limit: 'memory' } as const) : {};
                    resolve({ code, signal, ...limit, at: Date.now() });
                })
            );
            const go = child.stdio[gated] as Writable;
            go.on('error', () => undefined);
            try {
                const identity = identify(child.pid);
                if (identity === null) {
                    throw new Error('The program was ended before it began');
                }
                await group?.add(child.pid);
                const record = {
                    ...identity,
                    boot: bootId,
                    startedAt: Date.now(),
                    command: commandHash(command),
                    hierarchies
                };
                recorded(record);
                const run = new Run(record, ended, parts);
                go.end('\n');
                return run;
            } catch (error) {
                go.destroy();
                await ended;
                throw error;
            }
        } catch (error) {
            removeFiles(parts.spec);
            await group?.remove();
            throw error;
        }
    }

    /** The run that an earlier supervisor wrote down; null when that process has ended. */
    static adopt(parts: RunParts, record: RunRecord): Run | null {
        return record.boot === bootId && isAlive(record) ? new Run(record, endOf(record), parts) : null;
    }

    /** Signals the program itself. False when it has ended. */
    signal(name: NodeJS.Signals): boolean {
        return signal(this.record, name);
    }

    /** Asks the program to end, and kills it when it does not, with all its descendants. @throws Error when processes are left */
    async stop(name: NodeJS.Signals, graceMs: number): Promise<void> {
        this.signal(name);
        this.signal('SIGCONT');
        const timer = new AbortController();
        await Promise.race([
            this.ended,
            wait(graceMs, undefined, { signal: timer.signal }).catch(() => undefined)
        ]);
        timer.abort();
        await this.clear();
    }

    /** Kills whatever is left of the run, and takes the rest of its output. @throws Error when processes are left */
    async clear(): Promise<void> {
        await killRun(this.#parts, this.record.hierarchies, this.#session());
        await Promise.all(this.#outputs.map((output) => output.end()));
    }

    /** Lets go of the pipes. The program goes on. */
    release(): void {
        this.#outputs.forEach((output) => output.close());
    }

    /** The program's session. The kernel gives its number to another process only when no process of the session is left. */
    #session(): number | null {
        const now = identify(this.record.pid);
        return now === null || now.ticks === this.record.ticks ? this.record.pid : null;
    }
}

/**
 * Kills what a run left behind whose program ended while there was no supervisor. Only what is proven to belong to it: its session may be another
 * one by now.
 */
export async function killLeftBehind(
    parts: Pick<RunParts, 'spec' | 'store'>,
    record: RunRecord | null
): Promise<void> {
    await killRun(parts, record?.boot === bootId ? record.hierarchies : findHierarchies(), null);
}

/** Starts the program behind the gate. */
async function spawnGated({ spec, store }: RunParts): Promise<ChildProcess & { readonly pid: number }> {
    const { command, mark } = spec;
    const { path, args, env, account } = command;
    const cwd = command.privateFiles === undefined ? command.cwd : filesFolder(mark);
    store.makePipes(spec);
    // Opened for reading too, so that a pipe without a reader is never an error for the program while there is no supervisor.
    const pipes = (['stdout', 'stderr'] as const).map((stream) =>
        openSync(store.pipe(stream), constants.O_RDWR)
    );
    try {
        const child = spawn('/bin/sh', ['-c', gate, 'portico-service', path, ...args], {
            cwd,
            env: { HOME: cwd, ...env, [marker]: mark },
            detached: true,
            stdio: ['ignore', ...pipes, 'pipe'],
            ...(account === null ? {} : { uid: account.uid, gid: account.gid })
        });
        await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
        return child as ChildProcess & { readonly pid: number };
    } finally {
        pipes.forEach(closeSync);
    }
}

/** The control group of a run: it names all its processes, and holds them to its limits. Null where there is none, and no limit was asked for. */
async function makeGroup(hierarchies: readonly Hierarchy[], spec: Spec): Promise<ControlGroup | null> {
    const { limits } = spec.command;
    try {
        return await new ControlGroups(() => hierarchies).create(limits, groupName(spec));
    } catch (error) {
        if (error instanceof GroupUnavailable && Object.keys(limits).length === 0) {
            return null;
        }
        throw error;
    }
}

function groupName({ mark }: Spec): string {
    return `portico-service-${mark}`;
}

async function killRun(
    { spec, store }: Pick<RunParts, 'spec' | 'store'>,
    hierarchies: readonly Hierarchy[],
    session: number | null
): Promise<void> {
    await new ControlGroups(() => hierarchies).end(groupName(spec));
    const belonging = { mark: spec.mark, pipes: [store.pipe('stdout'), store.pipe('stderr')], session };
    const end = performance.now() + killMs;
    for (;;) {
        const left = findDescendants(belonging);
        if (left.length === 0) {
            removeFiles(spec);
            return;
        }
        left.forEach((identity) => signal(identity, 'SIGKILL'));
        if (performance.now() > end) {
            throw new Error(`The processes ${left.map(({ pid }) => pid).join(', ')} do not end`);
        }
        await wait(pollMs);
    }
}

/** Signals that very process. False when it has ended. */
function signal(identity: ProcessIdentity, name: NodeJS.Signals): boolean {
    if (!isAlive(identity)) {
        return false;
    }
    try {
        return process.kill(identity.pid, name);
    } catch {
        return false;
    }
}

/** The end of a process that is no child of ours: how it ended is not known. */
async function endOf(identity: ProcessIdentity): Promise<ServiceExit> {
    while (isAlive(identity)) {
        await wait(adoptedPollMs, undefined, { ref: false });
    }
    return { code: null, signal: null, at: Date.now() };
}

/** Reads one pipe of a run. */
class Output {
    readonly #socket: Socket;
    readonly #closed: Promise<unknown>;

    constructor(path: string, stream: 'stdout' | 'stderr', log: OutputLog) {
        const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
        const socket = new Socket({ fd: descriptor, readable: true, writable: false });
        this.#socket = socket;
        this.#closed = new Promise((resolve) => socket.once('close', resolve));
        socket.on('error', () => undefined);
        socket.on('data', (bytes) => {
            log.add(stream, bytes);
            const { busy } = log;
            if (busy !== null) {
                socket.pause();
                void busy.then(() => socket.resume());
            }
        });
    }

    /** Reads what is left. Resolves when the pipe has no writer any more, or soon after. */
    async end(): Promise<void> {
        await Promise.race([this.#closed, wait(killMs, undefined, { ref: false })]);
        this.close();
    }

    close(): void {
        this.#socket.destroy();
    }
}
