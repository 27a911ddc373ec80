/** Who may use a database: a backup holds it beside the dump, because a server forgets it with the database. */
import { joi } from '@portico/sdk';

import type { AccountName, Level } from '../kinds/kind.ts';
import type { Target } from '../kinds/target.ts';

/** One account that may use a database. */
export interface DatabaseAccess extends AccountName {
    readonly level: Level;
    /** What the server keeps in place of the password; null where it is not known. */
    readonly verifier: string | null;
}

const accessSchema = joi
    .array()
    .items(
        joi.object({
            username: joi.string().max(255).required(),
            host: joi.string().max(255).allow(null).required(),
            level: joi.valid('read', 'write', 'owner').required(),
            verifier: joi.string().max(1_000).allow(null).required()
        })
    )
    .max(10_000)
    .required();

/** The accounts with a level in a database, without those of the server and the panel. */
export async function accessOf({ kind, admin }: Target, database: string): Promise<DatabaseAccess[]> {
    const found: DatabaseAccess[] = [];
    for (const { username, host, system, grants } of await kind.accounts.list(admin)) {
        const grant = grants.find((each) => each.database === database);
        if (!system && grant !== undefined) {
            const verifier = await kind.accounts.verifierOf(admin, { username, host });
            found.push({ username, host, level: grant.level, verifier });
        }
    }
    return found;
}

/**
 * Gives accounts their levels in a database back. One that is gone is made again with the password that it had.
 *
 * @param text - JSON of {@link DatabaseAccess}[]
 * @returns the names of those that could not be made again
 * @throws TypeError for any other text
 */
export async function restoreAccess(
    { kind, admin }: Target,
    database: string,
    text: string
): Promise<readonly string[]> {
    const { error, value } = accessSchema.validate(JSON.parse(text));
    if (error !== undefined) {
        throw new TypeError(`The accounts of the backup cannot be read: ${error.message}`);
    }
    const { accounts } = kind;
    const there = new Map((await accounts.list(admin)).map((each) => [accounts.format(each), each]));
    const lost: string[] = [];
    for (const { username, host, level, verifier } of value as readonly DatabaseAccess[]) {
        const account = { username, host };
        const name = accounts.format(account);
        const found = there.get(name);
        const isMade =
            found === undefined &&
            verifier !== null &&
            (await accounts.createVerified(admin, account, verifier));
        if (found?.system === true || (found === undefined && !isMade)) {
            lost.push(name);
        } else {
            await accounts.ensureLevel(admin, account, { database, level });
        }
    }
    return lost;
}
