/** The head file beside a copy of the database. The copy is newer than the head that was read before it was made. */
import Sqlite from 'better-sqlite3';

import type { Keyring } from '../../../platform/keys/keyring.ts';
import { genesis, type Head, openHead, readHead } from './head.ts';
import { auditKeys } from './keys.ts';

/** Where the head of the panel lies, and where its copy goes. */
export interface CopiedHead {
    /** The panel's head file. */
    readonly live: string;
    /** The head file of the copy. */
    readonly copy: string;
    readonly keyring: Pick<Keyring, 'derive'>;
}

/**
 * Reads the panel's head before the database is copied. The function that it returns writes the copy's head: the last entry of the copied
 * database where the log goes on from the head that was read, else that head itself, so that a broken log stays broken in its copy.
 */
export function copyHead({ live, copy, keyring }: CopiedHead): (database: string) => void {
    const { head: key } = auditKeys(keyring);
    const stored = readHead(live, key);
    return (database) => {
        if (stored.state !== 'valid') {
            return;
        }
        const head = openHead(copy, key);
        try {
            head.write(headOf(database, stored.head));
            head.flush();
        } finally {
            head.close();
        }
    };
}

function headOf(database: string, known: Head): Head {
    const db = new Sqlite(database, { readonly: true, fileMustExist: true });
    try {
        const hashOf = (sequence: number): string | undefined =>
            sequence === 0
                ? genesis.hash
                : (
                      db
                          .prepare<[number], { hash: string }>('select hash from audit_entries where id = ?')
                          .get(sequence) ??
                      db
                          .prepare<[number], { hash: string }>(
                              "select hash from audit_checkpoints where sequence = ? and kind = 'sealed'"
                          )
                          .get(sequence)
                  )?.hash;
        const last = db
            .prepare<[], Head>('select id as sequence, hash from audit_entries order by id desc limit 1')
            .get();
        return last !== undefined && last.sequence >= known.sequence && hashOf(known.sequence) === known.hash
            ? { sequence: last.sequence, hash: last.hash }
            : known;
    } finally {
        db.close();
    }
}
