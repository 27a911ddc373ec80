import { randomBytes } from 'node:crypto';
import {
    closeSync,
    fchownSync,
    linkSync,
    mkdirSync,
    openSync,
    readFileSync,
    realpathSync,
    renameSync,
    rmSync,
    writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { engineStorageName } from '../../platform/data-dir/data-dir.ts';
import { type EngineConfig, EngineUnavailable } from '../port.ts';
import { adoptStorage } from './adopt-storage.ts';
import { hashOf, noteDataFolder, outsideRoots } from './outside-folders.ts';
import { claimFolder, handOver, isPrivate, lstat, makeFolder, setOwner } from './ownership.ts';
import { makeLogsWriteOnly } from './write-only.ts';

/** Who the engine runs as. */
export interface EngineOwner {
    readonly name: string;
    readonly uid: number;
    readonly gid: number;
    /** Another identity than the panel's own, so that the process has to change to it. */
    readonly switched: boolean;
}

/** Every place that the engine reads or writes, as absolute paths. A value: none of them exists until `prepareHome`. */
export interface EngineFolders {
    /** Root of what must survive a reboot. The panel's. */
    readonly persistent: string;
    /** Root of what may vanish at a reboot (a memory file system where there is one). The panel's. */
    readonly runtime: string;
    /** Certificates and ACME accounts that the engine keeps itself. The engine's, 0700. */
    readonly storage: string;
    /** Certificates of a backup, until the engine has taken them over. */
    readonly restored: string;
    /** The file table. The panel writes, the engine reads. */
    readonly table: string;
    /** Working copies of certificates (`<id>-<fingerprint>.crt`, `.key`). The panel writes (`writeForEngine`), the engine reads. */
    readonly certificates: string;
    /** The unix socket of the admin API; at most 107 bytes. */
    readonly adminSocket: string;
    /** The log that the engine itself writes and rolls (`<name>-<time>.log` beside it). */
    readonly logFile: string;
    /** The log of requests, which the engine rolls in the same way. It exists while the setting `engine.accessLog` is on. */
    readonly accessLogFile: string;
    /** Standard output and error of the engine's process: what is said before a log is configured, and panics. */
    readonly outputFile: string;
    /** What the process is started with: an admin API and nothing else. Its path is how a running engine is recognised; it is gone once that answers. */
    readonly startFile: string;
    /** The random name that the admin API of the running engine answers to: the panel's, 0600. */
    readonly originFile: string;
    /** Throw-away files of `validate`. The engine's, 0700. */
    readonly scratch: string;
    /** The configuration that was last loaded: the panel's, 0600. */
    readonly lastFile: string;
    /** Held by the running engine through `flock`: two engines never run for one data folder. */
    readonly lockFile: string;
    /** For humans; never read. */
    readonly pidFile: string;
    readonly owner: EngineOwner;
    /** Who the panel is. */
    readonly panel: { readonly uid: number; readonly gid: number };
}

/** The machine as `engineHome` sees it. Tests pass another one. */
export interface EngineMachine {
    readonly uid: number;
    readonly gid: number;
    readonly runtimeDir: string | undefined;
    readonly temporary: string;
    readonly users: string;
    /** Used under root only. */
    readonly roots: { readonly persistent: string; readonly runtime: string };
}

/** sun_path holds 108 bytes with the final zero. */
const socketLimit = 107;

/** The user that the engine's package creates. */
const packageUser = 'caddy';

const thisMachine = (): EngineMachine => ({
    uid: process.getuid?.() ?? 0,
    gid: process.getgid?.() ?? 0,
    runtimeDir: process.env['XDG_RUNTIME_DIR'],
    temporary: tmpdir(),
    users: '/etc/passwd',
    roots: outsideRoots
});

/**
 * Where the engine of one data folder lives, and who it runs as.
 *
 * A panel that runs as root keeps the engine outside the data folder, under `/var/lib/portico/<hash>` and
 * `/run/portico/<hash>`, because the engine's user may not enter the data folder. Any other panel keeps it below the
 * data folder; only a socket whose path would be too long goes to `XDG_RUNTIME_DIR` or the temporary folder.
 *
 * Folders that only the engine may read have a random name, which is kept in the data folder. The reason: the engine follows links, and a
 * link in a site's folder that leads there would publish its keys. No other user can list the folders above them.
 *
 * @param dataDir - exists; its real path names the folders
 * @param user - who the engine runs as; null: the package's user under root, else the panel's own
 * @throws EngineUnavailable when the user does not exist or the panel may not become it
 */
export const engineHome = (
    dataDir: string,
    user: string | null,
    machine: EngineMachine = thisMachine()
): EngineFolders => {
    const data = realpathSync(dataDir);
    const hash = hashOf(data);
    const owner = engineOwner(user, machine);
    const own = join(data, 'engine');
    const persistent = machine.uid === 0 ? join(machine.roots.persistent, hash) : own;
    const runtime = machine.uid === 0 ? join(machine.roots.runtime, hash) : own;
    const place = owner.switched ? `-${placeOf(own)}` : '';
    const folders = {
        persistent,
        runtime,
        storage: join(persistent, `storage${place}`),
        restored: join(data, engineStorageName),
        table: join(runtime, 'table'),
        certificates: join(runtime, `certificates${place}`),
        adminSocket: join(runtime, 'admin', 'admin.sock'),
        logFile: join(persistent, `log${place}`, 'engine.log'),
        accessLogFile: join(persistent, `log${place}`, 'access.log'),
        outputFile: join(persistent, 'output.log'),
        startFile: join(runtime, 'start.json'),
        originFile: join(own, 'origin'),
        scratch: join(runtime, 'scratch'),
        lastFile: join(own, 'last.json'),
        lockFile: join(own, 'lock'),
        pidFile: join(data, 'engine.pid'),
        owner,
        panel: { uid: machine.uid, gid: machine.gid }
    };

    if (/[{}\n]/.test(folders.adminSocket)) {
        throw new EngineUnavailable(
            "the data folder's path may not contain braces or line breaks: the engine would take them for placeholders"
        );
    }

    if (Buffer.byteLength(folders.adminSocket) <= socketLimit) {
        return folders;
    }

    for (const parent of [machine.runtimeDir, machine.temporary]) {
        const socket =
            parent?.startsWith('/') !== true
                ? null
                : join(parent, `portico-${machine.uid}-${hash}`, 'admin.sock');
        if (
            socket !== null &&
            Buffer.byteLength(socket) <= socketLimit &&
            (parent === machine.temporary || isPrivate(parent ?? '', machine.uid))
        ) {
            return { ...folders, adminSocket: socket };
        }
    }

    throw new EngineUnavailable(
        `no folder is short enough for the engine's socket (${socketLimit} bytes): set XDG_RUNTIME_DIR or use a shorter data folder`
    );
};

/** The `admin` part that every configuration must carry, so that the panel can go on talking to the engine after a load. */
export const adminConfig = (folders: Pick<EngineFolders, 'adminSocket'>): EngineConfig => ({
    listen: `unix/${folders.adminSocket}`,
    origins: ['caddy'],
    config: { persist: false }
});

/**
 * Makes the folders, with owners and modes as tight as they can be. Repeatable.
 * @throws EngineUnavailable when something of another user, or a link, is in the way
 */
export const prepareHome = (folders: EngineFolders): void => {
    const { owner, panel } = folders;
    const shared = { uid: panel.uid, gid: owner.switched ? owner.gid : panel.gid };
    const split = dirname(folders.lockFile) !== folders.persistent;

    claimFolder(dirname(folders.lockFile), panel, 0o700);
    if (split) {
        for (const root of [folders.persistent, folders.runtime]) {
            claimFolder(dirname(root), panel, 0o711);
            claimFolder(root, shared, 0o710);
            noteDataFolder(root, dirname(dirname(folders.lockFile)));
        }
    }

    closeSync(openSync(folders.lockFile, 'a', 0o600));

    // From here on every parent belongs to the panel, and no other user can put anything there.
    for (const path of [folders.storage, dirname(folders.logFile), folders.scratch]) {
        makeFolder(path);
        if (path === folders.storage) {
            adoptStorage(folders.restored, path, owner);
        }

        handOver(path, owner);
    }

    makeLogsWriteOnly(folders);

    for (const path of [folders.table, folders.certificates]) {
        makeFolder(path);
        setOwner(path, shared, owner.switched ? 0o750 : 0o700);
    }

    const admin = dirname(folders.adminSocket);
    if (dirname(admin) === folders.runtime) {
        makeFolder(admin);
        handOver(admin, owner);
    } else {
        claimFolder(admin, panel, 0o700);
    }
};

/**
 * Writes a file that only the engine (and the panel) can read, by rename, so that the engine sees the old text or the new one.
 * @param path - directly in one of the panel's folders (`table`, `certificates`), never in one the engine may write to
 */
export const writeForEngine = (folders: EngineFolders, path: string, text: string | Uint8Array): void => {
    const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
    const file = openSync(temporary, 'wx', 0o600);
    try {
        try {
            writeFileSync(file, text);
            if (folders.owner.switched) {
                fchownSync(file, folders.owner.uid, folders.owner.gid);
            }
        } finally {
            closeSync(file);
        }

        renameSync(temporary, path);
    } catch (error) {
        rmSync(temporary, { force: true });
        throw error;
    }
};

/**
 * Checks what lies at the path of the admin socket.
 * @returns false when nothing is there
 * @throws EngineUnavailable when it is not a socket, or not the engine's
 */
export const checkSocket = (folders: EngineFolders): boolean => {
    const stats = lstat(folders.adminSocket);
    if (stats === null) {
        return false;
    }

    if (!stats.isSocket() || stats.uid !== folders.owner.uid) {
        throw new EngineUnavailable(
            `${folders.adminSocket} is not a socket of the user ${folders.owner.name}; the panel does not talk to it. Find out who made it and remove it`
        );
    }

    return true;
};

const engineOwner = (user: string | null, machine: EngineMachine): EngineOwner => {
    if (user === null && machine.uid !== 0) {
        return { name: String(machine.uid), uid: machine.uid, gid: machine.gid, switched: false };
    }

    const name = user ?? packageUser;
    const found = readFileSync(machine.users, 'utf8')
        .split('\n')
        .map((line) => line.split(':'))
        .find((fields) => fields[0] === name);
    const uid = Number(found?.[2] ?? NaN);
    const gid = Number(found?.[3] ?? NaN);
    if (!Number.isSafeInteger(uid) || !Number.isSafeInteger(gid)) {
        throw new EngineUnavailable(
            `there is no user ${name} to run the engine as: install the engine's package, or name an existing user in PORTICO_ENGINE_USER`
        );
    }

    if (machine.uid !== 0 && uid !== machine.uid) {
        throw new EngineUnavailable(
            `the panel is not root and cannot run the engine as ${name}: remove PORTICO_ENGINE_USER`
        );
    }

    return { name, uid, gid, switched: uid !== machine.uid };
};

/** The random name. It is made once and stays. */
const placeOf = (own: string): string => {
    const path = join(own, 'place');
    for (;;) {
        try {
            const name = readFileSync(path, 'utf8').trim();
            if (/^[0-9a-f]{32}$/.test(name)) {
                return name;
            }

            rmSync(path);
        } catch (error) {
            if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
                throw error;
            }
        }

        mkdirSync(own, { recursive: true, mode: 0o700 });
        const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
        writeFileSync(temporary, `${randomBytes(16).toString('hex')}\n`, { mode: 0o600, flag: 'wx' });
        try {
            linkSync(temporary, path);
        } catch (error) {
            if ((error as NodeJS.ErrnoException).code !== 'EEXIST') {
                throw error;
            }
        } finally {
            rmSync(temporary);
        }
    }
};
