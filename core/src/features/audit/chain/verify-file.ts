/** Verifies the log of a panel that does not run, or beside one that does: reads the file, changes nothing. */
import Sqlite from 'better-sqlite3';

import type { Keyring } from '../../../platform/keyring.ts';
import { readHead } from './head.ts';
import { auditKeys } from './keys.ts';
import { type Verification, verifyChain } from './verify.ts';

/** @throws Error when the file is not a panel's database */
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
        // First the head, then the entries: a panel at work only makes the log longer in between.
        const head = readHead(headFile, keys.head);
        return await verifyChain({ source: db, keys, head });
    } finally {
        db.close();
    }
}
