/**
 * Quotas of roots. What a root has is counted now and then; between two counts, each write reserves its bytes before it puts them down. So
 * two writes at once never pass a quota together that neither passes alone.
 */
import { KeyedMutex } from '@portico/sdk';

import { UploadEntity } from '../entities.ts';
import { fail } from '../errors.ts';
import { sizeOf } from '../files/size.ts';
import type { Ctx } from '../settings.ts';
import { privateFolder } from './path.ts';
import type { Root } from './roots.ts';

/** Age of a count after which it is made again; a count that took long is kept 20 times as long. */
const freshMs = 60_000;
/** Age below which a count is not made again only to refuse a write. */
const refusalMs = 1_000;
/** How long a list waits for the first count of a root. */
const firstCountMs = 2_000;

/** Bytes that a write has reserved. Disposing of it gives back what was not kept. */
export interface Reservation extends Disposable {
    /** Reserves more. @throws QUOTA_EXCEEDED 50750 */
    grow(bytes: number): Promise<void>;
    /** The bytes are in place now and belong to the root. */
    keep(): void;
}

const free: Reservation = {
    grow: () => Promise.resolve(),
    keep: () => undefined,
    [Symbol.dispose]: () => undefined
};

/** What is known of one root. */
interface Ledger {
    used: number;
    reserved: number;
    /** Bytes kept since the last count began. */
    kept: number;
    countedAt: number;
    staleAt: number;
    /** Bytes were freed since the last count. */
    freed: boolean;
}

/** The quotas of all roots. */
export class Quotas {
    readonly #ctx: Ctx;
    readonly #mutex = new KeyedMutex();
    readonly #ledgers = new Map<string, Ledger>();

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Reserves the bytes of a write. @throws QUOTA_EXCEEDED 50750 */
    async reserve(root: Root, bytes: number): Promise<Reservation> {
        if (root.quotaBytes === null) {
            return free;
        }
        const ledger = this.#ledger(root);
        let held = 0;
        const take = async (more: number): Promise<void> => {
            await this.#mutex.run(root.folder, () => this.#take(root, ledger, more));
            held += more;
        };
        await take(bytes);
        return {
            grow: take,
            keep() {
                ledger.used += held;
                ledger.kept += held;
                ledger.reserved -= held;
                held = 0;
            },
            [Symbol.dispose]() {
                ledger.reserved -= held;
                held = 0;
            }
        };
    }

    /** Tells that bytes came into a root whose room was taken by other means than a reservation. */
    placed({ folder }: Root, bytes: number): void {
        const ledger = this.#ledgers.get(folder);
        if (ledger !== undefined) {
            ledger.used += bytes;
            ledger.kept += bytes;
        }
    }

    /** Tells that bytes of a root were freed. */
    freed({ folder }: Root): void {
        const ledger = this.#ledgers.get(folder);
        if (ledger !== undefined) {
            ledger.freed = true;
        }
    }

    /** What a root has, for a list; null without a quota, and while the first count of a large root goes on. */
    async used(root: Root): Promise<number | null> {
        if (root.quotaBytes === null) {
            return null;
        }
        const ledger = this.#ledger(root);
        const refreshed = this.#mutex.run(root.folder, async () => {
            if (Date.now() > ledger.staleAt || (ledger.freed && Date.now() - ledger.countedAt > refusalMs)) {
                await this.#count(root, ledger);
            }
        });
        refreshed.catch((error: unknown) =>
            this.#ctx.log.debug('A root could not be counted', { root: root.name, error: String(error) })
        );
        const timeout = Promise.withResolvers<void>();
        const timer = setTimeout(timeout.resolve, firstCountMs);
        try {
            await Promise.race([refreshed.catch(() => undefined), timeout.promise]);
        } finally {
            clearTimeout(timer);
        }
        return ledger.countedAt === 0 ? null : ledger.used + (await this.#uploads(root));
    }

    async #take(root: Root, ledger: Ledger, bytes: number): Promise<void> {
        if (Date.now() > ledger.staleAt) {
            await this.#count(root, ledger);
        }
        if (await this.#fits(root, ledger, bytes)) {
            ledger.reserved += bytes;
            return;
        }
        if (ledger.freed || Date.now() - ledger.countedAt > refusalMs) {
            await this.#count(root, ledger);
            if (await this.#fits(root, ledger, bytes)) {
                ledger.reserved += bytes;
                return;
            }
        }
        throw fail.QUOTA_EXCEEDED({ root: root.name, limit: root.quotaBytes });
    }

    async #fits(root: Root, ledger: Ledger, bytes: number): Promise<boolean> {
        // Read before the uploads: a reservation that becomes an upload meanwhile is counted twice, never not at all.
        const { reserved } = ledger;
        const uploads = await this.#uploads(root);
        return ledger.used + Math.max(reserved, ledger.reserved) + uploads + bytes <= (root.quotaBytes ?? 0);
    }

    /** Unfinished uploads count with the length that they announced. */
    async #uploads({ folder }: Root): Promise<number> {
        const rows = await this.#ctx.db.read((em) => em.find(UploadEntity, { folder, done: false }));
        return rows.reduce((sum, { length }) => sum + length, 0);
    }

    async #count(root: Root, ledger: Ledger): Promise<void> {
        const begun = Date.now();
        ledger.kept = 0;
        ledger.freed = false;
        const size = await sizeOf(root.files, '', {
            signal: this.#ctx.signal,
            most: Infinity,
            // Scratch files are covered by reservations, uploads by the length that they announced.
            includes: (path) =>
                path !== `${privateFolder}/uploads` &&
                !path.slice(path.lastIndexOf('/') + 1).startsWith(`${privateFolder}-`)
        });
        const took = Date.now() - begun;
        ledger.used = (size?.bytes ?? 0) + ledger.kept;
        ledger.countedAt = begun;
        ledger.staleAt = begun + took + Math.max(freshMs, 20 * took);
    }

    #ledger({ folder }: Root): Ledger {
        const known = this.#ledgers.get(folder);
        if (known !== undefined) {
            return known;
        }
        const ledger = { used: 0, reserved: 0, kept: 0, countedAt: 0, staleAt: 0, freed: false };
        this.#ledgers.set(folder, ledger);
        return ledger;
    }
}
