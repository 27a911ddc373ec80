/**
 * What the engine serves against what it should serve. The projection says what is wanted; here it is known which of it has not
 * reached the engine yet, and in which order it gets there without one request led astray: files, then configuration, then table.
 */
import { setTimeout as wait } from 'node:timers/promises';

import { hashOf } from '../../platform/canonical-json.ts';
import type { CertificatePem } from '../change.ts';
import type { CertificateCopies } from '../files/copies.ts';
import { parseEntry } from '../files/table/entry.ts';
import type { SiteTable, TableMove } from '../files/table/table.ts';
import { type EngineConfig, type EngineDriver, EngineRejected } from '../port.ts';
import type { Projection, ProjectionChange } from '../render/projection/projection.ts';
import type { SiteCertificate } from '../site.ts';

/**
 * Milliseconds from a load to the table. The listeners of the configuration before have taken connections that it still answers, and it
 * would answer 503 for a profile that only the new one has.
 */
const drainMs = 25;

/** A change that is wanted and, if it is not taken back, reaches the engine with the next `bring`. */
export interface Staged {
    undo(): void;
}

export interface Serving {
    readonly projection: Projection;
    stage(change: ProjectionChange): Staged;
    /** Whether `bring` will load a configuration. */
    readonly needsReload: boolean;
    /** Whether anything that is wanted has not reached the engine. */
    readonly behind: boolean;
    /** What the engine was last given and took; null: not by this process yet. */
    readonly loaded: EngineConfig | null;
    readonly loadedHash: string | null;
    /** When the last load ended, of `performance.now()`. */
    readonly loadedAt: number;
    readonly loads: number;
    /** Another number whenever something was, or may have been, brought to the engine in between. */
    readonly generation: number;
    /** Says that nobody knows what the engine has: the next `bring` looks. */
    invalidate(): void;
    /**
     * Makes the engine serve what is wanted.
     * @returns whether it had to load a configuration
     * @throws EngineRejected the engine goes on as before; EngineUnavailable; what the file system says
     */
    sync(how?: { readonly reload: boolean }): Promise<boolean>;
    /**
     * Makes the engine serve again what it was given last, whatever waits: after it was changed by others, or came back.
     * @returns whether anything had to be repaired
     */
    repair(how?: { readonly reload: boolean }): Promise<boolean>;
    /** Proves what is wanted without serving it. @throws EngineRejected, EngineUnavailable when there is no verdict */
    prove(): Promise<void>;
    /** What `prove` would prove, with everything that it names in place; null: it would prove nothing. */
    proof(): Promise<EngineConfig | null>;
    /** The table as the engine serves it. */
    servedTable(): ReadonlyMap<string, string>;
}

export interface ServingOptions {
    readonly driver: EngineDriver;
    readonly projection: Projection;
    readonly table: SiteTable;
    readonly copies: CertificateCopies;
    /** The texts of a certificate that is wanted. */
    readonly pem: (id: number) => Promise<CertificatePem>;
}

export const createServing = (options: ServingOptions): Serving => new EngineServing(options);

class EngineServing implements Serving {
    readonly projection: Projection;
    readonly #options: ServingOptions;
    /** By name: its entry on disk, and the one that is wanted. */
    readonly #moves = new Map<string, TableMove>();
    readonly #certificates = new Map<number, SiteCertificate>();
    #loaded: EngineConfig | null = null;
    #loadedHash: string | null = null;
    #loadedAt = Number.NEGATIVE_INFINITY;
    #loads = 0;
    #generation = 0;
    #invalid = true;

    constructor(options: ServingOptions) {
        this.#options = options;
        this.projection = options.projection;
    }

    get needsReload(): boolean {
        return this.projection.needsReload;
    }

    get behind(): boolean {
        return this.projection.needsReload || this.#moves.size > 0;
    }

    get loaded(): EngineConfig | null {
        return this.#loaded;
    }

    get loadedHash(): string | null {
        return this.#loadedHash;
    }

    get loadedAt(): number {
        return this.#loadedAt;
    }

    get loads(): number {
        return this.#loads;
    }

    get generation(): number {
        return this.#generation;
    }

    stage(change: ProjectionChange): Staged {
        const step = this.projection.change(change);
        for (const move of step.table) {
            this.#move(move);
        }

        const before = (change.certificates ?? []).map(({ id }) => ({
            id,
            certificate: this.#certificates.get(id) ?? null
        }));
        this.#stageCertificates(change.certificates ?? []);
        return {
            undo: () => {
                step.undo();
                this.#stageCertificates(before.toReversed());
                for (const { name, from, to } of step.table.toReversed()) {
                    this.#move({ name, from: to, to: from });
                }
            }
        };
    }

