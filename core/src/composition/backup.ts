/** The panel answers the hooks of backups itself, as a plugin with the name `panel` would. */
import { join } from 'node:path';

import { engineHome } from '../engine/files/home.ts';
import { copyHead } from '../features/audit/chain/copied-head.ts';
import { type CopyPort, PanelBackup, type PanelBackupOptions } from '../features/backup/panel-backup.ts';
import { copyData, sizeOf } from '../plugins/manager/data/copy.ts';
import type { Foundation } from './foundation.ts';

const copy: CopyPort = {
    folder: (from, to, what, signal) => copyData({ from, to, what, signal, isOpen: false }),
    pluginData: (from, to, what, signal) =>
        copyData({ from, to, what, signal, isOpen: true, withoutCaches: true }),
    database: (from, to, what, signal) =>
        copyData({ from, to, what, signal, isOpen: true, isDatabase: true }),
    size: (folder) => sizeOf(folder, true)
};

/** What the panel gives to backups. @param version - of the core */
export function createPanelBackup(
    {
        config: { dataDir, engineUser },
        db,
        clock,
        keyring
    }: Pick<PanelBackupOptions, 'db'> & Pick<Foundation, 'config' | 'clock' | 'keyring'>,
    version: string
): PanelBackup {
    return new PanelBackup({
        dataDir,
        db,
        clock,
        copy,
        version,
        engineStorage() {
            try {
                return engineHome(dataDir, engineUser).storage;
            } catch {
                return null; // no account for the engine: it never ran
            }
        },
        copyHead: (file) => copyHead({ live: join(dataDir, 'audit.head'), copy: file, keyring })
    });
}

/** Taps the hooks of backups for the panel's own state. @param version - of the core */
export function answerBackups(foundation: Foundation, version: string): void {
    const { hooks } = foundation;
    const panel = createPanelBackup(foundation, version);
    const owner = { plugin: 'panel', version };
    hooks.host.tap(owner, 'backup.list', () => panel.list());
    hooks.host.tap(owner, 'backup.collect', ({ folder, only }, { signal }) =>
        panel.collect(folder, only, signal)
    );
    // A panel never replaces its own state while it runs.
    hooks.host.tap(owner, 'backup.restore', ({ items }) =>
        items.map(({ name }) => ({
            item: name,
            ok: false,
            message: 'Stop the panel, then run: portico data restore <folder>'
        }))
    );
}
