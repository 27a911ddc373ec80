/** `portico audit verify`: verifies the audit log, or says where it is broken. */
import { join } from 'node:path';

import type { Verification } from '../../features/audit/chain/verify.ts';
import { verifyAuditFile } from '../../features/audit/chain/verify-file.ts';
import type { Config } from '../../platform/config.ts';
import { createKeyring } from '../../platform/keys/keyring.ts';
import { type Command, jsonOption } from '../command/command.ts';
import { explainFileError } from '../command/command-error.ts';
import type { Output } from '../command/output.ts';
import { databasePath, enterFolder } from '../panel/data-folder.ts';
import { describeUserAgent, locatePanel, PanelUnresponsive } from '../panel/with-panel.ts';

const patienceMs = 15 * 60_000;

/** The command `audit verify`. */
export const auditVerify: Command = {
    name: 'audit verify',
    positionals: [],
    summary: 'Verify that no audit entry was changed, removed or inserted',
    details: ['Exits with 1 when the chain of entries is broken, and says where. Changes nothing.'],
    options: jsonOption,
    async run({ config, output }) {
        const found = await verify(config, output);
        output.result(
            found,
            found.holds
                ? `The audit log holds: ${span(found)}, ${found.checkpoints} signed checkpoints.`
                : null
        );
        if (found.break !== null) {
            output.say(
                `The audit log is BROKEN at entry ${found.break.id} (${found.break.reason}): ${found.break.message}. ${span(found)} were checked.`
            );
        }
        return found.holds ? 0 : 1;
    }
};

function span({ entries, first, last }: Verification): string {
    return `${entries} entries${first === null || last === null ? '' : ` (${first} to ${last})`}`;
}

async function verify(config: Config, output: Output): Promise<Verification> {
    const { dataDir } = config;
    const file = databasePath(dataDir);
    const userAgent = describeUserAgent();
    enterFolder(dataDir);
    try {
        const keyring = createKeyring(dataDir);
        const found = await locatePanel(config, keyring, userAgent).catch((error: unknown) => {
            if (error instanceof PanelUnresponsive) {
                output.say(`${error.message}. The log is read from its file instead.`);
                return null;
            }
            throw error;
        });
        if (found !== null && 'client' in found) {
            return (await found.client.call<Verification>('GET', '/api/audit/verify', undefined, patienceMs))
                .data;
        }
        try {
            return await verifyAuditFile({ file, headFile: join(dataDir, 'audit.head'), keyring });
        } finally {
            found?.lock.release();
        }
    } catch (error) {
        throw explainFileError(error, dataDir, file);
    }
}
