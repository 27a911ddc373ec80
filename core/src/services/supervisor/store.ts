/** What the supervisor keeps of one service on the disk. */
import { execFileSync } from 'node:child_process';
import {
    closeSync,
    constants,
    fdatasyncSync,
    fsyncSync,
    lchownSync,
    lstatSync,
    mkdirSync,
    openSync,
    readFileSync,
    renameSync,
    rmSync,
    writeFileSync,
    writeSync
} from 'node:fs';
import { dirname, join } from 'node:path';

import type { Hierarchy } from '../../platform/process/control-group/hierarchy.ts';
import type { ServiceCommand, ServiceExit } from '../port.ts';

/** What defines a service. */
export interface Spec {
    /** A secret of this service: each of its processes carries it in the environment that it was started with. */
    readonly mark: string;
    readonly command: ServiceCommand;
}

/** Which process a run is: its id means something only together with its start and with the boot of the machine. */
export interface RunRecord {
    readonly boot: string;
    readonly pid: number;
    readonly ticks: number;
    /** Milliseconds since 1970. */
    readonly startedAt: number;
    /** Hash of the command that it was started with. */
    readonly command: string;
    /** Where its control group was made. */
    readonly hierarchies: readonly Hierarchy[];
}

/** What changes while a service runs. */
export interface State {
    /** An admin or plugin wants it to run. */
    readonly wanted: boolean;
    /** The boot of the machine in which its policy was fulfilled, `ever` for all boots; null: it is to run. */
    readonly done: string | null;
    readonly run: RunRecord | null;
    readonly exits: number;
    readonly lastExit: ServiceExit | null;
    readonly failures: number;
}

/** A service that was never started. */
export const newState: State = {
    wanted: true,
    done: null,
    run: null,
    exits: 0,
    lastExit: null,
    failures: 0
};

/** Bytes of the state file. It is always that long and is overwritten in place, which needs no free space. */
const stateBytes = 4096;
const draftMark = '.draft';
const goneMark = '.gone';

/** Whether a folder is what a crash left behind in the middle of a change. */
export function isLeftover(folder: string): boolean {
    return folder.endsWith(draftMark) || folder.endsWith(goneMark);
}

/** The folder of one service. */
export class Store {
    #folder: string;

    constructor(folder: string) {
        this.#folder = folder;
    }

    /** Where it is. */
    get folder(): string {
        return this.#folder;
    }

    /** Where lines of its output are kept. */
    get outputFile(): string {
        return join(this.folder, 'output.log');
    }

    /** The two named pipes of its output. */
    pipe(stream: 'stdout' | 'stderr'): string {
        return join(this.folder, stream);
    }

    /** Makes the folder with everything in it, or changes the command. Durable when it returns. @throws ENOSPC, and nothing changed */
    create(spec: Spec): void {
        if (lstatSync(this.folder, { throwIfNoEntry: false }) !== undefined) {
            this.#writeSpec(spec);
            return;
        }
        const draft = new Store(`${this.folder}${draftMark}`);
        rmSync(draft.folder, { recursive: true, force: true });
        mkdirSync(draft.folder, { mode: 0o700 });
        try {
            draft.#writeSpec(spec);
            draft.writeState(newState);
            draft.makePipes(spec);
            renameSync(draft.folder, this.folder);
        } catch (error) {
            rmSync(draft.folder, { recursive: true, force: true });
            throw error;
        }
        syncFolder(dirname(this.folder));
    }

    /** Makes the pipes where they are missing. Their owner is the service's account, which may want to open `/dev/stdout`. */
    makePipes({ command: { account } }: Spec): void {
        const paths = [this.pipe('stdout'), this.pipe('stderr')];
        const missing = paths.filter((path) => lstatSync(path, { throwIfNoEntry: false })?.isFIFO() !== true);
        if (missing.length > 0) {
            missing.forEach((path) => rmSync(path, { recursive: true, force: true }));
            execFileSync('mkfifo', ['-m', '600', '--', ...missing], { stdio: 'pipe' });
        }
        if (account !== null && process.getuid?.() === 0) {
            paths.forEach((path) => lchownSync(path, account.uid, account.gid));
        }
    }

    /** @throws SyntaxError or ENOENT when there is none that can be read */
    readSpec(): Spec {
        return JSON.parse(readFileSync(join(this.folder, 'spec.json'), 'utf8')) as Spec;
    }

    /** The state; that of a new service when it cannot be read. */
    readState(): State {
        try {
            return JSON.parse(readFileSync(join(this.folder, 'state.json'), 'utf8')) as State;
        } catch {
            return newState;
        }
    }

    /** Durable when it returns. */
    writeState(state: State): void {
        const text = JSON.stringify(state).padEnd(stateBytes - 1);
        const file = openSync(join(this.folder, 'state.json'), constants.O_RDWR | constants.O_CREAT, 0o600);
        try {
            writeSync(file, `${text}\n`, 0);
            fdatasyncSync(file);
        } finally {
            closeSync(file);
        }
    }

    /** Moves everything to another folder of the same disk. */
    move(folder: string): void {
        renameSync(this.folder, folder);
        this.#folder = folder;
        syncFolder(dirname(folder));
    }

    /** Forgets the service. A crash in between leaves a folder that `isLeftover` names. */
    remove(): void {
        const gone = `${this.folder}${goneMark}`;
        if (lstatSync(this.folder, { throwIfNoEntry: false }) !== undefined) {
            rmSync(gone, { recursive: true, force: true });
            renameSync(this.folder, gone);
            syncFolder(dirname(this.folder));
        }
        rmSync(gone, { recursive: true, force: true });
    }

    #writeSpec(spec: Spec): void {
        const path = join(this.folder, 'spec.json');
        const next = `${path}.next`;
        try {
            writeFileSync(next, JSON.stringify(spec), { mode: 0o600, flush: true });
        } catch (error) {
            rmSync(next, { force: true });
            throw error;
        }
        renameSync(next, path);
        syncFolder(this.folder);
    }
}

function syncFolder(path: string): void {
    const folder = openSync(path, constants.O_RDONLY);
    try {
        fsyncSync(folder);
    } finally {
        closeSync(folder);
    }
}
