/** Connections to servers: each piece of work gets one of its own, which ends with it. So no setting, lock or transaction is left for the next. */
import { isFailure } from '@portico/sdk';

import { ServerEntity, type ServerRow } from '../entities.ts';
import type { Access, Address, Kind, Login, Session } from '../kinds/kind.ts';
import { kinds } from '../kinds/kinds.ts';
import type { Ctx } from '../settings.ts';
import { Slots } from './slots.ts';

/** Whether a server answered when it was last asked. */
export interface Reached {
    readonly state: 'online' | 'offline' | 'starting';
    readonly message: string | null;
}

/** Opens sessions on all servers. */
export class Connections {
    readonly #ctx: Ctx;
    readonly #slots = new Map<number, Slots>();
    readonly #reached = new Map<number, Reached>();
    readonly #open = new Set<Session>();

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** How the server answered last. */
    reached(id: number): Reached {
        return this.#reached.get(id) ?? { state: 'starting', message: null };
    }

    /** Forgets a server that is gone. */
    forget(id: number): void {
        this.#reached.delete(id);
        this.#slots.delete(id);
    }

    /** The panel's own account on a server. */
    admin(server: ServerRow): Access {
        return {
            username: server.username,
            use: (database, work) =>
                this.#within(server, async () => {
                    const session = await this.#asAdmin(server, database);
                    return this.#during(session, work);
                })
        };
    }

    /** Another account on a server. What it is refused says nothing about the server. */
    as(server: ServerRow, login: Login): Access {
        return {
            username: login.username,
            use: (database, work) =>
                this.#within(server, async () =>
                    this.#during(await this.#connect(server, login, database), work)
                )
        };
    }

    /** Connects to a server that is not stored yet. @throws LOGIN_FAILED 42254, SERVER_OFFLINE 50350 */
    async probe(
        kind: Kind,
        address: Address,
        login: Login
    ): Promise<Pick<Session, 'serverVersion' | 'flavour'>> {
        const session = await this.#dial(kind, { address, login, database: null });
        return this.#during(session, async ({ serverVersion, flavour }) => ({ serverVersion, flavour }));
    }

    /** Ends every connection, with what runs on it. */
    close(): void {
        this.#open.forEach((session) => session.destroy());
        this.#open.clear();
    }

    #within<T>(server: ServerRow, work: () => Promise<T>): Promise<T> {
        const slots = this.#slots.get(server.id) ?? new Slots();
        this.#slots.set(server.id, slots);
        return slots.run(work);
    }

    async #during<T>(session: Session, work: (session: Session) => Promise<T>): Promise<T> {
        this.#open.add(session);
        try {
            const result = await work(session);
            await session.close();
            return result;
        } catch (error) {
            session.destroy();
            throw error;
        } finally {
            this.#open.delete(session);
        }
    }

    /** A rotation that was cut leaves two passwords of which one is right. */
    async #asAdmin(server: ServerRow, database: string | null): Promise<Session> {
        const { username, nextPassword } = server;
        const login = { username, password: await this.#opened(server.password) };
        try {
            return await this.#connect(server, login, database, true);
        } catch (error) {
            if (nextPassword === null || !isFailure(error) || error.reason !== 'LOGIN_FAILED') {
                throw error;
            }
            const password = await this.#opened(nextPassword);
            const session = await this.#connect(server, { username, password }, database, true);
            await this.#ctx.db.write(async (em) => {
                await em.nativeUpdate(
                    ServerEntity,
                    { id: server.id, nextPassword },
                    { password: nextPassword, nextPassword: null }
                );
            });
            return session;
        }
    }

    async #connect(
        server: ServerRow,
        login: Login,
        database: string | null,
        isAdmin = false
    ): Promise<Session> {
        try {
            const session = await this.#dial(kinds[server.kind], {
                address: addressOf(server),
                login,
                database
            });
            this.#reached.set(server.id, { state: 'online', message: null });
            return session;
        } catch (error) {
            const isOffline = isFailure(error) && error.reason !== 'NOT_FOUND';
            if (isOffline && (isAdmin || error.reason !== 'LOGIN_FAILED')) {
                this.#reached.set(server.id, { state: 'offline', message: error.message });
            }
            throw error;
        }
    }

    #dial(
        kind: Kind,
        options: { readonly address: Address; readonly login: Login; readonly database: string | null }
    ): Promise<Session> {
        return kind.connect({ ...options, dial: (target) => this.#ctx.dial(target) });
    }

    #opened(sealed: string | null): Promise<string> | string {
        return sealed === null ? '' : this.#ctx.secrets.open(sealed);
    }
}

/** Where a server listens. */
export function addressOf({ host, port, socket, tls, ca }: ServerRow): Address {
    return { host, port, socket, tls, ca };
}
