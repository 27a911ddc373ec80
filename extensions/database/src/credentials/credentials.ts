/** Accounts with an end. The end is written down before the account is made, so that it comes also when the panel was down at that time. */
import { randomBytes } from 'node:crypto';

import { errors, isFailure } from '@portico/sdk';
import { findRows } from '@portico/sdk/db';

import { CredentialEntity, type CredentialRow } from '../entities.ts';
import type { AccountName, Level } from '../kinds/kind.ts';
import type { FindTarget } from '../kinds/target.ts';
import type { Ctx } from '../settings.ts';
import { makePassword } from './passwords.ts';

const prefix = 'temp_';
const ownName = new RegExp(`^${prefix}[0-9a-f]{16}$`);

/** A credential as it is told once. */
export interface MadeCredential {
    readonly row: CredentialRow;
    readonly username: string;
    readonly password: string;
    readonly uri: string;
}

/** What a credential is made for. */
export interface CredentialRequest {
    readonly database: string;
    readonly level: Level;
    readonly ttlSeconds: number;
}

/** Makes accounts that end by themselves. */
export class Credentials {
    readonly #ctx: Ctx;
    readonly #target: FindTarget;

    constructor(ctx: Ctx, target: FindTarget) {
        this.#ctx = ctx;
        this.#target = target;
    }

    /** Those of one server that have not been removed yet, in the order in which they were made. */
    async list(serverId: number): Promise<readonly CredentialRow[]> {
        return this.#find({ serverId });
    }

    /** @throws NOT_FOUND 40400, VALIDATION_FAILED 40001 for a database of the server itself */
    async create(serverId: number, request: CredentialRequest): Promise<MadeCredential> {
        const { server, kind, admin } = await this.#target(serverId);
        const { database, level, ttlSeconds } = request;
        if (kind.databases.isSystem(database)) {
            throw errors.invalid([{ path: 'database', message: 'This database belongs to the server' }]);
        }
        await kind.databases.get(admin, database);
        const account: AccountName = {
            username: `${prefix}${randomBytes(8).toString('hex')}`,
            host: server.kind === 'mysql' ? '%' : null
        };
        const now = Date.now();
        const row = {
            serverId,
            account: kind.accounts.format(account),
            database,
            level,
            createdAt: now,
            expiresAt: now + ttlSeconds * 1_000
        };
        const id = await this.#ctx.db.write((em) => em.insert(CredentialEntity, row));
        const password = makePassword();
        try {
            await kind.accounts.create(admin, account, password);
            await kind.accounts.ensureLevel(admin, account, { database, level });
        } catch (error) {
            await this.#end({ ...row, id });
            throw error;
        }
        const { username } = account;
        const { host, port, socket, tls, ca } = server;
        const { uri } = kind.guide({ address: { host, port, socket, tls, ca }, database, username });
        return { row: { ...row, id }, username, password, uri };
    }

    /** Ends one before its time. @throws NOT_FOUND 40400 */
    async remove(serverId: number, id: number): Promise<void> {
        const [row] = await this.#find({ serverId, id });
        if (row === undefined) {
            throw errors.notFound('There is no credential of that number');
        }
        await this.#end(row);
    }

    /** A server that was made from the past of another one has its credentials: those that still count there end at the same time here, the others at once. */
    async inherit(from: number, to: number): Promise<void> {
        const { kind, admin } = await this.#target(to);
        const known = new Map((await this.list(from)).map((row) => [row.account, row]));
        for (const each of await kind.accounts.list(admin)) {
            if (!ownName.test(each.username)) {
                continue;
            }
            const account = kind.accounts.format(each);
            const [grant] = each.grants;
            const now = Date.now();
            const row = known.get(account) ?? {
                account,
                database: grant?.database ?? '',
                level: grant?.level ?? 'read',
                createdAt: now,
                expiresAt: now
            };
            const { id: _, ...inherited } = { id: 0, ...row, serverId: to };
            await this.#ctx.db.write((em) => em.insert(CredentialEntity, inherited));
        }
        await this.expire();
    }

    /** Ends all whose time has come. A server that does not answer is asked again the next time. */
    async expire(): Promise<void> {
        for (const row of await this.#find({ expiresAt: { $lte: Date.now() } })) {
            await this.#end(row).catch((error: unknown) => {
                this.#ctx.log.warn('A credential whose time has come could not be removed yet', {
                    credential: row.id,
                    error
                });
            });
        }
    }

    /** Closes the account, ends its sessions, and removes it. */
    async #end(row: CredentialRow): Promise<void> {
        try {
            const { kind, admin } = await this.#target(row.serverId);
            const found = (await kind.accounts.list(admin)).find(
                (each) => kind.accounts.format(each) === row.account
            );
            if (found !== undefined) {
                await kind.accounts.setLocked(admin, found, true);
                await admin.use(null, async (session) => {
                    const sessions = await kind.sessions.list(session);
                    for (const { id } of sessions.filter(({ user }) => user === found.username)) {
                        // A session may have ended by itself meanwhile.
                        await kind.sessions.end(session, id, 'end').catch(() => undefined);
                    }
                });
                await kind.accounts.drop(admin, found);
            }
        } catch (error) {
            // The server was forgotten: the account is no longer the panel's.
            if (!isFailure(error) || error.reason !== 'NOT_FOUND') {
                throw error;
            }
        }
        await this.#ctx.db.write(
            async (em) => void (await em.nativeDelete(CredentialEntity, { id: row.id }))
        );
    }

    #find(where: object): Promise<readonly CredentialRow[]> {
        return this.#ctx.db.read((em) => findRows(em, CredentialEntity, where, { orderBy: { id: 'asc' } }));
    }
}
