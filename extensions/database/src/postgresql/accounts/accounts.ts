/** Accounts of PostgreSQL: roles that log in. Their levels are memberships, see `groups.ts`. */
import { randomUUID } from 'node:crypto';

import { errors } from '@portico/sdk';

import type {
    Access,
    AccountInfo,
    AccountName,
    AccountStatements,
    Grant,
    Level,
    Session
} from '../../kinds/kind.ts';
import { ensureGroups, groupPattern, ownerOf } from './groups.ts';
import { literal, quote } from './names.ts';
import { isVerifier, verifierOf } from './password.ts';

const rights = 'nosuperuser nocreatedb nocreaterole noreplication nobypassrls';

/** The accounts of a server. */
export const accounts: AccountStatements = {
    parse: (name) => ({ username: name, host: null }),
    format: ({ username }) => username,
    list: (access) => access.use(null, (session) => listAccounts(session, access.username)),
    async create(access, { username }, password) {
        const verifier = await verifierOf(password);
        await access.use(null, async (session) => {
            if (await exists(session, username)) {
                throw errors.conflict('username');
            }
            await createRole(session, username, verifier);
        });
    },
    async verifierOf(access, { username }) {
        // Only a superuser reads verifiers.
        const rows = await access
            .use(null, (session) =>
                session.all('select rolpassword as verifier from pg_authid where rolname = $1', [username])
            )
            .catch(() => []);
        const verifier = String(rows[0]?.['verifier']);
        return isVerifier(verifier) ? verifier : null;
    },
    async createVerified(access, { username }, verifier) {
        if (!isVerifier(verifier) || /^(pg_|portico_)/.test(username)) {
            return false;
        }
        await access.use(null, (session) => createRole(session, username, verifier));
        return true;
    },
    async setPassword(access, account, password) {
        await alter(access, account, `password ${literal(await verifierOf(password))}`);
    },
    async setOwnPassword(access, password) {
        await alter(
            access,
            { username: access.username, host: null },
            `password ${literal(await verifierOf(password))}`
        );
    },
    setLocked: (access, account, locked) => alter(access, account, locked ? 'nologin' : 'login'),
    async setGrants(access, account, grants) {
        const [found] = (await accounts.list(access)).filter(({ username }) => username === account.username);
        for (const { database, level } of found?.grants ?? []) {
            if (!grants.some((grant) => grant.database === database && grant.level === level)) {
                await take(access, account, { database, level });
            }
        }
        for (const grant of grants) {
            await give(access, account, grant);
        }
    },
    guestOf: () => ({ username: `portico_guest_${randomUUID().replaceAll('-', '')}`, host: null }),
    async createGuest(access, account, { database, password }) {
        await accounts.create(access, account, password);
        await give(access, account, { database, level: 'owner' });
    },
    closeGuest: drop,
    drop,
    ensureLevel: give
};

async function createRole(session: Session, username: string, verifier: string): Promise<void> {
    await session.run(`create role ${quote(username)} login ${rights} password ${literal(verifier)}`);
}

async function alter(access: Access, { username }: AccountName, what: string): Promise<void> {
    await access.use(
        null,
        async (session) => void (await session.run(`alter role ${quote(username)} ${what}`))
    );
}

/** The role that stands for a level. @throws VALIDATION_FAILED 40001 where the owner is a superuser */
async function groupOf(access: Access, { database, level }: Grant): Promise<string> {
    const groups = await ensureGroups(access, database);
    const group = level === 'owner' ? groups.owner : groups[level];
    if (group === null) {
        throw errors.invalid([
            {
                path: 'grants',
                message: `The database ${database} belongs to a superuser, whose rights no account may get`
            }
        ]);
    }
    return group;
}

async function give(access: Access, { username }: AccountName, grant: Grant): Promise<void> {
    const group = await groupOf(access, grant);
    if (group === username) {
        return;
    }
    await access.use(null, async (session) => {
        await session.run(`grant ${quote(group)} to ${quote(username)}`);
        if (grant.level === 'owner') {
            // What the account makes belongs to the owner's role.
            await session.run(
                `alter role ${quote(username)} in database ${quote(grant.database)} set role to ${literal(group)}`
            );
        }
    });
}

async function take(access: Access, { username }: AccountName, grant: Grant): Promise<void> {
    const group = await groupOf(access, grant);
    await access.use(null, async (session) => {
        await session.run(`revoke ${quote(group)} from ${quote(username)}`);
        await session.run(`alter role ${quote(username)} in database ${quote(grant.database)} reset role`);
    });
}

/** A role can be dropped when nothing in any database belongs to it or names it. */
async function drop(access: Access, { username }: AccountName): Promise<void> {
    const databases = await access.use(null, (session) =>
        session.all(
            `select distinct d.datname as name from pg_shdepend s join pg_roles r on r.oid = s.refobjid and s.refclassid = 'pg_authid'::regclass
             join pg_database d on d.oid = s.dbid or (s.dbid = 0 and s.classid = 'pg_database'::regclass and d.oid = s.objid)
             where r.rolname = $1 and d.datallowconn`,
            [username]
        )
    );
    for (const { name } of databases) {
        await access.use(String(name), async (session) => {
            const { owner } = await ownerOf(session, String(name));
            const heir = owner === username ? access.username : owner;
            await session.run(`reassign owned by ${quote(username)} to ${quote(heir)}`);
            await session.run(`drop owned by ${quote(username)}`);
        });
    }
    await access.use(null, async (session) => {
        await session.all('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [
            username
        ]);
        await session.run(`drop role ${quote(username)}`);
    });
}

async function exists(session: Session, username: string): Promise<boolean> {
    return (await session.all('select 1 from pg_roles where rolname = $1', [username])).length > 0;
}

async function listAccounts(session: Session, own: string): Promise<readonly AccountInfo[]> {
    const roles = (await session.all(
        `select rolname as username, not rolcanlogin as locked, rolsuper as super from pg_roles
         where rolname !~ '^pg_' and rolname !~ $1 order by rolname collate "C"`,
        [groupPattern]
    )) as { username: string; locked: boolean; super: boolean }[];
    const grants = (await session.all(
        `select r.rolname as username, d.datname as database,
                case when g.oid = d.datdba then 'owner' when g.rolname like '%\\_write' then 'write' else 'read' end as level
         from pg_auth_members m join pg_roles r on r.oid = m.member join pg_roles g on g.oid = m.roleid
         join pg_database d on g.oid = d.datdba or g.rolname in ('portico_' || d.oid || '_read', 'portico_' || d.oid || '_write')
         where r.rolname !~ $1 order by d.datname collate "C"`,
        [groupPattern]
    )) as { username: string; database: string; level: Level }[];
    return roles.map(({ username, locked, super: isSuper }) => ({
        username,
        host: null,
        locked,
        grants: grants
            .filter((grant) => grant.username === username)
            .map(({ database, level }) => ({ database, level })),
        system: isSuper || username === own || username.startsWith('portico')
    }));
}