    invalidate(): void {
        this.#invalid = true;
    }

    async sync(how = { reload: false }): Promise<boolean> {
        this.#generation += 1;
        try {
            return await this.#syncOnce(how.reload, this.#invalid);
        } finally {
            this.#generation += 1;
        }
    }

    async repair(how = { reload: false }): Promise<boolean> {
        if (this.#loaded === null) {
            return this.sync(how);
        }

        const { driver, table } = this.#options;
        this.#generation += 1;
        this.#invalid = true;
        try {
            const differs = how.reload || hashOf(await driver.config()) !== this.#loadedHash;
            if (differs) {
                await this.#writeCopies(true);
                await this.#loadConfig(this.#loaded);
            }

            const moved = await table.reconcile(this.servedTable());
            this.#invalid = false;
            return differs || moved.length > 0;
        } finally {
            this.#generation += 1;
        }
    }

    async prove(): Promise<void> {
        const config = await this.proof();
        if (config !== null) {
            await this.#options.driver.validate(config);
        }
    }

    async proof(): Promise<EngineConfig | null> {
        if (!this.projection.needsReload) {
            return null;
        }

        await this.#writeCopies(false);
        return this.projection.config();
    }

    servedTable(): ReadonlyMap<string, string> {
        const served = new Map(this.projection.table);
        for (const { name, from } of this.#moves.values()) {
            if (from === null) {
                served.delete(name);
            } else {
                served.set(name, from);
            }
        }

        return served;
    }

    async #syncOnce(reload: boolean, doubted: boolean): Promise<boolean> {
        const { driver, table } = this.#options;
        // Whatever fails on the way leaves an engine of which less is known than before.
        this.#invalid = true;
        let reloaded = false;
        try {
            if (doubted || reload || this.projection.needsReload) {
                await this.#writeCopies(doubted || reload);
                reloaded = await this.#load(reload, doubted);
            } else if (this.#moves.size > 0) {
                await answers(driver);
            }
        } catch (error) {
            // A refusal is a known state: the one before.
            this.#invalid = doubted || !(error instanceof EngineRejected);
            throw error;
        }

        if (reloaded && this.#changesProfile()) {
            await wait(drainMs);
        }

        if (doubted) {
            await table.reconcile(this.projection.table);
        } else if (this.#moves.size > 0) {
            await table.apply([...this.#moves.values()]);
        }

        this.#moves.clear();
        if (reloaded) {
            await this.#options.copies.keep(this.#certificates.values());
        }

        this.#invalid = false;
        return reloaded;
    }

    async #load(always: boolean, doubted: boolean): Promise<boolean> {
        const { projection } = this;
        const found = doubted && !always ? await this.#options.driver.config() : null;
        const adopted = found !== null && projection.adopt(found);
        const config = projection.config();
        const hash = projection.configHash();
        const needed = !adopted && (always || doubted || hash !== this.#loadedHash);
        if (needed) {
            await this.#loadConfig(config);
        }

        projection.loaded();
        this.#loaded = config;
        this.#loadedHash = hash;
        return needed;
    }

    async #loadConfig(config: EngineConfig): Promise<void> {
        await this.#options.driver.load(config);
        this.#loads += 1;
        this.#loadedAt = performance.now();
    }

    /** Whether a name that is served moves to a profile that the configuration before may not have. */
    #changesProfile(): boolean {
        for (const { from, to } of this.#moves.values()) {
            if (from !== null && to !== null && parseEntry(from)?.profile !== parseEntry(to)?.profile) {
                return true;
            }
        }

        return false;
    }

    #writeCopies(all: boolean): Promise<void> {
        return this.#options.copies.write(this.#certificates.values(), this.#options.pem, all);
    }

    #stageCertificates(
        changes: readonly { readonly id: number; readonly certificate: SiteCertificate | null }[]
    ): void {
        for (const { id, certificate } of changes) {
            if (certificate === null) {
                this.#certificates.delete(id);
            } else {
                this.#certificates.set(id, certificate);
            }
        }
    }

    #move({ name, from, to }: TableMove): void {
        const onDisk = this.#moves.get(name)?.from ?? (this.#moves.has(name) ? null : from);
        if (onDisk === to) {
            this.#moves.delete(name);
        } else {
            this.#moves.set(name, { name, from: onDisk, to });
        }
    }
}

/** A table that nobody reads would be no change: the engine must be there, also where it is not asked to load. */
const answers = async (driver: EngineDriver): Promise<void> => {
    try {
        await driver.upstreams();
    } catch (error) {
        if (!(error instanceof EngineRejected)) {
            throw error;
        }
    }
};
