/** Checks of the machine: Node, the disk, and the owners and modes in the data folder. */
import { readdirSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';

import type { Config } from '../../platform/config.ts';
import { currentUser } from '../panel/data-folder.ts';
import { type Check, fault, ok, warn } from './check.ts';

const leastNode = 24;
const mebibyte = 1024 * 1024;
const scarceBytes = 512 * mebibyte;
const noneBytes = 32 * mebibyte;
const scarceInodes = 1000;

/** Checks the version of Node. */
export function checkNode(): Check {
    const { node } = process.versions;
    const evidence = `Node ${node} (${process.execPath})`;
    return Number(node.split('.')[0]) >= leastNode
        ? ok('node', evidence)
        : fault('node', evidence, `Portico needs Node ${leastNode} or newer`);
}

/** Checks owner and mode of the data folder. */
export function checkFolder({ dataDir }: Config): Check {
    const { uid, mode } = statSync(dataDir);
    const evidence = `${dataDir}, mode ${octal(mode)}, owner ${uid}, used as ${currentUser()} (${process.geteuid?.() ?? 'unknown'})`;
    if ((mode & 0o077) !== 0) {
        return fault('data-folder', evidence, `Other users can read the folder: chmod 700 ${dataDir}`);
    }
    return uid === process.geteuid?.()
        ? ok('data-folder', evidence)
        : warn(
              'data-folder',
              evidence,
              'The folder and its files belong to different users: chown the folder to the user whom the panel runs as'
          );
}

/** Checks owner and mode of every key file, and the length of the master key. A panel does not start with a key that other users can read. */
export function checkKeys({ dataDir }: Config): Check {
    const folder = join(dataDir, 'keys');
    const keys = readdirSync(folder).map((name) => ({ name, stat: statSync(join(folder, name)) }));
    const open = keys.filter(({ stat }) => (stat.mode & 0o077) !== 0);
    const strange = keys.filter(({ stat }) => stat.uid !== process.geteuid?.());
    const evidence = `${keys.length} key files in ${folder}`;
    if (open.length > 0) {
        return fault(
            'keys',
            `${evidence}; others may read ${open.map(({ name, stat }) => `${name} (${octal(stat.mode)})`).join(', ')}`,
            `chmod 600 ${open.map(({ name }) => join(folder, name)).join(' ')}; if other people had access to this machine, assume that they know the keys`
        );
    }
    if (strange.length > 0) {
        return fault(
            'keys',
            `${evidence}; ${strange.map(({ name, stat }) => `${name} belongs to the user ${stat.uid}`).join(', ')}`,
            `chown them to the user ${process.geteuid?.() ?? ''}`
        );
    }
    const master = keys.find(({ name }) => name === 'master');
    return master?.stat.size === 32
        ? ok('keys', `${evidence}, none readable by others`)
        : fault(
              'keys',
              `${evidence}; master has ${master?.stat.size ?? 0} bytes instead of 32`,
              'Put keys/master back from a backup'
          );
}

/** Checks the free space and inodes of the data folder's disk. */
export function checkDisk({ dataDir }: Config): Check {
    const { bavail, bsize, blocks, ffree, files } = statfsSync(dataDir);
    const free = bavail * bsize;
    const evidence = `${Math.round(free / mebibyte)} MiB free of ${Math.round((blocks * bsize) / mebibyte)} MiB for ${dataDir}`;
    const remedy = 'Make room: on a full disk no change can be saved, and no audit entry written';
    if (free < noneBytes) {
        return fault('disk', evidence, remedy);
    }
    if (files > 0 && ffree < scarceInodes) {
        return warn('disk', `${evidence}, but room for only ${ffree} more files`, remedy);
    }
    return free < scarceBytes ? warn('disk', evidence, remedy) : ok('disk', evidence);
}

function octal(mode: number): string {
    return (mode & 0o777).toString(8).padStart(4, '0');
}
