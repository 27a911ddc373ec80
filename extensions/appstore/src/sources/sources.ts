/** Sources: made, changed, removed, and what each sync found. */
import { errors, requireVersion } from '@portico/sdk';
import { findRow, findRows } from '@portico/sdk/db';

import { judgeUrl } from '../catalogue/fetching.ts';
import { readPublicKey } from '../catalogue/minisign.ts';
import { AppEntity, InstalledEntity, SourceEntity, type SourceRow } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import type { FileStore } from './files.ts';
import type { ReadApp, SourceContent } from './formats/content.ts';

/** What a source is made of. */
export interface NewSource {
    readonly name: string;
    readonly kind: 'portico' | 'runtipi' | 'casaos';
    readonly url: string;
    readonly publicKey?: string | undefined;
    readonly branch?: string | undefined;
    readonly acceptUnsigned: boolean;
    readonly enabled: boolean;
}

/** What of a source may change, and what may be sent only as it is. */
export type SourceChange = { readonly [K in keyof Omit<NewSource, 'name'>]?: NewSource[K] | undefined };

/** What a sync changed. */
export interface SyncResult {
    readonly added: number;
    readonly changed: number;
    readonly removed: number;
}

/** The source that `/import` fills; it has no address and is never asked. */
export const localSource = 'local';

/** Keeps sources, and tells when one changed. */
export class Sources {
    readonly #ctx: Ctx;
    readonly #files: FileStore;
    readonly #listeners: (() => void)[] = [];

    constructor(ctx: Ctx, files: FileStore) {
        this.#ctx = ctx;
        this.#files = files;
    }

    /** Calls back after each change of what is offered. */
    onChange(listener: () => void): void {
        this.#listeners.push(listener);
    }

    async list(): Promise<readonly SourceRow[]> {
        return this.#ctx.db.read((em) => findRows(em, SourceEntity, {}, { orderBy: { name: 'asc' } }));
    }

    /** @throws NOT_FOUND 40400 */
    async get(name: string): Promise<SourceRow> {
        const row = await this.#ctx.db.read((em) => findRow(em, SourceEntity, { name }));
        if (row === null) {
            throw errors.notFound('There is no source of that name');
        }
        return row;
    }

    /** @throws CONFLICT 40900, VALIDATION_FAILED 40001 */
    async create(input: NewSource): Promise<SourceRow> {
        const url = await this.#checked(input);
        const row = newRow({ ...input, url });
        await this.#insert(row);
        return row;
    }

    /** The source of what was imported by hand, made when it is first needed. */
    async local(): Promise<SourceRow> {
        const found = (await this.list()).find(({ name }) => name === localSource);
        if (found !== undefined) {
            return found;
        }
        const row: SourceRow = {
            ...newRow({
                name: localSource,
                kind: 'casaos',
                url: 'local:',
                acceptUnsigned: true,
                enabled: true
            }),
            kind: 'local',
            state: 'ready'
        };
        await this.#insert(row);
        return row;
    }

