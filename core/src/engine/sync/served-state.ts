import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';

import { hashOf } from '@portico/sdk';

import type { CertificatePem } from '../change.ts';
import type { CertificateCopies } from '../files/copies.ts';
import { bridgeOf, changesProfile } from '../files/table/entry.ts';
import type { SiteTable, TableMove } from '../files/table/table.ts';
import { type EngineConfig, type EngineDriver, EngineRejected } from '../port.ts';
import type { Projection, ProjectionChange } from '../render/projection/projection.ts';
import type { SiteCertificate } from '../site.ts';

/** Longer than a connection that the former configuration accepted waits to be read. */
const bridgedMs = 25;

/** A staged change: it reaches the engine with the next `sync`, unless it is undone. */
export interface Staged {
    undo(): void;
}

/** What a served state works with. */
export interface ServedStateOptions {
    readonly driver: EngineDriver;
    readonly projection: Projection;
    readonly table: SiteTable;
    readonly copies: CertificateCopies;
    /** The PEM texts of a staged certificate. */
    readonly pem: (id: number) => Promise<CertificatePem>;
}

/**
 * Knows what the engine serves and what it should serve, and brings the first to the second. The order of a sync leads no request astray:
 * first certificate files, then the configuration, then the table.
 */
export class ServedState {
    readonly projection: Projection;
    readonly #options: ServedStateOptions;
    /** By name: its entry on disk and the staged entry, where they differ. */
    readonly #moves = new Map<string, TableMove>();
    readonly #certificates = new Map<number, SiteCertificate>();
    /** What is left of the last load: names whose entries still lead the former configuration. */
    #bridges: (TableMove & { readonly from: string })[] = [];
    #loaded: EngineConfig | null = null;
    #loadedHash: string | null = null;
    #loadedAt = Number.NEGATIVE_INFINITY;
    #loads = 0;
    #generation = 0;
    #invalid = true;

    constructor(options: ServedStateOptions) {
        this.#options = options;
        this.projection = options.projection;
    }

    /** Whether the next `sync` loads a configuration. */
    get needsReload(): boolean {
        return this.projection.needsReload;
    }

    /** Whether the engine lacks anything that is staged. */
    get behind(): boolean {
        return this.projection.needsReload || this.#moves.size > 0;
    }

    /** The configuration that the engine took last; null: none yet in this process. */
    get loaded(): EngineConfig | null {
        return this.#loaded;
    }

    /** SHA-256 of `loaded` as canonical JSON. */
    get loadedHash(): string | null {
        return this.#loadedHash;
    }

    /** When the last load ended, on the clock of `performance.now()`. */
    get loadedAt(): number {
        return this.#loadedAt;
    }

    /** Number of loads so far. */
    get loads(): number {
        return this.#loads;
    }

    /** Changes whenever the engine was changed, or may have been. */
    get generation(): number {
        return this.#generation;
    }

    /** Lays a change over what is staged already. @throws Error when two sites have one name, or a name or address is malformed */
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

    /** Stops trusting what is known about the engine: the next `sync` compares it. */
    invalidate(): void {
        this.#invalid = true;
    }

    /**
     * Makes the engine serve everything that is staged.
     * @param how - `leavesBridges` leaves `endBridges` to the caller
     * @returns whether a configuration was loaded
     * @throws EngineRejected when the engine refuses, and goes on as before; EngineUnavailable; errors of the file system
     */
    async sync({ reload = false, leavesBridges = false } = {}): Promise<boolean> {
        this.#generation += 1;
        try {
            await this.endBridges();
            const reloaded = await this.#syncOnce(reload, this.#invalid);
            if (!leavesBridges) {
                await this.endBridges();
            }

            return reloaded;
        } finally {
            this.#generation += 1;
        }
    }

    /**
     * Ends the bridges: entries by which the former configuration, too, answers for names that a load gave another profile. Waits until that
     * configuration has answered the connections that it accepted, and gives the names their own entries. Never rejects: after an error of the
     * file system the next sync compares the table.
     */
    async endBridges(): Promise<void> {
        if (this.#bridges.length === 0) {
            return;
        }

        await wait(bridgedMs);
        this.#generation += 1;
        const bridges = this.#bridges;
        this.#bridges = [];
        await this.#options.table.apply(bridges).catch(() => this.invalidate());
        this.#generation += 1;
    }

