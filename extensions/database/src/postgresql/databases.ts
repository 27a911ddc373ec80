/** Databases of PostgreSQL. */
import { errors } from '@portico/sdk';

import type {
    Access,
    DatabaseInfo,
    DatabaseStatements,
    NewDatabase,
    Session,
    SwapStatements
} from '../kinds/kind.ts';
import { accounts } from './accounts/accounts.ts';
import { dropGroups, ensureGroups, ownByGroup, ownerOf } from './accounts/groups.ts';
import { literal, quote } from './accounts/names.ts';

const system = new Set(['postgres', 'template0', 'template1']);

/** The databases of a server. */
export const databases: DatabaseStatements = {
    isSystem: (name) => system.has(name),
    list: (session) => select(session, null),
    get,
    create,
    drop
};

/** How a new database takes the place of one. */
export const swap: SwapStatements = { check: () => Promise.resolve(), run: exchange, reconcile: drop };

async function get(access: Access, name: string): Promise<DatabaseInfo> {
    const [found] = await access.use(null, (session) => select(session, name));
    if (found === undefined) {
        throw errors.notFound(`There is no database ${name}`);
    }
    if (name === 'template0') {
        return found;
    }
    const [row] = await access.use(name, (session) =>
        session.all(
            `select count(*) as tables from pg_class c join pg_namespace n on n.oid = c.relnamespace
             where c.relkind in ('r', 'v', 'm', 'f', 'p') and not c.relispartition and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'`
        )
    );
    return { ...found, tables: Number(row?.['tables'] ?? 0) };
}

async function create(access: Access, { name, owner, charset, collation }: NewDatabase): Promise<void> {
    await access.use(null, async (session) => {
        if ((await select(session, name)).length > 0) {
            throw errors.conflict('name');
        }
        const words = [
            charset === null ? '' : ` encoding ${literal(charset)}`,
            collation === null ? '' : ` lc_collate ${literal(collation)} lc_ctype ${literal(collation)}`
        ];
        await session.run(`create database ${quote(name)} template template0${words.join('')}`);
    });
    try {
        await ownByGroup(access, name);
        await ensureGroups(access, name);
        if (owner !== null) {
            await accounts.ensureLevel(access, accounts.parse(owner), { database: name, level: 'owner' });
        }
    } catch (error) {
        await drop(access, name);
        throw error;
    }
}

async function drop(access: Access, name: string): Promise<void> {
    await access.use(null, async (session) => {
        const { oid } = await ownerOf(session, name);
        await session.run(`drop database ${quote(name)} with (force)`);
        await dropGroups(session, oid);
    });
}

/** In one transaction; sessions that use either are ended. Accounts follow the name, so they get their levels in the other one. */
async function exchange(access: Access, name: string, other: string): Promise<void> {
    const all = await accounts.list(access);
    const held = all.flatMap((account) =>
        account.grants.filter(({ database }) => database === name).map(({ level }) => ({ account, level }))
    );
    for (const { account, level } of held) {
        await accounts.ensureLevel(access, account, { database: other, level });
    }
    await access.use(null, async (session) => {
        await session.run('begin');
        await session.all(
            'select pg_terminate_backend(pid) from pg_stat_activity where datname = any($1) and pid <> pg_backend_pid()',
            [[name, other]]
        );
        const between = `portico_swap_${Date.now()}`;
        for (const [from, to] of [
            [name, between],
            [other, name],
            [between, other]
        ] as const) {
            await session.run(`alter database ${quote(from)} rename to ${quote(to)}`);
        }
        await session.run('commit');
    });
}

async function select(session: Session, name: string | null): Promise<readonly DatabaseInfo[]> {
    const rows = (await session.all(
        `select d.datname as name, r.rolname as owner, pg_encoding_to_char(d.encoding) as charset, d.datcollate as collation,
                case when has_database_privilege(d.oid, 'connect') or pg_has_role('pg_read_all_stats', 'usage') then pg_database_size(d.oid) else 0 end as bytes
         from pg_database d left join pg_roles r on r.oid = d.datdba${name === null ? '' : ' where d.datname = $1'} order by d.datname collate "C"`,
        name === null ? [] : [name]
    )) as { name: string; owner: string | null; charset: string; collation: string | null; bytes: number }[];
    return rows.map(({ bytes, ...row }) => ({
        ...row,
        sizeBytes: Number(bytes),
        tables: null,
        system: system.has(row.name)
    }));
}
