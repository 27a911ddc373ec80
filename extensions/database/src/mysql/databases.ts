/** Databases of MySQL and MariaDB. */
import { errors } from '@portico/sdk';

import type { Access, DatabaseInfo, DatabaseStatements, NewDatabase, Session } from '../kinds/kind.ts';
import { accounts, guestOf, parseAccount, revokeDatabase } from './accounts.ts';
import { quote, quoteAccount } from './names.ts';

const system = new Set(['mysql', 'information_schema', 'performance_schema', 'sys']);

const isSystem = (name: string): boolean => system.has(name.toLowerCase());

/** The databases of a server. */
export const databases: DatabaseStatements = { isSystem, list, get, create, drop };

async function list(session: Session): Promise<readonly DatabaseInfo[]> {
    return select(session, null);
}

async function get(access: Access, name: string): Promise<DatabaseInfo> {
    const [found] = await access.use(null, (session) => select(session, name));
    if (found === undefined) {
        throw errors.notFound(`There is no database ${name}`);
    }
    return found;
}

async function create(access: Access, { name, owner, charset, collation }: NewDatabase): Promise<void> {
    await access.use(null, async (session) => {
        if ((await select(session, name)).length > 0) {
            throw errors.conflict('name');
        }
        const words = [
            // The default of many servers holds only a part of all characters.
            charset === null
                ? collation === null
                    ? ' character set utf8mb4'
                    : ''
                : ` character set ${quote(charset)}`,
            collation === null ? '' : ` collate ${quote(collation)}`
        ];
        await session.run(`create database ${quote(name)}${words.join('')}`);
    });
    if (owner !== null) {
        try {
            await accounts.ensureLevel(access, parseAccount(owner), { database: name, level: 'owner' });
        } catch (error) {
            await drop(access, name);
            throw error;
        }
    }
}

/** Rights on a database outlive it on the server: accounts that had them would have them on the next one of that name. */
async function drop(access: Access, name: string): Promise<void> {
    await access.use(null, async (session) => {
        if ((await select(session, name)).length === 0) {
            throw errors.notFound(`There is no database ${name}`);
        }
        await session.run(`drop database ${quote(name)}`);
        await revokeDatabase(session, name);
        await session.run(`drop user if exists ${quoteAccount(guestOf(name))}`);
    });
}

async function select(session: Session, name: string | null): Promise<readonly DatabaseInfo[]> {
    const one = (column: string): string => (name === null ? '' : ` where ${column} = ?`);
    const rows = (await session.all(
        `select s.schema_name as name, s.default_character_set_name as charset, s.default_collation_name as collation, coalesce(t.bytes, 0) as bytes, coalesce(t.tables, 0) as tables
         from information_schema.schemata s
         left join (select table_schema, sum(coalesce(data_length, 0) + coalesce(index_length, 0)) as bytes, count(*) as tables
                    from information_schema.tables${one('table_schema')} group by table_schema) t on t.table_schema = s.schema_name
         ${one('s.schema_name')} order by s.schema_name`,
        name === null ? [] : [name, name]
    )) as { name: string; charset: string; collation: string; bytes: number; tables: number }[];
    return rows
        .filter((row) => name === null || row.name === name)
        .map((row) => ({
            name: row.name,
            owner: null,
            sizeBytes: Number(row.bytes),
            tables: Number(row.tables),
            charset: row.charset,
            collation: row.collation,
            system: isSystem(row.name)
        }));
}
