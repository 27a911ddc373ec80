/** `portico data backup`: copies the panel while it runs, as a data folder that `portico data restore` takes. */
import { resolve } from 'node:path';

import { type Command, jsonOption } from '../command/command.ts';
import { explainFileError } from '../command/command-error.ts';
import { databasePath, enterFolder } from '../panel/data-folder.ts';

/** The command `data backup`. */
export const dataBackup: Command = {
    name: 'data backup',
    positionals: ['<folder>'],
    summary: 'Copy the panel into a new folder while it runs, completely or not at all',
    details: [
        'Database, keys, audit log, plugins with their data, and the certificates that the engine obtained. The copy is consistent, is checked as `portico data check` does, and becomes a data folder by `portico data restore`. The folder must not exist. It holds every key: keep it like one.'
    ],
    options: jsonOption,
    async run({ config, output, positionals: [to = ''] }) {
        const { dataDir } = config;
        const { backupFolder } = await import('./backup-folder.ts'); // loads the database, so only when it is needed
        const target = resolve(to);
        enterFolder(dataDir);
        try {
            const { bytes, items } = await backupFolder(config, target);
            output.result({ folder: target, bytes, items }, `${target} holds the panel of ${dataDir}.`);
            return 0;
        } catch (error) {
            throw explainFileError(error, dataDir, databasePath(dataDir));
        }
    }
};
