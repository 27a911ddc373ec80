/**
 * Finds the plugin that an uncaught error came from. Plugins run in this process, and an exception in a plugin's timer would end the panel.
 * A plugin's code runs in an asynchronous context with the plugin's name. Node passes this context to every timer, promise and socket that
 * the code makes, and it still holds in the handlers of `uncaughtException`. Where the panel calls a listener of a plugin, there is no such
 * context, and the file at the top of the stack tells the plugin.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Runs code in the context of a plugin, and code of the panel outside of it. */
export interface Confine {
    /** Runs code of the plugin. */
    enter<T>(work: () => T): T;
    /** Runs code of the panel: everything that it starts belongs to the panel. */
    leave<T>(work: () => T): T;
}

/** The contexts of all plugins, by which an error finds its owner. */
export class ErrorOwner {
    readonly #context = new AsyncLocalStorage<string | null>();
    /** Name of each plugin whose code was imported, by its folder. */
    readonly #folders = new Map<string, string>();
    readonly #imported: (plugin: string, folder: string) => void;

    /** @param imported - is told each folder before code in it runs */
    constructor(imported: (plugin: string, folder: string) => void = () => undefined) {
        this.#imported = imported;
    }

    /**
     * The context of a plugin.
     * @param folder - real path of the plugin's package
     */
    confine(plugin: string, folder: string): Confine {
        this.#folders.set(folder, plugin);
        this.#imported(plugin, folder);
        return {
            enter: (work) => this.#context.run(plugin, work),
            leave: (work) => this.#context.run(null, work)
        };
    }

    /** The plugin that an error came from; null when it is the panel's own. Call it in the handler of the uncaught error. */
    of(error: unknown): string | null {
        return this.#context.getStore() ?? this.#byStack(error);
    }

    /** The plugin whose code runs now; null when it is the panel's own. */
    running(): string | null {
        return (
            this.#context.getStore() ??
            framesOf(new Error()).reduce<string | null>((found, file) => found ?? this.#byFile(file), null)
        );
    }

    /** Runs work outside of every plugin's context. */
    outside<T>(work: () => T): T {
        return this.#context.run(null, work);
    }

    #byStack(error: unknown): string | null {
        const top = error instanceof Error ? framesOf(error)[0] : undefined;
        return top === undefined ? null : this.#byFile(top);
    }

    #byFile(file: string): string | null {
        return [...this.#folders].find(([folder]) => file.startsWith(folder + sep))?.[1] ?? null;
    }
}

const departures = new Set(['ABORT_ERR', 'ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET', 'EPIPE']);

/** Whether an error only says that the other side closed the connection. Any client can cause it, so it must not end a plugin or the panel. */
export function isDeparture(error: unknown): boolean {
    const { name, code } = (typeof error === 'object' && error !== null ? error : {}) as {
        readonly name?: unknown;
        readonly code?: unknown;
    };
    return name === 'AbortError' || departures.has(String(code));
}

/** The files of an error's stack, the innermost first, without Node's own. */
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
