/** Takes all databases, accounts and rights of PostgreSQL to a newer release, by that release's `pg_dumpall` and `psql`. */
import { access } from 'node:fs/promises';

import { errors } from '@portico/sdk';

import { releaseFolder, toolUser } from '../../dumps/clients.ts';
import { tailOf } from '../../dumps/streams.ts';
import { fail } from '../../errors.ts';
import type { Access, Session } from '../../kinds/kind.ts';
import { groupName, groupPattern } from '../../postgresql/accounts/groups.ts';
import { literal, quote } from '../../postgresql/accounts/names.ts';
import type { EngineUpgrade, Plan, UpgradeWork } from '../engine.ts';

const tools = ['pg_dumpall', 'pg_dump', 'psql'] as const;
const levels = ['read', 'write', 'owner'] as const;

/** The way of PostgreSQL to a newer release. */
export const postgresUpgrade: EngineUpgrade = {
    isNewer: (release, than) => Number(release) > Number(than),
    async check(release) {
        for (const tool of tools) {
            try {
                await access(toolOf(release, tool));
            } catch {
                throw errors.toolMissing(
                    `${tool} ${release}`,
                    `apt-get install postgresql-client-${release}`
                );
            }
        }
    },
    async fill(work) {
        const { from, to, progress } = work;
        progress(0.1, 'Making the new data folder');
        await work.initialise();
        progress(0.2, 'Closing the server to all but the panel');
        await work.start('old');
        await work.start('new');
        progress(0.3, 'Moving databases and accounts');
        await pour(work);
        await renameGroups(from.access, to.access);
    }
};

const toolOf = (release: string, tool: (typeof tools)[number]): string =>
    `${releaseFolder}/${release}/bin/${tool}`;

async function pour({ ctx, from, to, login: { username, password }, signal }: UpgradeWork): Promise<void> {
    const { release } = to.plan;
    const options = {
        ...toolUser,
        env: { PGPASSFILE: 'pgpass' },
        privateFiles: { pgpass: `*:*:*:*:${password.replace(/[\\:]/g, '\\$&')}\n` },
        isolate: { network: false },
        signal
    } as const;
    const conninfo = ({ runFolder, port }: Plan): string =>
        `host='${runFolder.replace(/['\\]/g, '\\$&')}' port=${port} user=${username} dbname=postgres`;
    await using reader = await ctx.spawn(
        toolOf(release, 'psql'),
        [
            '--no-psqlrc',
            '--no-password',
            '--quiet',
            '--set=ON_ERROR_STOP=1',
            `--dbname=${conninfo(to.plan)}`,
            '--file=-'
        ],
        options
    );
    await using dump = await ctx.spawn(
        toolOf(release, 'pg_dumpall'),
        ['--no-password', `--dbname=${conninfo(from.plan)}`],
        options
    );
    await dump.stdin.close();
    const said = [tailOf(dump.stderr), tailOf(reader.stderr), drained(reader.stdout)] as const;
    await feed(reader.stdin, withoutRole(dump.stdout, username));
    const [dumped, restored] = [await dump.exited, await reader.exited];
    signal.throwIfAborted();
    if (dumped.code !== 0 || restored.code !== 0) {
        const [ofDump, ofReader] = await Promise.all(said);
        // Where the restore ended first, the dump failed only because its reader was gone.
        const message = restored.code === 0 ? `pg_dumpall: ${ofDump}` : `psql: ${ofReader}`;
        throw fail.SQL_FAILED({ sqlState: null, message });
    }
}

async function drained(source: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const _ of source) {
        // What `psql` prints says nothing that its errors do not.
    }
}

/** Writes to a program, which may end before it has read all; then its exit code says why. */
async function feed(target: WritableStream<Uint8Array>, source: AsyncIterable<Uint8Array>): Promise<void> {
    const writer = target.getWriter();
    let isOpen = true;
    for await (const chunk of source) {
        if (isOpen) {
            await writer.write(chunk).catch(() => (isOpen = false));
        }
    }
    if (isOpen) {
        await writer.close().catch(() => undefined);
    }
}

/** A dump without the statement that makes a role which the new server has from its beginning. The roles stand before the first database. */
async function* withoutRole(source: AsyncIterable<Uint8Array>, username: string): AsyncGenerator<Uint8Array> {
    const statement = Buffer.from(`\nCREATE ROLE ${username};\n`);
    let head: Buffer | null = Buffer.alloc(0);
    for await (const chunk of source) {
        if (head === null) {
            yield chunk;
            continue;
        }
        head = Buffer.concat([head, chunk]);
        const start = head.indexOf(statement);
        if (start !== -1) {
            yield head.subarray(0, start + 1);
            yield head.subarray(start + statement.length);
            head = null;
        } else if (head.includes('\n\\connect ')) {
            yield head;
            head = null;
        }
    }
    if (head !== null) {
        yield head;
    }
}

/** The roles of a database bear its number, which is another one now. They take names in between, because a new number may be that of another database before. */
async function renameGroups(from: Access, to: Access): Promise<void> {
    const before = await from.use(null, databases);
    await to.use(null, async (session) => {
        const after = await databases(session);
        const there = await session.all(
            `select rolname as name from pg_roles where rolname ~ ${literal(groupPattern)}`
        );
        const names = new Set(there.map(({ name }) => String(name)));
        const renames = [...after].flatMap(([database, oid]) =>
            levels
                .map((level) => ({
                    old: groupName(before.get(database) ?? 0, level),
                    now: groupName(oid, level)
                }))
                .filter(({ old }) => names.has(old))
        );
        await session.run('begin');
        for (const { old, now } of renames) {
            await session.run(`alter role ${quote(old)} rename to ${quote(`portico_up_${now}`)}`);
        }
        for (const { now } of renames) {
            await session.run(`alter role ${quote(`portico_up_${now}`)} rename to ${quote(now)}`);
        }
        await session.run('commit');
    });
}

async function databases(session: Session): Promise<ReadonlyMap<string, number>> {
    const rows = await session.all('select datname as name, oid::int8 as oid from pg_database');
    return new Map(rows.map(({ name, oid }) => [String(name), Number(oid)]));
}
