/**
 * Whose error is it that nobody caught? Plugins run in this process, and an exception out of a timer of theirs would end the panel. Their code
 * runs in an asynchronous context that names them, which Node hands on to every timer, promise and socket that they make, and which still
 * holds in the handlers of `uncaughtException`. Where the panel calls a listener of theirs, the file at the top of the stack tells.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Runs code of a plugin, and of the panel on its behalf. */
export interface Confine {
    /** Runs code of the plugin. */
    enter<T>(work: () => T): T;
    /** Runs code of the panel: what that starts is the panel's own. */
    leave<T>(work: () => T): T;
}

export class ErrorOwner {
    readonly #context = new AsyncLocalStorage<string | null>();
    /** Name of each plugin whose code was imported, by its folder. */
    readonly #folders = new Map<string, string>();

    /** @param folder - real path of the plugin's package */
    confine(plugin: string, folder: string): Confine {
        this.#folders.set(folder, plugin);
        return {
            enter: (work) => this.#context.run(plugin, work),
            leave: (work) => this.#context.run(null, work)
        };
    }

    /** The plugin that an error came from; null when it is the panel's own. To be asked in the handler of the uncaught error. */
    of(error: unknown): string | null {
        return this.#context.getStore() ?? this.#byStack(error);
    }

    /** Runs something outside of every plugin's context. */
    outside<T>(work: () => T): T {
        return this.#context.run(null, work);
    }

    #byStack(error: unknown): string | null {
        const top = error instanceof Error ? framesOf(error)[0] : undefined;
        return top === undefined
            ? null
            : ([...this.#folders].find(([folder]) => top.startsWith(folder + sep))?.[1] ?? null);
    }
}

const departures = new Set(['ABORT_ERR', 'ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET', 'EPIPE']);

/** It says only that somebody went away: any client could bring that about, so it ends nobody. */
export function isDeparture(error: unknown): boolean {
    const { name, code } = (typeof error === 'object' && error !== null ? error : {}) as {
        readonly name?: unknown;
        readonly code?: unknown;
    };
    return name === 'AbortError' || departures.has(String(code));
}

/** Files of a stack, the innermost first; Node's own are left out. */
function framesOf(error: Error): readonly string[] {
    return [...String(error.stack).matchAll(/\(?(file:\/\/\/[^\s)]+?)(?::\d+){1,2}\)?$/gm)].flatMap(
        ([, url = '']) => {
            try {
                return [fileURLToPath(url)];
            } catch {
                return [];
            }
        }
    );
}
