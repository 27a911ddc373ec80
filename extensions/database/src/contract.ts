/** What other plugins may ask of this one, by the permissions of the user they ask for. */
import { type Call, errors } from '@portico/sdk';

import { makePassword } from './credentials/passwords.ts';
import type { Kind, Level } from './kinds/kind.ts';
import { originOf } from './servers/origin.ts';
import type { Services } from './services.ts';

/** How a program reaches a database. The password is shown this once. */
export interface ProvidedConnection {
    readonly kind: 'mysql' | 'postgresql';
    readonly host: string | null;
    readonly port: number;
    readonly socket: string | null;
    readonly database: string;
    readonly username: string;
    /** Names the account for `drop`; for MySQL with where it comes from. */
    readonly account: string;
    readonly password: string;
    /** Without the password. */
    readonly uri: string;
}

/** A server that databases can be made on. */
export interface OfferedServer {
    readonly id: number;
    readonly name: string;
    readonly kind: 'mysql' | 'postgresql';
    readonly state: string;
}

/** The contract of the plugin `database`. */
export interface DatabaseContract {
    /** Needs `read`. */
    list(input: Record<never, never>, call: Call): Promise<{ servers: OfferedServer[] }>;
    /**
     * Makes a database and an account with a level in it; needs `write` and `secrets`. @throws CONFLICT 40900 for a database that is there, unless
     * `existing` says that only an account is wanted
     */
    provision(
        input: {
            readonly serverId: number;
            readonly database: string;
            readonly level: Level;
            readonly existing?: boolean;
        },
        call: Call
    ): Promise<ProvidedConnection>;
    /** Copies a database into a new one on the same server, and waits until it is whole; needs `write`. @throws CONFLICT 40900 */
    clone(
        input: { readonly serverId: number; readonly database: string; readonly name: string },
        call: Call
    ): Promise<{ cloned: boolean }>;
    /** Removes the database, and the account when it is named; needs `write` and, for the account, `secrets`. What is gone already is no error. */
    drop(
        input: { readonly serverId: number; readonly database: string; readonly account?: string },
        call: Call
    ): Promise<{ dropped: boolean }>;
}

const nameForm = /^[^\p{C}/]+$/u;
const longestName = 63;

/** The contract on these services. */
export function createContract(services: Services): DatabaseContract {
    const { servers, connections } = services;
    return {
        async list(_input, { actor }) {
            mustBeAble(actor, 'read');
            const rows = await servers.list();
            return {
                servers: rows.map(({ id, name, kind }) => ({
                    id,
                    name,
                    kind,
                    state: connections.reached(id).state
                }))
            };
        },
        async provision(input, { actor }) {
            mustBeAble(actor, 'write');
            mustBeAble(actor, 'secrets');
            return provision(services, input);
        },
        async clone({ serverId, database, name }, { actor }) {
            mustBeAble(actor, 'write');
            mustBeName(name);
            await services.clones.copy(serverId, database, name);
            return { cloned: true };
        },
        async drop(input, { actor }) {
            mustBeAble(actor, 'write');
            if (input.account !== undefined) {
                mustBeAble(actor, 'secrets');
            }
            return { dropped: await drop(services, input) };
        }
    };
}

async function provision(
    { target }: Services,
    { serverId, database, level, existing = false }: Parameters<DatabaseContract['provision']>[0]
): Promise<ProvidedConnection> {
    mustBeName(database);
    const { kind, server, admin } = await target(serverId);
    mustBeOwn(kind, database);
    if (!existing) {
        await kind.databases.create(admin, { name: database, owner: null, charset: null, collation: null });
    }
    const account = {
        username: accountName(database),
        host: server.kind === 'mysql' ? originOf(server) : null
    };
    const password = makePassword();
    try {
        await kind.accounts.create(admin, account, password);
        await kind.accounts.ensureLevel(admin, account, { database, level });
    } catch (error) {
        await kind.accounts.drop(admin, account).catch(() => undefined);
        if (!existing) {
            await kind.databases.drop(admin, database);
        }
        throw error;
    }
    const { host, port, socket, tls, ca } = server;
    const { username } = account;
    const { uri } = kind.guide({ address: { host, port, socket, tls, ca }, database, username });
    return {
        kind: server.kind,
        host,
        port,
        socket,
        database,
        username,
        account: kind.accounts.format(account),
        password,
        uri
    };
}

/** Whether the database was there. */
async function drop(
    { target, forgetDatabase }: Services,
    { serverId, database, account }: Parameters<DatabaseContract['drop']>[0]
): Promise<boolean> {
    const { kind, admin } = await target(serverId);
    mustBeOwn(kind, database);
    const all = await admin.use(null, (session) => kind.databases.list(session));
    const isThere = all.some(({ name }) => name === database);
    if (isThere) {
        await kind.databases.drop(admin, database);
        forgetDatabase(serverId, database);
    }
    const found = (await kind.accounts.list(admin)).find((each) => kind.accounts.format(each) === account);
    if (found !== undefined && !found.system) {
        await kind.accounts.drop(admin, found);
    }
    return isThere;
}

/** @throws VALIDATION_FAILED 40001 */
function mustBeName(database: string): void {
    if (!nameForm.test(database) || Buffer.byteLength(database) > longestName) {
        throw errors.invalid([
            { path: 'database', message: 'A name has 1 to 63 bytes, without slash and control characters' }
        ]);
    }
}

/** @throws VALIDATION_FAILED 40001 for a database of the server itself */
function mustBeOwn(kind: Kind, database: string): void {
    if (kind.databases.isSystem(database)) {
        throw errors.invalid([{ path: 'database', message: 'This database belongs to the server' }]);
    }
}

/** A plugin that asks for itself has no permissions of a user. @throws FORBIDDEN 40300 */
function mustBeAble(actor: Call['actor'], permission: string): void {
    if (actor?.can(permission) !== true) {
        throw errors.forbidden(`database:${permission}`);
    }
}

/** A name that says what the account is for and is taken by no other one; MySQL allows 32 characters. */
function accountName(database: string): string {
    const word = database.replace(/[^A-Za-z0-9_]/g, '').slice(0, 20);
    return `${/^(pg_|portico)/i.test(word) || word === '' ? 'app' : word}_${makePassword()
        .replace(/[^a-z0-9]/g, '')
        .slice(0, 8)}`;
}
