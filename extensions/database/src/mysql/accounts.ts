/** Accounts of MySQL and MariaDB. A level is a set of privileges on one database. */
import { createHash } from 'node:crypto';

import { errors } from '@portico/sdk';

import { makePassword } from '../credentials/passwords.ts';
import type {
    Access,
    AccountInfo,
    AccountName,
    AccountStatements,
    Grant,
    Level,
    Session
} from '../kinds/kind.ts';
import { quoteAccount, quotePassword, quotePattern } from './names.ts';

const privileges: Readonly<Record<Level, string>> = {
    read: 'select, show view',
    write: 'select, show view, insert, update, delete, execute, create temporary tables, lock tables',
    owner: 'all privileges'
};
const systemNames = /^(root|mysql|mariadb\.sys|mysql\.(sys|session|infoschema)|debian-sys-maint|portico.*)$/;
const usage = 'USAGE';
/** A hash of the plugin `mysql_native_password`, which is what MariaDB makes of a password. */
const nativeHash = /^\*[0-9A-F]{40}$/;

/** The account that a path names: what stands behind the last `@` is where it comes from. */
export function parseAccount(name: string): AccountName {
    const at = name.lastIndexOf('@');
    return at < 0
        ? { username: name, host: 'localhost' }
        : { username: name.slice(0, at), host: name.slice(at + 1) };
}

/** The accounts of a server. */
export const accounts: AccountStatements = {
    parse: parseAccount,
    format: ({ username, host }) => `${username}@${host ?? 'localhost'}`,
    list: (access) => access.use(null, (session) => listAccounts(session, access.username)),
    async create(access, account, password) {
        await access.use(null, async (session) => {
            if (await exists(session, account)) {
                throw errors.conflict('username');
            }
            await session.run(
                `create user ${quoteAccount(account)} identified by ${quotePassword(password)}`
            );
        });
    },
    verifierOf: (access, account) => access.use(null, (session) => readVerifier(session, account)),
    async createVerified(access, account, verifier) {
        if (!nativeHash.test(verifier) || systemNames.test(account.username)) {
            return false;
        }
        return access.use(null, async (session) => {
            if (session.flavour === 'mariadb') {
                await session.run(
                    `create user ${quoteAccount(account)} identified via mysql_native_password using '${verifier}'`
                );
            }
            return session.flavour === 'mariadb';
        });
    },
    setPassword: (access, account, password) =>
        alter(access, account, `identified by ${quotePassword(password)}`),
    async setOwnPassword(access, password) {
        await access.use(null, (session) =>
            session.run(
                session.flavour === 'mariadb'
                    ? `set password = password(${quotePassword(password)})`
                    : `alter user current_user() identified by ${quotePassword(password)}`
            )
        );
    },
    setLocked: (access, account, locked) =>
        alter(access, account, locked ? 'account lock' : 'account unlock'),
    setGrants: (access, account, grants) =>
        access.use(null, (session) => replaceGrants(session, account, grants)),
    guestOf,
    async createGuest(access, account, { database, password }) {
        await access.use(null, async (session) => {
            const name = quoteAccount(account);
            await session.run(`create user if not exists ${name} identified by ${quotePassword(password)}`);
            await session.run(`alter user ${name} identified by ${quotePassword(password)}`);
            await session.run(`alter user ${name} account unlock`);
            await give(session, account, { database, level: 'owner' });
        });
    },
    closeGuest: (access, account) => alter(access, account, 'account lock'),
    drop: (access, account) =>
        access.use(null, async (session) => void (await session.run(`drop user ${quoteAccount(account)}`))),
    async ensureLevel(access, account, { database, level }) {
        await access.use(null, (session) => give(session, account, { database, level }));
    }
};

/** The account of restores. It stays behind, locked, as the definer of the views and routines that it made, and goes with the database. */
export function guestOf(database: string): AccountName {
    return {
        username: `portico_${createHash('sha256').update(database).digest('hex').slice(0, 16)}`,
        host: '%'
    };
}

/** Makes sure that there is the account that owns what the panel makes in a database. A new one is locked. */
export async function ensureDefiner(session: Session, account: AccountName, database: string): Promise<void> {
    const password = quotePassword(makePassword());
    await session.run(
        `create user if not exists ${quoteAccount(account)} identified by ${password} account lock`
    );
    await give(session, account, { database, level: 'owner' });
}

/** Takes every right on a database away. */
export async function revokeDatabase(session: Session, database: string): Promise<void> {
    const rows = await selectGrants(session);
    for (const { grantee, grant } of rows.filter((row) => row.grant.database === database)) {
        await take(session, grantee, grant.database);
    }
}

