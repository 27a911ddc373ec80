/** Runs the checks of `portico doctor`. A check that throws counts as failed, and the others go on. */
import type { Config } from '../../platform/config.ts';
import { CommandError } from '../command/command-error.ts';
import { toPlainText } from '../command/output.ts';
import { enterFolder } from '../panel/data-folder.ts';
import { describeUserAgent } from '../panel/with-panel.ts';
import { type Check, fault } from './check.ts';
import { checkDatabase } from './database.ts';
import { checkEngine } from './engine.ts';
import { checkFolders } from './folders.ts';
import { checkDisk, checkFolder, checkKeys, checkNode } from './machine.ts';
import { checkPanel } from './panel.ts';

/** Runs all checks, one after the other. */
export async function runChecks(config: Config): Promise<Check[]> {
    const checks: Check[] = [];
    const run = async (id: string, work: () => Check[] | Promise<Check[]>): Promise<void> => {
        try {
            checks.push(...(await work()));
        } catch (error) {
            checks.push(
                fault(
                    id,
                    `the check itself failed: ${(error as Error).message}`,
                    'The message says what could not be read'
                )
            );
        }
    };
    await run('node', () => [checkNode()]);
    const userAgent = describeUserAgent();
    try {
        enterFolder(config.dataDir);
    } catch (error) {
        if (!(error instanceof CommandError)) {
            throw error;
        }
        checks.push(
            fault('data-folder', error.message, 'Correct this first: nothing else can be checked before')
        );
        return checks;
    }
    await run('data-folder', () => [checkFolder(config)]);
    await run('keys', () => [checkKeys(config)]);
    await run('disk', () => [checkDisk(config)]);
    await run('database', () => checkDatabase(config));
    await run('panel', () => checkPanel(config, userAgent));
    await run('engine', () => checkEngine(config, userAgent));
    await run('engine-folders', () => checkFolders());
    return checks.map((check) => ({
        ...check,
        evidence: toPlainText(check.evidence),
        remedy: check.remedy === null ? null : toPlainText(check.remedy)
    }));
}
