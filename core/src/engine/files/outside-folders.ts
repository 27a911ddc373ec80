/** The engine's folders outside of data folders: which data folder each belongs to. Their names are hashes, so each has a note with the path. */
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** One folder below `/var/lib/portico` or `/run/portico`. */
export interface OutsideFolder {
    readonly path: string;
    /** Real path of its data folder; null when the panel that made it wrote no note. */
    readonly dataDir: string | null;
    /** `gone`: the data folder does not exist, and no process uses the folder. */
    readonly state: 'used' | 'gone' | 'unknown';
}

/** Where the engine's folders are when the panel runs as root. */
export const outsideRoots = { persistent: '/var/lib/portico', runtime: '/run/portico' } as const;

const noteName = 'data-folder';

/** The name of the folders of a data folder. @param dataDir - real path */
export function hashOf(dataDir: string): string {
    return createHash('sha256').update(dataDir).digest('hex').slice(0, 16);
}

/** Notes which data folder one of the engine's folders belongs to. */
export function noteDataFolder(folder: string, dataDir: string): void {
    writeFileSync(join(folder, noteName), dataDir, { mode: 0o600 });
}

/** All folders below the roots. */
export function listOutsideFolders(roots: readonly string[]): readonly OutsideFolder[] {
    return roots.flatMap((root) =>
        namesIn(root)
            .filter((name) => /^[0-9a-f]{16}$/.test(name))
            .map((name) => describe(join(root, name), name))
    );
}

/** Removes the folders whose data folder is gone. @returns those that were removed */
export function removeGoneFolders(roots: readonly string[]): readonly string[] {
    const gone = listOutsideFolders(roots).filter(({ state }) => state === 'gone');
    gone.forEach(({ path }) => rmSync(path, { recursive: true, force: true }));
    return gone.map(({ path }) => path);
}

function describe(path: string, name: string): OutsideFolder {
    const dataDir = readText(join(path, noteName));
    if (dataDir === null || hashOf(dataDir) !== name) {
        return { path, dataDir: null, state: 'unknown' };
    }
    const isGone = lstatSync(dataDir, { throwIfNoEntry: false }) === undefined && !isInUse(name);
    return { path, dataDir, state: isGone ? 'gone' : 'used' };
}

/** An engine has the path of its start file among its arguments, also when the data folder was deleted under it. */
function isInUse(name: string): boolean {
    return namesIn('/proc').some(
        (pid) => /^\d+$/.test(pid) && readText(`/proc/${pid}/cmdline`)?.includes(`/${name}/`) === true
    );
}

function namesIn(folder: string): readonly string[] {
    try {
        return readdirSync(folder);
    } catch {
        return [];
    }
}

function readText(file: string): string | null {
    try {
        return readFileSync(file, 'utf8');
    } catch {
        return null;
    }
}
