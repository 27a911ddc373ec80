/** The hooks of the core that the plugin taps: each database is one item of a backup, and each registered server one of an export. */
import { joi } from '@portico/sdk';

import { accessOf, restoreAccess } from './dumps/database-access.ts';
import { readFile } from './dumps/runner.ts';
import { ServerEntity, type ServerRow } from './entities.ts';
import { type NewServer, registeredServer } from './servers/input.ts';
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';

const item = 'servers';
/** What the folder of an item of a backup holds. */
const [dumpFile, accessFile] = ['database.dump', 'accounts.json'];

/** A database to back up. */
interface Item {
    readonly server: ServerRow;
    readonly database: string;
    readonly sizeBytes: number;
    readonly name: string;
}

/** Takes part in backups, exports and imports of the panel. The core seals what a plugin gives, so passwords may be in it. */
export function registerHooks(ctx: Ctx, services: Services): void {
    registerBackup(ctx, services);
    ctx.hooks.tap('export.collect', async () => [
        {
            name: item,
            data: { servers: await exported(ctx, services) },
            leftOut: ['dumps and what is in databases: they belong into a backup']
        }
    ]);
    ctx.hooks.tap('import.restore', async ({ items, mode }) => {
        const given = items.find(({ name }) => name === item);
        if (given === undefined) {
            return [];
        }
        const problems = await restore(ctx, services, given.data, mode);
        await services.schedules.refresh();
        return [
            problems.length === 0
                ? { item, ok: true }
                : { item, ok: false, message: `Not restored: ${problems.join('; ')}` }
        ];
    });
}

async function exported(ctx: Ctx, { servers }: Services): Promise<readonly NewServer[]> {
    const opened = (sealed: string | null): Promise<string> | string =>
        sealed === null ? '' : ctx.secrets.open(sealed);
    const rows = (await servers.list()).filter(({ mode }) => mode === 'registered');
    return Promise.all(
        rows.map(async (row) => ({
            name: row.name,
            kind: row.kind,
            mode: 'registered' as const,
            host: row.host,
            socket: row.socket,
            port: row.port,
            username: row.username,
            password: await opened(row.password),
            reader:
                row.readerName === null || row.readerMade
                    ? null
                    : { username: row.readerName, password: await opened(row.readerPassword) },
            tls: row.tls,
            ca: row.ca,
            dumpSchedule: row.dumpSchedule
        }))
    );
}

/** The name of an item: `server:database`. It must hold no slash and no control character; those are percent-encoded, and what separates. */
function itemName(server: string, database: string): string {
    const encoded = (text: string): string =>
        text.replace(/[%:/\p{Cc}]/gu, (found) => Buffer.from(found).toString('hex').replace(/../g, '%$&'));
    return `${encoded(server)}:${encoded(database)}`;
}

/** The database of an item of this server; null for an item of another one. */
function databaseIn(name: string, server: string): string | null {
    const start = itemName(server, '');
    return name.startsWith(start)
        ? name
              .slice(start.length)
              .replace(/((?:%[0-9a-f]{2})+)/g, (found) =>
                  Buffer.from(found.replaceAll('%', ''), 'hex').toString()
              )
        : null;
}

/** Each database of each server. Servers that rest because an admin stopped them have none. @throws SERVER_OFFLINE 50350 */
async function databasesOf(services: Services): Promise<readonly Item[]> {
    const rows = await awakeServers(services);
    return (await Promise.all(rows.map((row) => databasesOn(services, row)))).flat();
}

async function awakeServers({ servers, managed }: Services): Promise<readonly ServerRow[]> {
    const resting = await managed.resting();
    return (await servers.list()).filter(({ id }) => !resting.has(id));
}

async function databasesOn({ target }: Services, { id, name }: ServerRow): Promise<readonly Item[]> {
    const { kind, server, admin } = await target(id);
    const found = await admin.use(null, (session) => kind.databases.list(session));
    return found
        .filter(({ system }) => !system)
        .map(({ name: database, sizeBytes }) => ({
            server,
            database,
            sizeBytes,
            name: itemName(name, database)
        }));
}

