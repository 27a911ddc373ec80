/** Verifies the audit log in a database file, without changing it and whether or not the panel runs. */
import Sqlite from 'better-sqlite3';

import type { Keyring } from '../../../platform/keys/keyring.ts';
import { readHead } from './head.ts';
import { auditKeys } from './keys.ts';
import { type Verification, verifyChain } from './verify.ts';

/** Checks the chain in `file` against its head file. @throws Error when the file is not a panel's database */
export async function verifyAuditFile({
    file,
    headFile,
    keyring
}: {
    readonly file: string;
    readonly headFile: string;
    readonly keyring: Pick<Keyring, 'derive'>;
}): Promise<Verification> {
    const db = new Sqlite(file, { fileMustExist: true, timeout: 5_000 });
    try {
        db.pragma('query_only = ON');
        const keys = auditKeys(keyring);
        // The head is read first: a running panel can only make the log longer in between.
        const head = readHead(headFile, keys.head);
        return await verifyChain({ source: db, keys, head });
    } finally {
        db.close();
    }
}
