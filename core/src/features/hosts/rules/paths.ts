/**
 * Where a path of a host leads, and whether that belongs to the panel or its engine. Links are followed part by part, so that a path that
 * does not exist yet is judged by the folder in which it would be created.
 */
import { execFile } from 'node:child_process';
import { lstatSync, readlinkSync, statSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';

const mostLinks = 40;

/** The meaning of these paths depends on the process that opens them: the panel cannot judge them for the engine. */
const perProcess = ['/proc', '/sys', '/dev'];

/** Follows every link of an absolute path. Null for a loop of links, or a place that each process sees differently. */
export function resolvePath(path: string): string | null {
    let links = 0;
    let resolved = '/';
    const rest = path.split('/').filter((part) => part !== '' && part !== '.');
    while (rest.length > 0) {
        const part = rest.shift() ?? '';
        if (part === '..') {
            resolved = join(resolved, '..');
            continue;
        }
        const next = join(resolved, part);
        if (perProcess.includes(next)) {
            return null;
        }
        const target = linkTarget(next);
        if (target === null) {
            resolved = next;
            continue;
        }
        links += 1;
        if (links > mostLinks) {
            return null;
        }
        rest.unshift(...target.split('/').filter((piece) => piece !== '' && piece !== '.'));
        if (target.startsWith('/')) {
            resolved = '/';
        }
    }
    return resolved;
}

function linkTarget(path: string): string | null {
    try {
        return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true
            ? readlinkSync(path)
            : null;
    } catch {
        // The panel may not enter this folder. A process that may sees no more of the panel through it than through any other path.
        return null;
    }
}

/** Whether `path` is `folder` or lies below it. Both must be resolved. */
export function isWithin(path: string, folder: string): boolean {
    return path === folder || path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`);
}

/** The places that no host may lead to. */
export interface ForbiddenPlaces {
    /** The data folder and the engine's folders; absolute paths. */
    readonly folders: readonly string[];
    /** Sockets that no host may dial: the engine's admin socket. */
    readonly sockets: readonly string[];
    /**
     * Says why another user may write into a folder, `missing` for none, null when only the panel's user and root may. Where the engine runs as
     * the panel's own user, and so can read what the panel can; null where it has a user of its own.
     */
    readonly foreignWriter: ((folder: string) => string | null) | null;
}

/** Why a folder may not be served, or null. A folder above a forbidden one is refused too: it would serve it. */
export function folderFault(path: string, places: ForbiddenPlaces): string | null {
    const resolved = resolvePath(path);
    if (resolved === null) {
        return 'leads to a place that cannot be judged: /proc, /sys, /dev, or a loop of links';
    }
    const folders = resolvedFolders(places);
    if (folders.some((folder) => isWithin(resolved, folder))) {
        return 'leads into the folders of the panel or of its engine';
    }
    if (folders.some((folder) => isWithin(folder, resolved))) {
        return 'holds the folders of the panel or of its engine';
    }
    const writer = places.foreignWriter === null ? null : writerOf(resolved, places.foreignWriter);
    return writer === null
        ? null
        : `is not safe here: ${writer}, and a link in it would lead to the keys of the panel, as whose user the engine runs`;
}

/** Who besides the panel's user could put a link into a folder, or another folder in its place; null when none can, or where nothing is. */
function writerOf(folder: string, foreignWriter: (path: string) => string | null): string | null {
    for (let at = folder, isSticky = false; ; at = dirname(at)) {
        const fault: string | null = isSticky ? null : foreignWriter(at);
        if (fault !== null && fault !== 'missing') {
            return `${at}: ${fault}`;
        }
        if (at === '/') {
            return null;
        }
        isSticky = fault === null && keepsNames(dirname(at));
    }
}

/** Whether the entries of a folder can be renamed by their owners alone. */
function keepsNames(folder: string): boolean {
    return ((statSync(folder, { throwIfNoEntry: false })?.mode ?? 0) & 0o1000) !== 0;
}

/** Why a file or socket may not be used, or null. */
export function fileFault(path: string, places: ForbiddenPlaces): string | null {
    const resolved = resolvePath(path);
    if (resolved === null) {
        return 'leads to a place that cannot be judged: /proc, /sys, /dev, or a loop of links';
    }
    if (resolvedFolders(places).some((folder) => isWithin(resolved, folder))) {
        return 'leads into the folders of the panel or of its engine';
    }
    // A second name (a hard link, a bind mount) leads to the same socket. A socket that does not exist yet has only its path.
    const file = identity(resolved);
    return places.sockets.some(
        (socket) =>
            socket === path ||
            resolvePath(socket) === resolved ||
            (file !== null && identity(socket) === file)
    )
        ? "is the engine's own admin socket"
        : null;
}

function resolvedFolders(places: ForbiddenPlaces): readonly string[] {
    return [...places.folders.map((folder) => resolvePath(folder) ?? folder), ...places.folders];
}

function identity(path: string): string | null {
    try {
        const stats = statSync(path, { throwIfNoEntry: false });
        return stats === undefined ? null : `${stats.dev}:${stats.ino}`;
    } catch {
        return null;
    }
}

/** Tells why the engine's user cannot serve a folder; null when it can. */
export type Readable = (folder: string) => Promise<string | null>;

const probeTimeoutMs = 3_000;

/** Makes a {@link Readable} that asks the kernel as the engine's user, so that owner, groups, access lists and mounts all count. */
export function createReadable(user: {
    readonly name: string;
    readonly uid: number;
    readonly gid: number;
    readonly switched: boolean;
}): Readable {
    const identityOptions = user.switched ? { uid: user.uid, gid: user.gid } : {};
    const test = (...expression: readonly string[]): Promise<boolean | null> =>
        new Promise((done) => {
            execFile(
                '/usr/bin/test',
                expression,
                { ...identityOptions, env: {}, cwd: '/', timeout: probeTimeoutMs, killSignal: 'SIGKILL' },
                (error) => {
                    done(error === null ? true : error.code === 1 ? false : null);
                }
            );
        });
    return async (folder) => {
        if ((await test('-d', folder)) !== true) {
            return `is not a folder that the engine's user (${user.name}) can see`;
        }
        const readable = await test('-r', folder, '-a', '-x', folder);
        return readable === true
            ? null
            : readable === false
              ? `cannot be read by the engine's user (${user.name})`
              : `could not be tried as the engine's user (${user.name}) in time`;
    };
}
