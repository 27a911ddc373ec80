/** Runs programs in sandboxes, as the account of the plugin. */
import { type Child, errors, type ExecResult, type GroupLimits, type SpawnOptions } from '@portico/sdk';

import type { Folders } from '../releases/folders.ts';
import type { Ctx } from '../settings.ts';
import { sandboxArgs, type Sandboxed } from './sandbox.ts';

/** A program to its end, and what it may use. */
export interface SandboxRun extends Omit<Sandboxed, 'accounts'> {
    readonly env: Readonly<Record<string, string>>;
    readonly limits: GroupLimits;
    /** Largest file that it may write; default: any. */
    readonly fileBytes?: number;
    readonly timeoutSeconds: number;
    readonly signal: AbortSignal;
}

/** Releases are read by the engine, too, so what programs make may be read by all. */
const umask = 0o022;
/** What bubblewrap is missing without, as a command. */
const install = 'apt-get install bubblewrap';

/** Starts programs in sandboxes. */
export class Sandboxes {
    readonly #ctx: Ctx;
    readonly #folders: Folders;

    constructor(ctx: Ctx, folders: Folders) {
        this.#ctx = ctx;
        this.#folders = folders;
    }

    /** Starts a program. @throws TOOL_MISSING 50302 without bubblewrap or the account */
    async spawn(run: SandboxRun): Promise<Child> {
        return this.#ctx.spawn('bwrap', ...(await this.#call(run))).catch(withCommand);
    }

    /** Runs a program to its end, and gives the beginning of what it prints. @throws TOOL_MISSING 50302 */
    async exec(run: SandboxRun): Promise<ExecResult> {
        return this.#ctx.exec('bwrap', ...(await this.#call(run))).catch(withCommand);
    }

    async #call(run: SandboxRun): Promise<[readonly string[], Omit<SpawnOptions, 'pty'>]> {
        const accounts = await this.#folders.prepare();
        const { name: user } = await this.#folders.account();
        const { env, limits, fileBytes, timeoutSeconds, signal, ...sandboxed } = run;
        return [
            sandboxArgs({ accounts, ...sandboxed }),
            {
                user,
                cwd: '/',
                env: { HOME: '/tmp', ...env },
                limits: { group: limits, ...(fileBytes === undefined ? {} : { fileBytes }) },
                timeoutSeconds,
                signal,
                umask
            }
        ];
    }
}

/** Says which command brings bubblewrap. */
function withCommand(error: unknown): never {
    const { code, message } = error as { code?: unknown; message?: string };
    throw code === 50302 && message?.startsWith('bwrap ') === true
        ? errors.toolMissing('bwrap', install)
        : error;
}
