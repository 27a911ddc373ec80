import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';

import { adminConfig, type EngineFolders } from '../../files/home.ts';
import type { EngineConfig } from '../../port.ts';

/** Reads a configuration; null for what is JSON but not an object. @throws SyntaxError */
export const parseConfig = (text: string): EngineConfig | null => {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)
        ? (parsed as EngineConfig)
        : null;
};

/**
 * The configuration that the engine last took. Null: there is none yet, a power failure cut it, or the data folder was moved, so that its
 * admin socket is at another path.
 */
export const readLastConfig = (folders: EngineFolders): EngineConfig | null => {
    try {
        // Where a kill came between removing the one and renaming the other, only the new one is there.
        const file = existsSync(folders.lastFile) ? folders.lastFile : temporaryOf(folders);
        const last = parseConfig(readFileSync(file, 'utf8'));
        const { listen } = last?.['admin'] as { readonly listen?: unknown };
        return listen === adminConfig(folders)['listen'] ? { ...last, admin: adminConfig(folders) } : null;
    } catch {
        return null;
    }
};

/**
 * Writes the text while `load` runs, and makes it the last configuration if `load` succeeds. Both without a thread, and without replacing a
 * file: ext4 writes the data of a file that takes another one's place at once, which lasts as long as the disk is busy.
 * @throws what `load` throws; errors of the file system
 */
export const saveWhenLoaded = async (
    folders: EngineFolders,
    text: string,
    load: () => Promise<unknown>
): Promise<void> => {
    const temporary = temporaryOf(folders);
    const loaded = load();
    // What fails meanwhile is awaited below. By the next turn of the event loop the request is on its way.
    loaded.catch(() => undefined);
    await setImmediate();
    const fault = faultOf(() => writeFileSync(temporary, text, { mode: 0o600 }));
    try {
        await loaded;
    } catch (error) {
        rmSync(temporary, { force: true });
        throw error;
    }

    if (fault !== null) {
        throw fault;
    }

    rmSync(folders.lastFile, { force: true });
    renameSync(temporary, folders.lastFile);
};

const temporaryOf = ({ lastFile }: EngineFolders): string => `${lastFile}.tmp`;

const faultOf = (work: () => void): Error | null => {
    try {
        work();
        return null;
    } catch (error) {
        return error as Error;
    }
};
