/** Rows of servers that the panel runs. */
import { type EntityManager, findRows } from '@portico/sdk/db';

import {
    type DumpSchedule,
    ManagedEntity,
    type ManagedRow,
    ServerEntity,
    type ServerRow
} from '../entities.ts';
import { fail } from '../errors.ts';
import type { KindName } from '../kinds/kind.ts';
import type { Servers } from '../servers/servers.ts';
import type { Ctx } from '../settings.ts';
import type { Engine, Preset } from './engine.ts';
import { firstData, type Folders } from './folders.ts';

/** The account of the panel on a server that it runs. */
export const ownUsername = 'portico';

/** A server with what is known of it because the panel runs it. */
export interface ManagedServer {
    readonly server: ServerRow;
    readonly managed: ManagedRow;
}

/** A server to make. */
export interface NewManaged {
    readonly name: string;
    readonly kind: KindName;
    readonly runtime: ManagedRow['runtime'];
    /** Default: the newest that is offered. */
    readonly release: string | undefined;
    /** Default: the first of the settings that is free. */
    readonly port: number | undefined;
    readonly memoryBytes: number | null;
    readonly preset: Preset;
    readonly dumpSchedule: DumpSchedule | null;
    /** Its past is kept. */
    readonly pointInTime: boolean;
    /** What is set beside the preset. */
    readonly options: ManagedRow['options'];
}

/** Reads and writes them. */
export class ManagedRows {
    readonly #ctx: Ctx;
    readonly #servers: Servers;
    readonly #folders: Folders;
    readonly #engines: Readonly<Record<KindName, Engine>>;

    constructor(ctx: Ctx, servers: Servers, folders: Folders, engines: Readonly<Record<KindName, Engine>>) {
        this.#ctx = ctx;
        this.#servers = servers;
        this.#folders = folders;
        this.#engines = engines;
    }

    /** All, by their numbers. */
    async all(): Promise<ReadonlyMap<number, ManagedRow>> {
        const rows = await this.#ctx.db.read((em) => findRows(em, ManagedEntity, {}));
        return new Map(rows.map((row) => [row.id, row]));
    }

    /** @throws NOT_FOUND 40400; NOT_MANAGED 40950 for a server that is only registered */
    async get(id: number): Promise<ManagedServer> {
        const server = await this.#servers.get(id);
        const [managed] = await this.#ctx.db.read((em) => findRows(em, ManagedEntity, { id }));
        if (managed === undefined) {
            throw fail.NOT_MANAGED();
        }
        return { server, managed };
    }

    /** Stores a new server that has still to be made; the password of the panel's account is sealed. Returns its number. @throws CONFLICT 40900 */
    async insert(
        { name, kind, runtime, memoryBytes, preset, dumpSchedule, pointInTime, options }: NewManaged,
        {
            release,
            port,
            password
        }: { readonly release: string; readonly port: number; readonly password: string }
    ): Promise<number> {
        const now = Date.now();
        const row = {
            version: 1,
            name,
            kind,
            mode: 'managed' as const,
            host: '127.0.0.1',
            port,
            socket: null as string | null,
            tls: 'disable' as const,
            ca: null,
            username: ownUsername,
            password,
            nextPassword: null,
            readerName: null,
            readerPassword: null,
            readerMade: false,
            dumpSchedule,
            maskKey: null,
            serverVersion: null,
            flavour: null,
            createdAt: now,
            updatedAt: now
        };
        return this.#servers.insert(row, async (em: EntityManager, id: number) => {
            if (runtime === 'native') {
                const socket = this.#engines[kind].socket({ ...this.#folders.of(id, firstData), port });
                await em.nativeUpdate(ServerEntity, { id }, { socket });
            }
            await em.insert(ManagedEntity, {
                id,
                runtime,
                release,
                memoryBytes,
                preset,
                options,
                remote: false,
                allow: [],
                pointInTime: pointInTime ? 'on' : 'off',
                folder: firstData,
                previous: null,
                phase: 'creating'
            });
        });
    }

    /** Changes what is known of a server. */
    async update(id: number, change: Partial<ManagedRow>): Promise<void> {
        await this.#ctx.db.write(async (em) => void (await em.nativeUpdate(ManagedEntity, { id }, change)));
    }

    /** Stores the certificate that clients of other machines trust. */
    async certify(id: number, ca: string): Promise<void> {
        const change = { ca, tls: 'verify' as const, updatedAt: Date.now() };
        await this.#ctx.db.write(async (em) => void (await em.nativeUpdate(ServerEntity, { id }, change)));
    }

    /** Forgets a server. */
    async remove(id: number): Promise<void> {
        await this.#ctx.db.write(async (em) => void (await em.nativeDelete(ServerEntity, { id })));
    }
}
