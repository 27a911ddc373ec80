/** What the installed rclone knows of its remotes: which there are, and which of their options are passwords. */
import { errors } from '@portico/sdk';

import type { Ctx } from '../settings.ts';

/** An rclone remote as a caller gives it. */
export interface RemoteInput {
    readonly type: string;
    readonly options: Readonly<Record<string, string>>;
}

interface Provider {
    readonly Name: string;
    readonly Options: readonly { readonly Name: string; readonly IsPassword: boolean }[];
}

/** They lead to files of this machine or to other remotes, or would not check the key of the host. */
const refusedTypes: ReadonlySet<string> = new Set([
    'alias',
    'cache',
    'chunker',
    'combine',
    'compress',
    'crypt',
    'hasher',
    'local',
    'memory',
    'sftp',
    'union'
]);
/** They run programs, or read files of this machine. */
const refusedOptions = /command|_file$|_path$|^ssh$|socket|env_auth|^profile$|set_env|override/;
const mostOutputBytes = 8 * 1024 * 1024;

/** Asks rclone for its backends, once for each start of the plugin. */
export class Rclone {
    readonly #ctx: Ctx;
    #known: Promise<readonly Provider[]> | null = null;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /**
     * Checks a remote, and says which of its options are passwords.
     *
     * @throws VALIDATION_FAILED 40001; TOOL_MISSING 50302
     */
    async passwordsOf({ type, options }: RemoteInput): Promise<readonly string[]> {
        const providers = await this.#providers();
        const found = providers.find(({ Name }) => Name === type);
        if (found === undefined || refusedTypes.has(type)) {
            throw invalid(
                'remote.type',
                `remote.type is a kind of remote that rclone knows, and not one of this machine: ${providers
                    .map(({ Name }) => Name)
                    .filter((name) => !refusedTypes.has(name))
                    .join(', ')}`
            );
        }
        for (const [name, value] of Object.entries(options)) {
            const path = `remote.options.${name}`;
            if (!found.Options.some(({ Name }) => Name === name) || refusedOptions.test(name)) {
                throw invalid(path, `${path} is not an option that a remote may have here`);
            }
            if (/[\r\n\0]|^["'`\s]|\s$/.test(value)) {
                throw invalid(path, `${path} is one line that begins with no quote and no space`);
            }
        }
        return found.Options.filter(({ Name, IsPassword }) => IsPassword && Name in options).map(
            ({ Name }) => Name
        );
    }

    #providers(): Promise<readonly Provider[]> {
        this.#known ??= this.#ask().catch((error: unknown) => {
            this.#known = null;
            throw error;
        });
        return this.#known;
    }

    async #ask(): Promise<readonly Provider[]> {
        const { stdout } = await this.#ctx.exec('rclone', ['config', 'providers'], {
            timeoutSeconds: 20,
            maxOutputBytes: mostOutputBytes
        });
        return JSON.parse(stdout) as readonly Provider[];
    }
}

function invalid(path: string, message: string): Error {
    return errors.invalid([{ path, message }]);
}
