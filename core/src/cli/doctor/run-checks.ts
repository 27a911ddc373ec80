/** Runs the checks of `portico doctor` one after the other; one that breaks is a failed check, never the end of the others. */
import type { Config } from '../../platform/config.ts';
import { Complaint } from '../command/command-error.ts';
import { plain } from '../command/output.ts';
import { enterFolder } from '../panel/data-folder.ts';
import { userAgentOf } from '../panel/with-panel.ts';
import { type Check, fault } from './check.ts';
import { checkDatabase } from './database.ts';
import { checkEngine } from './engine.ts';
import { checkDisk, checkFolder, checkKeys, checkNode } from './machine.ts';
import { checkPanel } from './panel.ts';

export async function inspect(config: Config): Promise<Check[]> {
    const checks: Check[] = [];
    const run = async (id: string, work: () => Check[] | Promise<Check[]>): Promise<void> => {
        try {
            checks.push(...(await work()));
        } catch (error) {
            checks.push(
                fault(
                    id,
                    `the check itself failed: ${(error as Error).message}`,
                    'Look at the message; it says what could not be read'
                )
            );
        }
    };
    await run('node', () => [checkNode()]);
    const userAgent = userAgentOf();
    try {
        enterFolder(config.dataDir);
    } catch (error) {
        if (!(error instanceof Complaint)) {
            throw error;
        }
        checks.push(fault('data-folder', error.message, 'Nothing else can be checked before that'));
        return checks;
    }
    await run('data-folder', () => [checkFolder(config)]);
    await run('keys', () => [checkKeys(config)]);
    await run('disk', () => [checkDisk(config)]);
    await run('database', () => checkDatabase(config));
    await run('panel', () => checkPanel(config, userAgent));
    await run('engine', () => checkEngine(config));
    return checks.map((check) => ({
        ...check,
        evidence: plain(check.evidence),
        remedy: check.remedy === null ? null : plain(check.remedy)
    }));
}