    /**
     * Makes the engine serve again what it was given last, without what is staged since. For an engine that came back or was changed by others.
     * @returns whether anything had to be repaired
     */
    async repair(how = { reload: false }): Promise<boolean> {
        if (this.#loaded === null) {
            return this.sync(how);
        }

        const { driver, table } = this.#options;
        await this.endBridges();
        this.#generation += 1;
        this.#invalid = true;
        try {
            const differs = how.reload || hashOf(await driver.config()) !== this.#loadedHash;
            if (differs) {
                await this.#writeCopies(true);
                await this.#loadConfig(this.#loaded, true);
            }

            const moved = await table.reconcile(this.servedTable());
            this.#invalid = false;
            return differs || moved.length > 0;
        } finally {
            this.#generation += 1;
        }
    }

    /** Validates what is staged, without serving it. @throws EngineRejected; EngineUnavailable when there is no verdict */
    async prove(): Promise<void> {
        const config = await this.proof();
        if (config !== null) {
            await this.#options.driver.validate(config);
        }
    }

    /** The configuration that `prove` validates, with all files in place; null when no load is needed. */
    async proof(): Promise<EngineConfig | null> {
        if (!this.projection.needsReload) {
            return null;
        }

        await this.#writeCopies(false);
        return this.projection.config();
    }

    /** The table as the engine serves it: name to entry. */
    servedTable(): ReadonlyMap<string, string> {
        const served = new Map(this.projection.table);
        for (const { name, from } of this.#moves.values()) {
            if (from === null) {
                served.delete(name);
            } else {
                served.set(name, from);
            }
        }

        for (const { name, from } of this.#bridges) {
            served.set(name, from);
        }

        return served;
    }

    async #syncOnce(reload: boolean, doubted: boolean): Promise<boolean> {
        const { driver, table } = this.#options;
        // If a step fails, it is no longer known what the engine serves.
        this.#invalid = true;
        let reloaded = false;
        try {
            if (doubted || reload || this.projection.needsReload) {
                await this.#writeCopies(doubted || reload);
                reloaded = await this.#load(reload, doubted);
            } else if (this.#moves.size > 0) {
                await checkAnswers(driver);
            }
        } catch (error) {
            // After a refusal the engine serves what it served before.
            this.#invalid = doubted || !(error instanceof EngineRejected);
            throw error;
        }

        if (doubted) {
            await table.reconcile(this.projection.table);
        } else if (this.#moves.size > 0) {
            await table.apply(reloaded ? this.#bridge() : [...this.#moves.values()]);
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
        const needed = !adopted && (always || doubted || !isDeepStrictEqual(config, this.#loaded));
        if (needed) {
            // The hash is made while the engine works.
            const hashed = nextTurn().then(() => projection.configHash());
            await Promise.all([this.#loadConfig(config, doubted), hashed]);
        }

        projection.loaded();
        this.#loaded = config;
        this.#loadedHash = projection.configHash();
        return needed;
    }

    /**
     * Loads a configuration. The previous one does not know a new profile, and would answer 503 on connections that it has accepted. A bridge
     * prevents that: an entry that also names the former profile. Where there is none, the load waits for these connections. It also waits when
     * certificates change: the previous configuration would refuse the handshake for a name whose certificate it lacks.
     */
    async #loadConfig(config: EngineConfig, reconciles: boolean): Promise<void> {
        const moves = [...this.#moves.values()].filter(({ from, to }) => changesProfile(from, to));
        const drain =
            moves.some(({ from, to }) => reconciles || bridgeOf(from ?? '', to ?? '') === null) ||
            !isDeepStrictEqual(certificatesOf(this.#loaded), certificatesOf(config));
        await this.#options.driver.load(config, { drain });
        this.#loads += 1;
        this.#loadedAt = performance.now();
    }

    /** The moves. A name that gets another profile gets a bridge first, an entry that the former configuration can serve, too. */
    #bridge(): readonly TableMove[] {
        return Array.from(this.#moves.values(), (move) => {
            const { name, from, to } = move;
            const bridge = changesProfile(from, to) ? bridgeOf(from ?? '', to ?? '') : null;
            if (bridge === null) {
                return move;
            }

            this.#bridges.push({ name, from: bridge, to });
            return { name, from, to: bridge };
        });
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

/** A change of the table alone does not speak to the engine; it must answer all the same, or nothing would serve the change. */
const checkAnswers = async (driver: EngineDriver): Promise<void> => {
    try {
        await driver.upstreams();
    } catch (error) {
        if (!(error instanceof EngineRejected)) {
            throw error;
        }
    }
};

/** The certificates that a configuration brings. */
function certificatesOf(config: EngineConfig | null): unknown {
    return (config?.['apps'] as { readonly tls?: { readonly certificates?: unknown } } | undefined)?.tls
        ?.certificates;
}
