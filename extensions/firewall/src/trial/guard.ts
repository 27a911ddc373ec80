/**
 * What ends a trial when the panel cannot: a service outside of the panel that waits, and then gives the ruleset of before to the kernel.
 *
 * It is made of programs that every Linux has: `find` waits by `sleep`, takes the trial's file away by `mv`, and only then runs `nft`. A
 * confirmation takes the same file away. A file can be renamed once, so exactly one of the two happens.
 */
import { errors, type Files, isFailure } from '@portico/sdk';

import type { CommandDocument } from '../ruleset/commands.ts';
import type { Ctx } from '../settings.ts';

const root = '/run';
const folder = 'portico-firewall';
const service = 'guard';
const nftSeconds = 30;

/** How far a trial came, by its files. `gone`: there are none, for instance after a boot of the machine. */
export type TrialMark = 'pending' | 'confirmed' | 'reverting' | 'reverted' | 'gone';
const marks = ['pending', 'confirmed', 'reverting', 'reverted'] as const;

/** The guard of the one trial that there can be. */
export class Guard {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Starts to wait. Resolves when the guard runs; from then on, the trial ends even if the panel dies. */
    async arm(trial: string, seconds: number, revertCommands: CommandDocument): Promise<void> {
        const files = this.#files();
        await createFolder(files);
        await write(files, nameOf(trial, 'json'), JSON.stringify(revertCommands));
        await write(files, nameOf(trial, 'pending'), '');
        await this.#start(trial, seconds);
    }

    /** Waits again with the guard of a trial that goes on, unless it runs still. */
    async rearm(trial: string, seconds: number): Promise<void> {
        const running = (await this.#ctx.services.list()).some(
            ({ name, state }) => name === service && state === 'running'
        );
        if (!running) {
            await this.#start(trial, seconds);
        }
    }

    /** Takes the trial away from the guard; false when the guard was faster. */
    async claim(trial: string): Promise<boolean> {
        try {
            await this.#files().move(nameOf(trial, 'pending'), nameOf(trial, 'confirmed'));
            return true;
        } catch (error) {
            if (isFailure(error) && error.code === 40400) {
                return false;
            }
            throw error;
        }
    }

    /** How far a trial came. */
    async mark(trial: string): Promise<TrialMark> {
        for (const mark of marks) {
            if (await exists(this.#files(), nameOf(trial, mark))) {
                return mark;
            }
        }
        return 'gone';
    }

    /** The commands that give back the ruleset of before; null when they are gone. */
    async revertCommands(trial: string): Promise<CommandDocument | null> {
        const files = this.#files();
        if (!(await exists(files, nameOf(trial, 'json')))) {
            return null;
        }
        const handle = await files.open(nameOf(trial, 'json'));
        try {
            return JSON.parse(await handle.readFile('utf8')) as CommandDocument;
        } finally {
            await handle.close();
        }
    }

    /** Ends the guard, and removes the files of its trial. */
    async disarm(trial: string): Promise<void> {
        await this.#ctx.services.remove(service);
        const files = this.#files();
        for (const kind of ['json', ...marks]) {
            if (await exists(files, nameOf(trial, kind))) {
                await files.remove(nameOf(trial, kind));
            }
        }
    }

    async #start(trial: string, seconds: number): Promise<void> {
        const path = (mark: string): string => `${root}/${nameOf(trial, mark)}`;
        const run = (...command: readonly string[]): readonly string[] => ['-exec', ...command, ';'];
        const revert = run('timeout', '-s', 'KILL', String(nftSeconds), 'nft', '-j', '-f', path('json'));
        await this.#ctx.services.put(service, {
            file: 'find',
            args: [
                path('pending'),
                '-maxdepth',
                '0',
                ...run('sleep', String(Math.max(0, Math.ceil(seconds)))),
                ...run('mv', '-T', path('pending'), path('reverting')),
                '(',
                ...revert,
                '-o',
                ...run('sleep', '1'),
                ...revert,
                ')',
                ...run('mv', '-T', path('reverting'), path('reverted'))
            ],
            restart: 'once',
            stopSeconds: 2
        });
        // One that ended stays ended when it is put again with the same options.
        await this.#ctx.services.start(service);
    }

    #files(): Files {
        return this.#ctx.files(root);
    }
}

function nameOf(trial: string, kind: string): string {
    return `${folder}/${trial}.${kind}`;
}

async function createFolder(files: Files): Promise<void> {
    try {
        await files.createFolder(folder, { mode: 0o700 });
    } catch (error) {
        if (!isFailure(error) || error.code !== errors.conflict('').code) {
            throw error;
        }
    }
}

async function write(files: Files, path: string, text: string): Promise<void> {
    const handle = await files.open(path, 'wx', 0o600);
    try {
        await handle.writeFile(text);
        await handle.sync();
    } finally {
        await handle.close();
    }
}

async function exists(files: Files, path: string): Promise<boolean> {
    try {
        await files.stat(path);
        return true;
    } catch (error) {
        if (isFailure(error) && error.code === 40400) {
            return false;
        }
        throw error;
    }
}
