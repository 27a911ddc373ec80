/** Snapshots of all volumes of a stack, so that data can go back together with what wrote them. */
import { errors } from '@portico/sdk';
import { findRow, findRows } from '@portico/sdk/db';

import type { Making } from '../containers/making.ts';
import type { ListedContainer } from '../engine/documents.ts';
import type { Inventory } from '../engine/inventory.ts';
import { SnapshotEntity, type SnapshotRow } from '../entities.ts';
import type { Ctx } from '../settings.ts';
import { labelOf } from '../spec/spec.ts';
import type { Storage } from '../storage/storage.ts';
import { isPlain, type VolumeArchives } from './archives.ts';

/** A snapshot that was taken. */
export interface Snapshot {
    readonly snapshot: string;
    readonly bytes: number;
}

const mostBytes = Number.MAX_SAFE_INTEGER;

/** Takes snapshots, and brings them back. */
export class Snapshots {
    readonly #ctx: Ctx;
    readonly #inventory: Inventory;
    readonly #making: Making;
    readonly #archives: VolumeArchives;
    readonly #storage: Storage;

    constructor(
        ctx: Ctx,
        parts: {
            readonly inventory: Inventory;
            readonly making: Making;
            readonly archives: VolumeArchives;
            readonly storage: Storage;
        }
    ) {
        this.#ctx = ctx;
        this.#inventory = parts.inventory;
        this.#making = parts.making;
        this.#archives = parts.archives;
        this.#storage = parts.storage;
    }

    /**
     * Takes one of all volumes, or of those whose keys in the compose file are in `only`. A service that writes meanwhile is caught at different
     * moments: stop it before, where that matters.
     */
    async take(stack: string, signal: AbortSignal, only?: readonly string[]): Promise<Snapshot> {
        const path = this.#storage.newPath('.snapshots');
        const id = path.slice(path.lastIndexOf('/') + 1);
        const volumes: string[] = [];
        let bytes = 0;
        try {
            for (const { Name: name, ...volume } of (await this.#inventory.volumes()).values()) {
                const isWanted = only?.includes(volume.Labels?.[labelOf.volume] ?? '') ?? true;
                if (
                    isWanted &&
                    volume.Labels?.[labelOf.project] === stack &&
                    isPlain({ Name: name, ...volume })
                ) {
                    const file = `${path}/${volumes.length}.tar`;
                    bytes += await this.#storage.append(file, this.#archives.read(name, signal), mostBytes);
                    volumes.push(name);
                }
            }
            const row = { id, stack, bytes, volumes: JSON.stringify(volumes), takenAt: Date.now() };
            await this.#ctx.db.write(async (em) => void (await em.insert(SnapshotEntity, row)));
        } catch (error) {
            await this.#storage.remove(path);
            throw error;
        }
        return { snapshot: id, bytes };
    }

    /**
     * Brings the volumes back. Containers that have them are stopped for it, and those that ran run again afterwards. A volume that is gone
     * is left out.
     *
     * @throws NOT_FOUND 40400
     */
    async restore(stack: string, id: string, signal: AbortSignal): Promise<void> {
        const row = await this.#find(stack, id);
        const volumes = JSON.parse(row.volumes) as readonly string[];
        const there = await this.#inventory.volumes();
        await this.whileStopped(volumes, async () => {
            for (const [index, name] of volumes.entries()) {
                signal.throwIfAborted();
                if (there.has(name)) {
                    const archive = this.#storage.read(`.snapshots/${id}/${index}.tar`);
                    await this.#archives.replace(name, archive, signal);
                }
            }
        });
    }

    /** Does something while no container runs that has one of the volumes. Those that ran run again, also when it failed. */
    async whileStopped(volumes: readonly string[], work: () => Promise<void>): Promise<void> {
        const has = ({ Mounts: mounts }: ListedContainer): boolean =>
            (mounts ?? []).some(({ Type, Name }) => Type === 'volume' && volumes.includes(Name ?? ''));
        const running = (await this.#inventory.list()).filter(
            (each) => has(each) && ['running', 'paused', 'restarting'].includes(each.State)
        );
        try {
            for (const { Id: container } of running) {
                await this.#making.stop(container);
            }
            await work();
        } finally {
            for (const { Id: container } of running) {
                await this.#making.startInPlace(container);
            }
        }
    }

    /** Drops a snapshot. Says whether it was there. */
    async drop(stack: string, id: string): Promise<boolean> {
        const count = await this.#ctx.db.write((em) => em.nativeDelete(SnapshotEntity, { id, stack }));
        if (count > 0) {
            await this.#storage.remove(`.snapshots/${id}`);
        }
        return count > 0;
    }

    /** Drops all snapshots of a stack that is removed. */
    async dropAll(stack: string): Promise<void> {
        const rows = await this.#ctx.db.read((em) => findRows(em, SnapshotEntity, { stack }));
        for (const { id } of rows) {
            await this.drop(stack, id);
        }
    }

    /** Removes what was written of snapshots that a killed panel cut. */
    async sweep(): Promise<void> {
        const rows = await this.#ctx.db.read((em) => findRows(em, SnapshotEntity, {}));
        const known = new Set(rows.map(({ id }) => id));
        for (const name of await this.#storage.list('.snapshots')) {
            if (!known.has(name)) {
                await this.#storage.remove(`.snapshots/${name}`);
            }
        }
    }

    async #find(stack: string, id: string): Promise<SnapshotRow> {
        const row = await this.#ctx.db.read((em) => findRow(em, SnapshotEntity, { id, stack }));
        if (row === null) {
            throw errors.notFound('There is no such snapshot');
        }
        return row;
    }
}
