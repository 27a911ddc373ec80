/** The servers that the panel knows. */
import { errors, isFailure, requireVersion } from '@portico/sdk';
import { type EntityManager, findRows, UniqueConstraintViolationException } from '@portico/sdk/db';

import { makePassword } from '../credentials/passwords.ts';
import { ServerEntity, type ServerRow } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Address, Login } from '../kinds/kind.ts';
import { kinds } from '../kinds/kinds.ts';
import type { Ctx } from '../settings.ts';
import { addressOf, type Connections } from './connections.ts';
import { type ChangedServer, type NewServer, usualTls } from './input.ts';

/** What a test of a server found. */
export interface TestResult {
    readonly ok: boolean;
    readonly latencyMs: number;
    readonly serverVersion: string;
}

const mostServers = 200;

/** Registers, changes and forgets servers. */
export class Servers {
    readonly #ctx: Ctx;
    readonly #connections: Connections;

    constructor(ctx: Ctx, connections: Connections) {
        this.#ctx = ctx;
        this.#connections = connections;
    }

    /** All servers, by name. */
    async list(): Promise<readonly ServerRow[]> {
        return this.#ctx.db.read((em) => findRows(em, ServerEntity, {}, { orderBy: { name: 'asc' } }));
    }

    /** One server. @throws NOT_FOUND 40400 */
    async get(id: number): Promise<ServerRow> {
        return this.#ctx.db.read((em) => findServer(em, id));
    }

    /** Registers a server that runs already, after a login. @throws LOGIN_FAILED 42254, CONFLICT 40900, VALIDATION_FAILED 40001 */
    async register(input: NewServer): Promise<ServerRow> {
        const address = this.#addressOf(input, kinds[input.kind].defaultPort);
        const login = { username: input.username, password: input.password ?? '' };
        const seen = await this.#logIn(input.kind, address, login, input.reader ?? null);
        return this.get(await this.insert(await this.#columns(input, seen)));
    }

    /** Stores a new server, with what else belongs to it. Returns its number. @throws CONFLICT 40900, IN_USE 40901 */
    async insert(
        row: Omit<ServerRow, 'id'>,
        more: (em: EntityManager, id: number) => Promise<void> = async () => undefined
    ): Promise<number> {
        return this.#unique(async (em) => {
            if ((await em.count(ServerEntity)) >= mostServers) {
                throw errors.inUse(`${mostServers} servers`);
            }
            const id = await em.insert(ServerEntity, row);
            await more(em, id);
            return id;
        });
    }

