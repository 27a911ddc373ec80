/** The contract on the services of this generation. */
import { type Call, errors } from '@portico/sdk';

import type { DatabaseContract, ProvidedConnection } from './contract.ts';
import { makePassword } from './credentials/passwords.ts';
import type { Kind } from './kinds/kind.ts';
import { originOf } from './servers/origin.ts';
import type { Services } from './services.ts';

const nameForm = /^[^\p{C}/]+$/u;
const longestName = 63;

/** The contract that `setup` returns. */
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
