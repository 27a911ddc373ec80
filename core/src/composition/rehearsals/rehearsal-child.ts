/**
 * The process in which a copy of a panel is booted to prove it: on loopback, in safe mode, without an engine. It boots one folder, which it may
 * change, sends one answer, and ends.
 */
// eslint-disable-next-line no-restricted-imports -- it asks the panel in its own process
import { get } from 'node:http';
import { join } from 'node:path';

import Sqlite from 'better-sqlite3';

import { verifyAuditFile } from '../../features/audit/chain/verify-file.ts';
import { createPanel } from '../../panel.ts';
import { readConfig } from '../../platform/config.ts';
import { databaseName } from '../../platform/data-dir/data-dir.ts';
import { createKeyring } from '../../platform/keys/keyring.ts';
import { createLog } from '../../platform/log/log.ts';
import type { RehearsalMessage } from './rehearsals.ts';

process.umask(0o077);
process.on('disconnect', () => process.exit(1)); // the panel is gone
process.once('message', (dataDir: string) => {
    run(dataDir)
        .catch((error: unknown): RehearsalMessage => ({ failed: (error as Error).message }))
        .then((message) => process.send?.(message, () => process.exit(0)))
        .catch(() => process.exit(1));
});

async function run(dataDir: string): Promise<RehearsalMessage> {
    const config = readConfig(
        {
            PORTICO_DATA_DIR: dataDir,
            PORTICO_HOST: '127.0.0.1',
            PORTICO_PORT: '0',
            PORTICO_SAFE_MODE: '1',
            PORTICO_PLUGIN_DIRS: ''
        },
        dataDir
    );
    const panel = await createPanel({
        config,
        log: createLog({ level: 'silent', write: () => undefined }),
        show: () => undefined,
        isRehearsal: true
    });
    const { port } = await panel.start();
    await requireReady(port);
    process.send?.({ ready: true } satisfies RehearsalMessage);
    await panel.stop();
    const file = join(dataDir, databaseName);
    const { holds } = await verifyAuditFile({
        file,
        headFile: join(dataDir, 'audit.head'),
        keyring: createKeyring(dataDir)
    });
    return { found: { ...countsOf(file), auditChain: holds } };
}

function requireReady(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
        get({ host: '127.0.0.1', port, path: '/readyz', agent: false }, (answer) => {
            answer.resume();
            if (answer.statusCode === 200) {
                resolve();
            } else {
                reject(
                    new Error(`The panel answered ${answer.statusCode} when it was asked whether it is ready`)
                );
            }
        }).on('error', reject);
    });
}

function countsOf(file: string): {
    readonly hosts: number;
    readonly users: number;
    readonly plugins: number;
} {
    const db = new Sqlite(file, { readonly: true, fileMustExist: true });
    try {
        const count = (table: string): number =>
            db.prepare<[], { n: number }>(`select count(*) as n from ${table}`).get()?.n ?? 0;
        return { hosts: count('host'), users: count('users'), plugins: count('plugins') };
    } finally {
        db.close();
    }
}
