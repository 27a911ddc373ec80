/** Finds the plugin that code belongs to, by the files on the stack. */
import { relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A function on the stack. `line` counts from 1. */
export interface Frame {
    readonly url: string;
    readonly line: number;
}

/** A plugin, and where in its package the code is, such as `src/index.ts:12`. */
export interface Culprit {
    readonly plugin: string;
    readonly place: string;
}

/** The plugin of a file; null for code of the panel. @param plugins - names by the real path of the package */
export function culpritOf({ url, line }: Frame, plugins: ReadonlyMap<string, string>): Culprit | null {
    if (!url.startsWith('file:')) {
        return null;
    }
    const file = fileURLToPath(url);
    for (const [folder, plugin] of plugins) {
        if (file.startsWith(folder + sep)) {
            return { plugin, place: `${relative(folder, file)}:${line}` };
        }
    }
    return null;
}

/** The innermost plugin on a stack: code of the panel or of a library that it calls is counted as the plugin's. */
export function culpritOn(stack: readonly Frame[], plugins: ReadonlyMap<string, string>): Culprit | null {
    for (const frame of stack) {
        const found = culpritOf(frame, plugins);
        if (found !== null) {
            return found;
        }
    }
    return null;
}
