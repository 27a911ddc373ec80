import { readFileSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';

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
        const last = parseConfig(readFileSync(folders.lastFile, 'utf8'));
        const { listen } = last?.['admin'] as { readonly listen?: unknown };
        return listen === adminConfig(folders)['listen'] ? { ...last, admin: adminConfig(folders) } : null;
    } catch {
        return null;
    }
};

/** Writes the text while `load` runs, and makes it the last configuration if `load` succeeds. @throws what `load` throws; errors of the file system */
export const saveWhenLoaded = async (
    folders: EngineFolders,
    text: string,
    load: () => Promise<unknown>
): Promise<void> => {
    const temporary = `${folders.lastFile}.tmp`;
    const [loaded, written] = await Promise.allSettled([load(), writeFile(temporary, text, { mode: 0o600 })]);
    if (loaded.status === 'rejected') {
        await rm(temporary, { force: true });
        throw loaded.reason;
    }

    if (written.status === 'rejected') {
        throw written.reason;
    }

    await rename(temporary, folders.lastFile);
};
