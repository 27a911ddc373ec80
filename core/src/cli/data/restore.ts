/** `portico data restore`: makes a data folder of the panel in a backup, whole or not at all. */
import { resolve } from 'node:path';

import { type Command, jsonOption } from '../command/command.ts';
import { explainFileError } from '../command/command-error.ts';
import { databasePath } from '../panel/data-folder.ts';

/** The command `data restore`. */
export const dataRestore: Command = {
    name: 'data restore',
    positionals: ['<folder>'],
    summary: 'Make a data folder of the panel in a backup, completely or not at all',
    details: [
        'The folder is one that the panel gave to a backup: it has portico.db, keys and portico-panel.json in it. It is checked as `portico data check` does, and only read. The data folder must not exist or be empty. A restore that is ended half-way leaves it as it was; the next one removes what the earlier one left.',
        'The panel that made the backup must not run at the same time: two panels with the same certificates and tokens would disturb each other.'
    ],
    options: jsonOption,
    async run({ config: { dataDir }, config, output, positionals: [from = ''] }) {
        const { restoreFolder } = await import('./restore-folder.ts'); // loads the database, so only when it is needed
        const source = resolve(from);
        try {
            const bytes = await restoreFolder(source, config);
            output.result({ dataDir, from: source, bytes }, `${dataDir} holds the panel of ${source}.`);
            output.say('Start it: portico start');
            return 0;
        } catch (error) {
            throw explainFileError(error, dataDir, databasePath(dataDir));
        }
    }
};
