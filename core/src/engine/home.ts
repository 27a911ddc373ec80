import { createHash, randomBytes } from 'node:crypto';
import { chmodSync, chownSync, constants, lstatSync, mkdirSync, openSync, closeSync, fchmodSync, fchownSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Stats } from 'node:fs';

import { EngineUnavailable } from './port.ts';

/** Who the engine runs as. */
export interface EngineOwner {
    readonly name: string;
    readonly uid: number;
    readonly gid: number;
    /** False: the engine simply inherits the panel's own identity. */
    readonly switched: boolean;
}

/** Every place that the engine reads or writes, as absolute paths. A pure value: nothing exists until `prepareHome`. */
export interface EngineFolders {
    /** Root of what must survive a reboot. The panel's. */
    readonly persistent: string;
    /** Root of what may vanish at a reboot (a memory file system where there is one). The panel's. */
    readonly runtime: string;
    /** Certificates and ACME accounts that the engine keeps itself. The engine's, 0700. */
    readonly storage: string;
    /** The file table. The panel writes, the engine reads. */
    readonly table: string;
    /** Working copies of certificates (`<id>-<fingerprint>.crt`, `.key`). The panel writes (`writeForEngine`), the engine reads. */
    readonly certificates: string;
    /** The unix socket of the admin API; at most 107 bytes. */
    readonly adminSocket: string;
    /** The log that the engine itself writes and rolls (`<name>-<time>.log` beside it). */
    readonly logFile: string;
    /** Standard output and error of the engine's process: what is said before a log is configured, and panics. */
    readonly outputFile: string;
    /** What the process is started with: an admin API and nothing else. Its path is how a running engine is recognised. */
    readonly startFile: string;
    /** Throw-away files of `validate`. The engine's, 0700. */
    readonly scratch: string;
    /** The configuration that was last loaded: the panel's, 0600. */
    readonly lastFile: string;
    /** Held by the running engine through `flock`: two engines never run for one data folder. */
    readonly lockFile: string;
    /** For humans; never read. */
    readonly pidFile: string;
    readonly owner: EngineOwner;
}

/** The machine as `engineHome` sees it; tests put another one in. */
export interface EngineMachine {
    readonly uid: number;
    readonly gid: number;
    readonly runtimeDir: string | undefined;
    readonly temporary: string;
    readonly users: string;
    readonly roots: { readonly persistent: string; readonly runtime: string };
}

/** sun_path holds 108 bytes with the final zero. */
const SOCKET_LIMIT = 107;

/** The user that the engine's package brings along. */
const PACKAGE_USER = 'caddy';

const thisMachine = (): EngineMachine => ({
    uid: process.getuid?.() ?? 0,
    gid: process.getgid?.() ?? 0,
    runtimeDir: process.env['XDG_RUNTIME_DIR'],
    temporary: tmpdir(),
    users: '/etc/passwd',
    roots: { persistent: '/var/lib/portico', runtime: '/run/portico' }
});

/**
 * Where the engine of one data folder lives, and who it runs as.
 *
 * A panel that runs as root keeps the engine outside the data folder, under `/var/lib/portico/<hash>` and
 * `/run/portico/<hash>`, because the engine's user may not enter the data folder. Any other panel keeps it below the
 * data folder; only a socket whose path would be too long goes to `XDG_RUNTIME_DIR` or the temporary folder.
 *
 * @param dataDir exists; its real path names the folders
 * @param user who the engine runs as; null: the package's user under root, else the panel's own
 * @throws EngineUnavailable when the user does not exist or the panel may not become it
 */
export const engineHome = (dataDir: string, user: string | null, machine: EngineMachine = thisMachine()): EngineFolders => {
    const data = realpathSync(dataDir);
    const hash = createHash('sha256').update(data).digest('hex').slice(0, 16);
    const owner = engineOwner(user, machine);
    const own = join(data, 'engine');
    const persistent = machine.uid === 0 ? join(machine.roots.persistent, hash) : own;
    const runtime = machine.uid === 0 ? join(machine.roots.runtime, hash) : own;
    const folders = {
        persistent,
        runtime,
        storage: join(persistent, 'storage'),
        table: join(runtime, 'table'),
        certificates: join(runtime, 'certificates'),
        adminSocket: join(runtime, 'admin', 'admin.sock'),
        logFile: join(persistent, 'log', 'engine.log'),
        outputFile: join(persistent, 'output.log'),
        startFile: join(runtime, 'start.json'),
        scratch: join(runtime, 'scratch'),
        lastFile: join(own, 'last.json'),
        lockFile: join(own, 'lock'),
        pidFile: join(data, 'engine.pid'),
        owner
    };

    if (Buffer.byteLength(folders.adminSocket) <= SOCKET_LIMIT) {
        return folders;
    }

    for (const parent of [machine.runtimeDir, machine.temporary]) {
        const socket = parent === undefined || !parent.startsWith('/') ? null : join(parent, `portico-${machine.uid}-${hash}`, 'admin.sock');
        if (socket !== null && Buffer.byteLength(socket) <= SOCKET_LIMIT && (parent === machine.temporary || isPrivate(parent, machine.uid))) {
            return { ...folders, adminSocket: socket };
        }
    }

    throw new EngineUnavailable(`no folder is short enough for the engine's socket (${SOCKET_LIMIT} bytes): set XDG_RUNTIME_DIR or use a shorter data folder`);
};

/**
 * Makes the folders, with owners and modes as tight as they can be. Repeatable.
 * @throws EngineUnavailable when something of another user, or a link, is in the way
 */
export const prepareHome = (folders: EngineFolders): void => {
    throw new EngineUnavailable(`not yet: ${folders.runtime}`);
};

/**
 * Writes a file that only the engine (and the panel) can read, by rename, so that the engine sees the old text or the new one.
 * @param path directly in one of the panel's folders (`table`, `certificates`), never in one the engine may write to
 */
export const writeForEngine = (folders: EngineFolders, path: string, text: string | Uint8Array): void => {
    throw new EngineUnavailable(`not yet: ${folders.runtime} ${path} ${text.length}`);
};
