/** The work of `portico data backup`: what the panel itself gives to backups, copied beside the target, checked, and put in place by one rename. */
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

import Sqlite from 'better-sqlite3';

import { createPanelBackup } from '../../composition/backup.ts';
import { systemClock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config.ts';
import { createKeyring } from '../../platform/keys/keyring.ts';
import { sizeOf } from '../../plugins/manager/data/copy.ts';
import { CommandError } from '../command/command-error.ts';
import { databasePath } from '../panel/data-folder.ts';
import { checkDataFolder } from './check-folder.ts';

/**
 * Copies the panel of a data folder, whether it runs or not.
 *
 * @param target - absolute; it must not exist
 * @throws CommandError, and nothing was left behind
 */
export async function backupFolder(
    config: Config,
    target: string
): Promise<{ readonly bytes: number; readonly items: readonly string[] }> {
    if (existsSync(target)) {
        throw new CommandError(`${target} exists: name a new folder. Nothing was changed`, 2);
    }
    if (!existsSync(dirname(target))) {
        throw new CommandError(`There is no folder ${dirname(target)}`, 2);
    }
    const copy = `${target}.backup-${process.pid}`;
    const ending = new AbortController();
    const end = (): void => ending.abort(new CommandError('The backup was ended; nothing was left behind'));
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
    signals.forEach((signal) => process.on(signal, end));
    const db = new Sqlite(databasePath(config.dataDir), { readonly: true, fileMustExist: true });
    try {
        await mkdir(copy, { mode: 0o700 });
        const backup = createPanelBackup(
            { config, db, clock: systemClock, keyring: createKeyring(config.dataDir) },
            versionOfCore()
        );
        const items = await backup.collect(copy, undefined, ending.signal);
        const faults = (await checkDataFolder({ ...config, dataDir: copy })).filter(
            ({ state }) => state === 'fail'
        );
        if (faults.length > 0) {
            throw new CommandError(
                `The copy is not whole, so it was removed: ${faults.map(({ id, evidence }) => `${id}: ${evidence}`).join('; ')}`
            );
        }
        ending.signal.throwIfAborted();
        await rename(copy, target);
        return { bytes: await sizeOf(target), items: items.map(({ name }) => name) };
    } finally {
        db.close();
        await rm(copy, { recursive: true, force: true });
        signals.forEach((signal) => process.off(signal, end));
    }
}

function versionOfCore(): string {
    const file = new URL('../../../package.json', import.meta.url);
    return (JSON.parse(readFileSync(file, 'utf8')) as { readonly version: string }).version;
}