    /** @throws SOURCE_PINNED 40950 for another address, kind or key; VERSION_STALE 41200 */
    async update(name: string, change: SourceChange, ifMatch: string | null): Promise<SourceRow> {
        const row = await this.get(name);
        requireVersion(row, ifMatch);
        const { url, kind, publicKey, branch, acceptUnsigned, enabled } = change;
        const isPinned =
            (url === undefined || withoutSlash(url) === row.url) &&
            (kind === undefined || kind === row.kind) &&
            (publicKey === undefined || publicKey === row.publicKey);
        if (!isPinned) {
            throw fail.SOURCE_PINNED();
        }
        const changed: SourceRow = {
            ...row,
            version: row.version + 1,
            branch: branch ?? row.branch,
            acceptUnsigned: acceptUnsigned ?? row.acceptUnsigned,
            enabled: enabled ?? row.enabled
        };
        await this.#ctx.db.write((em) =>
            em.nativeUpdate(SourceEntity, { name }, changed).then(() => undefined)
        );
        this.#tell();
        return changed;
    }

    /** @throws IN_USE 40901 while apps of it are installed */
    async remove(name: string): Promise<void> {
        await this.get(name);
        await this.#ctx.db.write(async (em) => {
            const installed = await em.find(InstalledEntity, { source: name }, { fields: ['name'] });
            if (installed.length > 0) {
                const names = installed.map((each) => each.name);
                throw errors.inUse(names, `Apps of this source are installed: ${names.join(', ')}`);
            }
            await em.nativeDelete(AppEntity, { source: name });
            await em.nativeDelete(SourceEntity, { name });
        });
        await this.#files.prune();
        this.#tell();
    }

    /** Keeps what a sync read: all of it in one transaction. A new key is the one that installed apps of this source belong to. */
    async take(source: SourceRow, content: SourceContent, now: number): Promise<SyncResult> {
        await this.#files.add(content.files);
        const { name } = source;
        const result = await this.#ctx.db.write(async (em) => {
            const before = new Map(
                (await findRows(em, AppEntity, { source: name })).map(
                    ({ id, document, icon, version, why }) => [
                        id,
                        JSON.stringify([version, document ?? null, icon ?? null, why ?? null])
                    ]
                )
            );
            const rows = content.apps.map(({ id, version, about, document, icon, why }) => ({
                ...{ key: `${name}/${id}`, source: name, id, version },
                ...{ about: JSON.stringify(about), document, icon, why }
            }));
            await em.nativeDelete(AppEntity, { source: name });
            for (const row of rows) {
                await em.insert(AppEntity, row);
            }
            await em.nativeUpdate(SourceEntity, { name }, takenColumns(source, content, now));
            const [from, to] = [source.publicKey, content.publicKey];
            if (from !== null && to !== null && from !== to) {
                const keyId = readPublicKey(to)?.id ?? null;
                await em.nativeUpdate(InstalledEntity, { source: name }, { keyId });
            }
            const is = new Map(
                rows.map((row) => [row.id, JSON.stringify([row.version, row.document, row.icon, row.why])])
            );
            return {
                added: [...is.keys()].filter((id) => !before.has(id)).length,
                changed: [...is].filter(([id, state]) => before.has(id) && before.get(id) !== state).length,
                removed: [...before.keys()].filter((id) => !is.has(id)).length
            };
        });
        await this.#files.prune();
        this.#tell();
        return result;
    }

    /** Adds an app that was imported by hand, in place of one of the same id. */
    async addLocal({ id, version, about, document, icon, why }: ReadApp): Promise<void> {
        const key = `${localSource}/${id}`;
        const row = {
            key,
            source: localSource,
            id,
            version,
            about: JSON.stringify(about),
            document,
            icon,
            why
        };
        await this.#ctx.db.write(async (em) => {
            await em.upsert(AppEntity, row);
            const apps = await em.count(AppEntity, { source: localSource });
            await em.nativeUpdate(SourceEntity, { name: localSource }, { apps });
        });
        this.#tell();
    }

    /** Keeps that a sync found nothing new. */
    async unchanged(name: string, now: number): Promise<void> {
        await this.#ctx.db.write((em) =>
            em
                .nativeUpdate(SourceEntity, { name }, { state: 'ready', lastError: null, lastSyncAt: now })
                .then(() => undefined)
        );
        this.#tell();
    }

    /** Keeps why a sync failed; what was taken before stays. */
    async failed(name: string, why: string, now: number): Promise<void> {
        await this.#ctx.db.write((em) =>
            em
                .nativeUpdate(SourceEntity, { name }, { state: 'error', lastError: why, lastSyncAt: now })
                .then(() => undefined)
        );
        this.#tell();
    }

    async #insert(row: SourceRow): Promise<void> {
        await this.#ctx.db.write(async (em) => {
            if ((await em.count(SourceEntity, { name: row.name })) > 0) {
                throw errors.conflict('name');
            }
            await em.insert(SourceEntity, row);
        });
        this.#tell();
    }

    /** The address without a slash at its end. @throws VALIDATION_FAILED 40001 */
    async #checked({ name, kind, url, publicKey, branch }: NewSource): Promise<string> {
        const faults: { path: string; message: string }[] = [];
        if (name === localSource) {
            faults.push({ path: 'name', message: `${localSource} is for what is imported by hand` });
        }
        if (kind === 'portico' && (publicKey === undefined || readPublicKey(publicKey) === null)) {
            faults.push({
                path: 'publicKey',
                message: 'A signed catalogue needs the line of its public key (minisign)'
            });
        }
        if (kind !== 'portico' && publicKey !== undefined) {
            faults.push({ path: 'publicKey', message: 'This kind has no signatures' });
        }
        if (kind === 'portico' && branch !== undefined) {
            faults.push({ path: 'branch', message: 'A signed catalogue has no branch' });
        }
        const parsed = await judgeUrl(this.#ctx, url).catch((error: Error) => {
            faults.push({ path: 'url', message: error.message });
            return null;
        });
        if (parsed !== null && (parsed.search !== '' || parsed.hash !== '')) {
            faults.push({ path: 'url', message: 'The address has no query and no fragment' });
        }
        if (faults.length > 0) {
            throw errors.invalid(faults);
        }
        return withoutSlash(url);
    }

    #tell(): void {
        this.#listeners.forEach((listener) => listener());
    }
}

const withoutSlash = (url: string): string => url.replace(/\/+$/, '');

function newRow({ name, kind, url, publicKey, branch, acceptUnsigned, enabled }: NewSource): SourceRow {
    return {
        name,
        kind,
        url,
        publicKey: publicKey ?? null,
        branch: branch ?? null,
        acceptUnsigned,
        enabled,
        version: 1,
        state: 'pending',
        sequence: null,
        commit: null,
        expiresAt: null,
        nextKey: null,
        taken: null,
        categories: '[]',
        templates: '[]',
        apps: 0,
        lastSyncAt: null,
        lastError: null
    };
}

function takenColumns(source: SourceRow, content: SourceContent, now: number): Partial<SourceRow> {
    const { sequence, commit, expiresAt, nextKey, publicKey, taken } = content;
    return {
        ...{ sequence, commit, expiresAt, taken, nextKey, publicKey: publicKey ?? source.publicKey },
        categories: JSON.stringify(content.categories),
        templates: JSON.stringify(content.templates),
        apps: content.apps.length,
        state: 'ready',
        lastSyncAt: now,
        lastError: null
    };
}