async function readVerifier(session: Session, { username, host }: AccountName): Promise<string | null> {
    if (session.flavour !== 'mariadb') {
        return null;
    }
    const [row] = await session.all(
        `select json_value(priv, '$.authentication_string') as verifier from mysql.global_priv
         where user = ? and host = ? and json_value(priv, '$.plugin') = 'mysql_native_password'`,
        [username, host]
    );
    const verifier = String(row?.['verifier']);
    return nativeHash.test(verifier) ? verifier : null;
}

async function alter(access: Access, account: AccountName, what: string): Promise<void> {
    await access.use(
        null,
        async (session) => void (await session.run(`alter user ${quoteAccount(account)} ${what}`))
    );
}

async function give(session: Session, account: AccountName, { database, level }: Grant): Promise<void> {
    const found = await session.all('select 1 from information_schema.schemata where schema_name = ?', [
        database
    ]);
    if (found.length === 0) {
        throw errors.notFound(`There is no database ${database}`);
    }
    await session.run(
        `grant ${privileges[level]} on ${quotePattern(database)}.* to ${quoteAccount(account)}`
    );
}

async function take(session: Session, account: AccountName, database: string): Promise<void> {
    await session.run(`revoke all privileges on ${quotePattern(database)}.* from ${quoteAccount(account)}`);
}

async function replaceGrants(
    session: Session,
    account: AccountName,
    grants: readonly Grant[]
): Promise<void> {
    const all = await selectGrants(session);
    const now = all.filter(({ grantee }) => isSame(grantee, account)).map(({ grant }) => grant);
    for (const { database, level } of now) {
        if (!grants.some((grant) => grant.database === database && grant.level === level)) {
            await take(session, account, database);
        }
    }
    for (const grant of grants) {
        await give(session, account, grant);
    }
}

async function exists(session: Session, { username, host }: AccountName): Promise<boolean> {
    return (
        (await session.all('select 1 from mysql.user where user = ? and host = ?', [username, host])).length >
        0
    );
}

async function listAccounts(session: Session, own: string): Promise<readonly AccountInfo[]> {
    const rows = (await session.all(
        session.flavour === 'mariadb'
            ? `select user as username, host as host, coalesce(json_value(priv, '$.account_locked'), 'false') as locked
               from mysql.global_priv where coalesce(json_value(priv, '$.is_role'), 'false') not in ('true', '1') order by user, host`
            : "select user as username, host as host, if(account_locked = 'Y', 'true', 'false') as locked from mysql.user order by user, host"
    )) as { username: string; host: string; locked: string }[];
    const grants = await selectGrants(session);
    return rows.map(({ username, host, locked }) => ({
        username,
        host,
        locked: locked === 'true' || locked === '1',
        grants: grants.filter(({ grantee }) => isSame(grantee, { username, host })).map(({ grant }) => grant),
        system: username === own || systemNames.test(username)
    }));
}

/** Levels on databases, of all accounts. Rights that make no level, such as on one table, are not shown. */
async function selectGrants(session: Session): Promise<readonly { grantee: AccountName; grant: Grant }[]> {
    const rows = (await session.all(
        `select grantee as grantee, table_schema as pattern, group_concat(privilege_type) as names
         from information_schema.schema_privileges group by grantee, table_schema order by table_schema`
    )) as { grantee: string; pattern: string; names: string }[];
    return rows.flatMap(({ grantee, pattern, names }) => {
        const database = pattern.replace(/\\([\\_%])/g, '$1');
        const level = levelOf(names.split(','));
        const account = accountOf(grantee);
        return level === null || account === null ? [] : [{ grantee: account, grant: { database, level } }];
    });
}

function levelOf(names: readonly string[]): Level | null {
    if (names.includes('CREATE') && names.includes('DROP') && names.includes('ALTER')) {
        return 'owner';
    }
    if (names.some((name) => ['INSERT', 'UPDATE', 'DELETE'].includes(name))) {
        return 'write';
    }
    return names.every((name) => name === usage) ? null : 'read';
}

/** `'shop'@'10.0.0.%'` as the server writes it: the quotes inside of it are not doubled, and a host holds none. */
function accountOf(grantee: string): AccountName | null {
    const [, username, host] = /^'(.*)'@'([^']*)'$/s.exec(grantee) ?? [];
    return username === undefined || host === undefined ? null : { username, host };
}

function isSame(one: AccountName, other: AccountName): boolean {
    return one.username === other.username && one.host === other.host;
}