/** Taps that dump databases for a backup, and bring them back as databases beside those that are there. */
function registerBackup(ctx: Ctx, services: Services): void {
    const { dumps } = services;
    ctx.hooks.tap('backup.list', async () => {
        // What a server has that does not answer now cannot be told.
        const lists = await Promise.allSettled(
            (await awakeServers(services)).map((row) => databasesOn(services, row))
        );
        return lists
            .flatMap((list) => (list.status === 'fulfilled' ? list.value : []))
            .map(({ name, server, database, sizeBytes }) => ({
                name,
                title: `Database ${database} of ${server.name}`,
                bytes: sizeBytes
            }));
    });
    ctx.hooks.tap('backup.collect', async ({ folder, only }) => {
        const files = ctx.files(folder);
        const wanted = (await databasesOf(services)).filter(
            ({ name }) => only === undefined || only.includes(name)
        );
        const items = [];
        for (const [index, { server, database, name }] of wanted.entries()) {
            const path = String(index);
            await files.createFolder(path, { mode: 0o700 });
            const bytes = await dumps.writeTo(files, `${path}/${dumpFile}`, { server, database });
            const accesses = await accessOf(await services.target(server.id), database);
            await using handle = await files.open(`${path}/${accessFile}`, 'wx', 0o600);
            await handle.writeFile(JSON.stringify(accesses));
            items.push({ name, title: `Database ${database} of ${server.name}`, path, bytes });
        }
        return items;
    });
    ctx.hooks.tap('backup.restore', async ({ folder, items }) => {
        const results = [];
        for (const { name, path } of items) {
            const outcome = await restoreItem(ctx, services, { folder, name, path }).then(
                (message) => ({ ok: true, message }),
                (error: unknown) => ({ ok: false, message: (error as Error).message })
            );
            results.push({ item: name, ...outcome });
        }
        return results;
    });
}

/** Restores under its own name, or beside a database that has it. Returns where it went. */
async function restoreItem(
    ctx: Ctx,
    { servers, dumps, target }: Services,
    { folder, name, path }: { readonly folder: string; readonly name: string; readonly path: string }
): Promise<string> {
    const found = (await servers.list()).find((server) => databaseIn(name, server.name) !== null);
    if (found === undefined) {
        throw new TypeError(`There is no server for ${name}: register it under its former name first`);
    }
    const wanted = databaseIn(name, found.name) ?? '';
    const on = await target(found.id);
    const { kind, admin } = on;
    const taken = new Set(
        (await admin.use(null, (session) => kind.databases.list(session))).map((each) => each.name)
    );
    const free = Array.from({ length: 1_000 }, (_, index) =>
        index === 0 ? wanted : `${wanted.slice(0, 20)}_restored${index}`
    );
    const database = free.find((each) => !taken.has(each)) ?? wanted;
    const inner = path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;
    const files = ctx.files(folder);
    await using handle = await files.open(`${inner}/${dumpFile}`, 'r');
    await dumps.takeBack(found, database, readFile(handle, ctx.signal));
    if (database !== wanted) {
        return `Restored as ${database}, without accounts, because ${wanted} is there`;
    }
    await using accesses = await files.open(`${inner}/${accessFile}`, 'r');
    const lost = await restoreAccess(on, database, await accesses.readFile('utf8'));
    return lost.length === 0
        ? `Restored as ${database}`
        : `Restored as ${database}; make these accounts again: ${lost.join(', ')}`;
}

/** The servers of an export, also those that do not answer now: they are stored as they were. */
async function restore(
    ctx: Ctx,
    { servers }: Services,
    data: unknown,
    mode: 'merge' | 'replace'
): Promise<readonly string[]> {
    const { error, value } = joi
        .array()
        .items(registeredServer)
        .required()
        .validate((data as { servers?: unknown } | null)?.servers);
    if (error !== undefined) {
        throw new TypeError(`The exported servers cannot be read: ${error.message}`);
    }
    const given = value as readonly NewServer[];
    if (mode === 'replace') {
        const names = given.map(({ name }) => name);
        await ctx.db.write(
            async (em) =>
                void (await em.nativeDelete(ServerEntity, { mode: 'registered', name: { $nin: names } }))
        );
    }
    const problems: string[] = [];
    for (const server of given) {
        await servers
            .put(server)
            .catch((thrown: unknown) =>
                problems.push(`${server.name}: ${String((thrown as Error).message)}`)
            );
    }
    return problems;
}