    /** Changes what needs no login. @throws CONFLICT 40900, VERSION_STALE 41200 */
    async describe(
        before: ServerRow,
        {
            name = before.name,
            dumpSchedule = before.dumpSchedule
        }: Pick<ChangedServer, 'name' | 'dumpSchedule'>,
        { ifMatch, version }: { readonly ifMatch: string | null; readonly version: number | undefined }
    ): Promise<ServerRow> {
        requireVersion(before, ifMatch, version);
        const { id } = before;
        return this.#unique(async (em) => {
            const change = { name, dumpSchedule, version: before.version + 1, updatedAt: Date.now() };
            const changed = await em.nativeUpdate(ServerEntity, { id, version: before.version }, change);
            const after = await findServer(em, id);
            if (changed === 0) {
                throw errors.stale(after.version);
            }
            return after;
        });
    }

    /** Stores a server as it was exported, in place of the one with its name, whether it answers now or not. */
    async put(input: NewServer): Promise<void> {
        const { createdAt, version, ...row } = await this.#columns(input, {
            serverVersion: null,
            flavour: null
        });
        await this.#ctx.db.write(async (em) => {
            const found = await em.findOne(ServerEntity, { name: input.name });
            if (found === null) {
                await em.insert(ServerEntity, { ...row, createdAt, version });
            } else if (found.mode === 'managed' || found.kind !== input.kind) {
                throw errors.conflict('name');
            } else {
                await em.nativeUpdate(ServerEntity, { id: found.id }, { ...row, version: found.version + 1 });
            }
        });
    }

    async #columns(
        input: NewServer,
        seen: Pick<ServerRow, 'serverVersion' | 'flavour'>
    ): Promise<Omit<ServerRow, 'id'>> {
        const { password = '' } = input;
        const now = Date.now();
        return {
            version: 1,
            name: input.name,
            kind: input.kind,
            mode: 'registered',
            ...this.#addressOf(input, kinds[input.kind].defaultPort),
            username: input.username,
            password: password === '' || password === null ? null : await this.#ctx.secrets.seal(password),
            nextPassword: null,
            ...(await this.#readerColumns(input.reader ?? null)),
            dumpSchedule: input.dumpSchedule ?? null,
            maskKey: null,
            serverVersion: seen.serverVersion,
            flavour: seen.flavour,
            createdAt: now,
            updatedAt: now
        };
    }

    /** Changes how a server is reached, after a login that proves it. @throws LOGIN_FAILED 42254, VERSION_STALE 41200 */
    async update(
        id: number,
        input: ChangedServer,
        ifMatch: string | null
    ): Promise<{ readonly before: ServerRow; readonly after: ServerRow }> {
        const before = await this.get(id);
        requireVersion(before, ifMatch, input.version);
        const merged = { ...addressOf(before), ...defined(input) };
        const address = this.#addressOf(
            {
                ...merged,
                ...(input.host === undefined || input.socket !== undefined ? {} : { socket: null })
            },
            before.port
        );
        const login = {
            username: input.username ?? before.username,
            password:
                input.password === undefined ? await this.#opened(before.password) : (input.password ?? '')
        };
        const seen = await this.#logIn(before.kind, address, login, input.reader ?? null);
        const change = {
            ...address,
            name: input.name ?? before.name,
            username: login.username,
            password: login.password === '' ? null : await this.#ctx.secrets.seal(login.password),
            nextPassword: null,
            ...(input.dumpSchedule === undefined ? {} : { dumpSchedule: input.dumpSchedule }),
            ...(input.reader === undefined ? {} : await this.#readerColumns(input.reader)),
            serverVersion: seen.serverVersion,
            flavour: seen.flavour,
            version: before.version + 1,
            updatedAt: Date.now()
        };
        const after = await this.#unique(async (em) => {
            const changed = await em.nativeUpdate(ServerEntity, { id, version: before.version }, change);
            const now = await findServer(em, id);
            if (changed === 0) {
                throw errors.stale(now.version);
            }
            return now;
        });
        return { before, after };
    }

    /** Forgets a server; what is on it stays. */
    async remove(id: number, ifMatch: string | null): Promise<ServerRow> {
        const row = await this.get(id);
        requireVersion(row, ifMatch);
        await this.#ctx.db.write(async (em) => void (await em.nativeDelete(ServerEntity, { id })));
        this.#connections.forget(id);
        return row;
    }

    /** Logs in, and remembers which version answers. @throws LOGIN_FAILED 42254, SERVER_OFFLINE 50350 */
    async test(id: number): Promise<TestResult> {
        const row = await this.get(id);
        const started = performance.now();
        const seen = await this.#connections
            .admin(row)
            .use(null, async ({ serverVersion, flavour }) => ({ serverVersion, flavour }));
        const latencyMs = Math.round(performance.now() - started);
        if (seen.serverVersion !== row.serverVersion || seen.flavour !== row.flavour) {
            await this.#ctx.db.write(async (em) => void (await em.nativeUpdate(ServerEntity, { id }, seen)));
        }
        return { ok: true, latencyMs, serverVersion: seen.serverVersion };
    }

    /** Gives the panel's own account a new password. It is stored before it is set, so that no cut can lose it. */
    async rotate(id: number): Promise<ServerRow> {
        const row = await this.get(id);
        const { accounts } = kinds[row.kind];
        const password = makePassword();
        const sealed = await this.#ctx.secrets.seal(password);
        await this.#ctx.db.write(
            async (em) => void (await em.nativeUpdate(ServerEntity, { id }, { nextPassword: sealed }))
        );
        const access = this.#connections.admin(row);
        await accounts.setOwnPassword(access, password);
        return this.#ctx.db.write(async (em) => {
            await em.nativeUpdate(
                ServerEntity,
                { id, nextPassword: sealed },
                { password: sealed, nextPassword: null, version: row.version + 1, updatedAt: Date.now() }
            );
            return findServer(em, id);
        });
    }

    /** Numbers of those that answered when they were last asked. */
    async online(): Promise<readonly number[]> {
        const ids = (await this.list()).map(({ id }) => id);
        return ids.filter((id) => this.#connections.reached(id).state === 'online');
    }

    /** Asks every server whether it answers, but for those that need not. */
    async watch(resting: ReadonlySet<number>): Promise<void> {
        const awake = (await this.list()).filter(({ id }) => !resting.has(id));
        await Promise.all(
            awake.map(async ({ id }) => {
                // What it says is kept by the connections, and shown as the state of the server.
                await this.test(id).catch(() => undefined);
            })
        );
    }

    /** Whatever is wrong with the way to the server, it is no server to register. */
    async #logIn(
        kind: ServerRow['kind'],
        address: Address,
        login: Login,
        reader: Login | null
    ): Promise<Awaited<ReturnType<Connections['probe']>>> {
        try {
            const seen = await this.#connections.probe(kinds[kind], address, login);
            if (reader !== null) {
                await this.#connections.probe(kinds[kind], address, reader);
            }
            return seen;
        } catch (error) {
            if (isFailure(error) && error.reason === 'SERVER_OFFLINE') {
                throw fail.LOGIN_FAILED({ message: String(error.data?.['message']) }, { cause: error });
            }
            throw error;
        }
    }

    #addressOf(
        input: Pick<NewServer, 'host' | 'socket' | 'port' | 'tls' | 'ca'>,
        usualPort: number
    ): Address {
        const { host = null, socket = null, port = usualPort, ca = null } = input;
        if ((host === null) === (socket === null)) {
            throw errors.invalid([{ path: 'host', message: 'Give either host or socket' }]);
        }
        return { host, socket, port, ca, tls: input.tls ?? usualTls(host) };
    }

    async #readerColumns(
        reader: Login | null
    ): Promise<Pick<ServerRow, 'readerName' | 'readerPassword' | 'readerMade'>> {
        return {
            readerName: reader?.username ?? null,
            readerPassword: reader === null ? null : await this.#ctx.secrets.seal(reader.password),
            readerMade: false
        };
    }

    async #opened(sealed: string | null): Promise<string> {
        return sealed === null ? '' : this.#ctx.secrets.open(sealed);
    }

    async #unique<T>(work: (em: EntityManager) => Promise<T>): Promise<T> {
        try {
            return await this.#ctx.db.write(work);
        } catch (error) {
            throw error instanceof UniqueConstraintViolationException ? errors.conflict('name') : error;
        }
    }
}

/** @throws NOT_FOUND 40400 */
async function findServer(em: EntityManager, id: number): Promise<ServerRow> {
    const [row] = await findRows(em, ServerEntity, { id }, { refresh: true });
    if (row === undefined) {
        throw errors.notFound('There is no server of that number');
    }
    return row;
}

function defined<T extends object>(input: T): { [K in keyof T]: Exclude<T[K], undefined> } {
    return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined)) as {
        [K in keyof T]: Exclude<T[K], undefined>;
    };
}
