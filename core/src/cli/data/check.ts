/** `portico data check`: says whether a panel could start on a folder with everything that it held. */
import { resolve } from 'node:path';

import { type Command, jsonOption } from '../command/command.ts';
import { explainFileError } from '../command/command-error.ts';
import { toPlainText } from '../command/output.ts';
import { formatCheck } from '../doctor/doctor.ts';
import { databasePath, enterFolder } from '../panel/data-folder.ts';

/** The command `data check`. */
export const dataCheck: Command = {
    name: 'data check',
    positionals: ['[folder]'],
    summary: 'Check a data folder, or the panel in a backup: database, keys, audit log, plugins',
    details: [
        'Without a folder, the data folder of the panel is checked. Nothing is changed. Exits with 0 when a panel could start on the folder with everything that it held, and with 1 when something is damaged or missing.'
    ],
    options: jsonOption,
    async run({ config, output, positionals: [folder] }) {
        const dataDir = folder === undefined ? config.dataDir : resolve(folder);
        const { checkDataFolder } = await import('./check-folder.ts'); // loads the database, so only when it is needed
        try {
            enterFolder(dataDir);
            const checks = (await checkDataFolder({ ...config, dataDir })).map((check) => ({
                ...check,
                evidence: toPlainText(check.evidence)
            }));
            const holds = checks.every(({ state }) => state !== 'fail');
            output.result({ ok: holds, checks }, checks.map(formatCheck).join('\n'));
            output.say(
                holds
                    ? `A panel can start on ${dataDir}.`
                    : `${dataDir} is not whole: what fails above is damaged or missing.`
            );
            return holds ? 0 : 1;
        } catch (error) {
            throw explainFileError(error, dataDir, databasePath(dataDir));
        }
    }
};
