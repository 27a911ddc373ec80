/**
 * Levels of PostgreSQL: three roles for each database that cannot log in and hold its rights. An account has a level by membership, which shows
 * in every database of the server. What the owner's members make belongs to the owner's role, so all of them can change it.
 */
import { errors } from '@portico/sdk';

import type { Access, Level, Session } from '../../kinds/kind.ts';
import { literal, quote } from './names.ts';

/** The roles of one database. */
export interface Groups {
    readonly oid: number;
    readonly read: string;
    readonly write: string;
    /** The owner of the database; null where that is a superuser, whose rights no account gets. */
    readonly owner: string | null;
}

/** A database and its owner. */
interface Owned {
    readonly oid: number;
    readonly owner: string;
    readonly rolsuper: boolean;
}

const systemSchemas = "n.nspname !~ '^pg_' and n.nspname <> 'information_schema'";

/** Names of the roles of a database, whether they exist or not. */
export const groupName = (oid: number, level: Level): string => `portico_${oid}_${level}`;
/** A pattern of the names of all such roles, for the server. */
export const groupPattern = '^portico_[0-9]+_(read|write|owner)$';

/** The roles of a database; made where they are missing, with rights on all that is there. @throws NOT_FOUND 40400 */
export async function ensureGroups(access: Access, database: string): Promise<Groups> {
    const { oid, owner, rolsuper } = await access.use(null, (session) => ownerOf(session, database));
    const groups = {
        oid,
        read: groupName(oid, 'read'),
        write: groupName(oid, 'write'),
        owner: rolsuper ? null : owner
    };
    await access.use(database, async (session) => {
        await session.run('begin');
        await session.run(`select pg_advisory_xact_lock(${oid})`);
        const isNew = await makeRole(session, groups.read);
        if ((await makeRole(session, groups.write)) || isNew) {
            await session.run(`grant ${quote(groups.read)} to ${quote(groups.write)}`);
            if (owner === groupName(oid, 'owner')) {
                await session.run(`grant ${quote(groups.write)} to ${quote(owner)}`);
            }
            await session.run(
                `grant connect, temporary on database ${quote(database)} to ${quote(groups.read)}`
            );
        }
        await grantMissing(session, groups);
        if (isNew) {
            await presetRights(session, groups, owner);
        }
        await session.run('commit');
    });
    return groups;
}

/** Makes the owner's role of a new database and gives it the database. */
export async function ownByGroup(access: Access, database: string): Promise<void> {
    const owner = await access.use(null, async (session) => {
        const { oid } = await ownerOf(session, database);
        const name = groupName(oid, 'owner');
        await makeRole(session, name);
        const [self] = await session.all('select rolsuper from pg_roles where rolname = current_user');
        if (self?.['rolsuper'] !== true) {
            await session.run(`grant ${quote(name)} to current_user`);
        }
        await session.run(`alter database ${quote(database)} owner to ${quote(name)}`);
        await session.run(`revoke all on database ${quote(database)} from public`);
        return name;
    });
    await access.use(database, async (session) => {
        await session.run('revoke create on schema public from public');
        await session.run(`alter schema public owner to ${quote(owner)}`);
    });
}

/** Removes the roles of a database that is gone. */
export async function dropGroups(session: Session, oid: number): Promise<void> {
    for (const level of ['owner', 'write', 'read'] as const) {
        const name = groupName(oid, level);
        const found = await session.all('select 1 from pg_roles where rolname = $1', [name]);
        if (found.length > 0) {
            await session.run(`drop role ${quote(name)}`);
        }
    }
}

/** Number and owner of a database. @throws NOT_FOUND 40400 */
export async function ownerOf(session: Session, database: string): Promise<Owned> {
    const [found] = (await session.all(
        'select d.oid::int8 as oid, r.rolname as owner, r.rolsuper from pg_database d join pg_roles r on r.oid = d.datdba where d.datname = $1',
        [database]
    )) as readonly unknown[] as readonly Owned[]; // the columns that the statement names
    if (found === undefined) {
        throw errors.notFound(`There is no database ${database}`);
    }
    return found;
}

async function makeRole(session: Session, name: string): Promise<boolean> {
    const found = await session.all('select 1 from pg_roles where rolname = $1', [name]);
    if (found.length === 0) {
        await session.run(`create role ${quote(name)} nologin`);
    }
    return found.length === 0;
}

/** Gives the rights on what the server can give: objects made since, by others than the owner, are among them. */
async function grantMissing(session: Session, { read, write }: Groups): Promise<void> {
    const schemas = await names(
        session,
        `select n.nspname as name from pg_namespace n where ${systemSchemas} and not has_schema_privilege(${literal(read)}, n.oid, 'usage')`
    );
    for (const schema of schemas) {
        await session.run(`grant usage on schema ${quote(schema)} to ${quote(read)}`);
    }
    const missing = (await session.all(
        `select n.nspname as schema, c.relname as name, c.relkind = 'S' as sequence from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where ${systemSchemas} and c.relkind in ('r', 'v', 'm', 'f', 'p', 'S') and pg_has_role(c.relowner, 'usage')
           and case when c.relkind = 'S' then not has_sequence_privilege(${literal(write)}, c.oid, 'usage')
                    else not has_table_privilege(${literal(read)}, c.oid, 'select') or not has_table_privilege(${literal(write)}, c.oid, 'update') end`
    )) as { schema: string; name: string; sequence: boolean }[];
    for (const { schema, name, sequence } of missing) {
        const relation = `${quote(schema)}.${quote(name)}`;
        await session.run(`grant select on ${relation} to ${quote(read)}`);
        await session.run(
            sequence
                ? `grant usage, update on sequence ${relation} to ${quote(write)}`
                : `grant insert, update, delete, truncate on ${relation} to ${quote(write)}`
        );
    }
}

/** The rights on what the owner will make. */
async function presetRights(session: Session, { read, write }: Groups, owner: string): Promise<void> {
    const preset = `alter default privileges for role ${quote(owner)}`;
    for (const grant of [
        `grant usage on schemas to ${quote(read)}`,
        `grant select on tables to ${quote(read)}`,
        `grant select on sequences to ${quote(read)}`,
        `grant insert, update, delete, truncate on tables to ${quote(write)}`,
        `grant usage, update on sequences to ${quote(write)}`
    ]) {
        await session.run(`${preset} ${grant}`);
    }
}

async function names(session: Session, sql: string): Promise<readonly string[]> {
    return (await session.all(sql)).map(({ name }) => String(name));
}
