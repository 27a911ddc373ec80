import { canonicalize, hashOf } from '@portico/sdk';

import type { Transaction } from '../../platform/database/database.ts';
import type { HostRow } from '../change.ts';
import { withFragments } from '../fragments/fragments.ts';
import type { FragmentStore } from '../fragments/store.ts';
import type { EngineMemory, Revisions } from '../revisions/revisions.ts';
import type { EngineOptions } from '../service.ts';
import { Rows } from './draft-overlay.ts';
import type { Batch } from './ports.ts';
import type { ServedState } from './served-state.ts';

/** The committed rows, and how far the engine is with them: the last revision, the last one applied, and the hosts that wait. */
export class SyncProgress {
    readonly #options: EngineOptions;
    readonly #revisions: Revisions;
    readonly #fragments: Pick<FragmentStore, 'load'>;
    readonly #behind = new Map<number, HostRow | null>();
    readonly #refused = new Map<number, string>();
    #rows = new Rows(
        [],
        [],
        {
            httpPort: 80,
            httpsPort: 443,
            acmeEmail: null,
            acmeDirectory: null,
            acmeEab: null,
            accessLog: false
        },
        0
    );
    #memory: EngineMemory = { wanted: 'running', revision: 0, applied: 0, lastHostId: 0, settings: null };

    constructor(options: EngineOptions, revisions: Revisions, fragments: Pick<FragmentStore, 'load'>) {
        this.#options = options;
        this.#revisions = revisions;
        this.#fragments = fragments;
    }

    get rows(): Rows {
        return this.#rows;
    }

    get memory(): EngineMemory {
        return this.#memory;
    }

    /** Hosts that wait, by id: the row that the engine serves; null: it serves no such host. */
    get behind(): ReadonlyMap<number, HostRow | null> {
        return this.#behind;
    }

    /** The engine's message for hosts that wait and that it refused, by id. */
    get refused(): ReadonlyMap<number, string> {
        return this.#refused;
    }

    /** Reads the rows and the state row. The engine is not asked. */
    async load(): Promise<void> {
        const { hosts, certificates, settings } = this.#options;
        const memory = this.#revisions.memory();
        const now = withFragments(settings.engine(), this.#fragments.load());
        this.#rows = new Rows(await hosts.load(), await certificates.load(), now, memory.lastHostId);
        this.#memory =
            canonicalize(memory.settings) === canonicalize(now) ? { ...memory, settings: now } : memory;
        const { applied, revision } = memory;
        for (const [id, { row }] of applied < revision ? this.#revisions.undo(applied, revision) : []) {
            this.#behind.set(id, row);
        }
    }

    /** Sets whether the engine should run. `remember` makes it durable. */
    setWanted(wanted: EngineMemory['wanted']): void {
        this.#memory = { ...this.#memory, wanted };
    }

    /** Notes for every host that waits that the engine refused it. */
    refuse(message: string): void {
        for (const id of this.#behind.keys()) {
            this.#refused.set(id, message);
        }
    }

    /** The number that the revision of a batch has. */
    revisionOf(batch: Batch): number {
        return this.#memory.revision + (makesRevision(batch) ? 1 : 0);
    }

    /** Writes the revision of a batch and the state row. @returns what to do in memory after the commit */
    async recordBatch(
        tx: Transaction,
        batch: Batch,
        { projection }: Pick<ServedState, 'projection'>
    ): Promise<() => void> {
        const number = this.revisionOf(batch);
        const { applied, reloaded, deltas, by, draft } = batch;
        if (makesRevision(batch)) {
            await this.#revisions.append(tx, {
                number,
                at: this.#options.clock.now(),
                applied,
                reloaded,
                hash: hashOf([projection.configHash(), projection.tableHash()]),
                by,
                deltas,
                settings: draft.settings
            });
        }

        if (applied && this.#memory.applied < this.#memory.revision) {
            await this.#markApplied(tx, number, new Set(deltas.map(({ id }) => id)));
        }

        const next: EngineMemory = {
            ...this.#memory,
            revision: number,
            applied: applied ? number : this.#memory.applied,
            lastHostId: draft.lastHostId,
            settings: applied ? draft.settings : this.#memory.settings
        };
        await this.#writeMemory(tx, next);
        return () => {
            this.#memory = next;
            this.#advance(batch);
        };
    }

    /** Writes whether the engine should run and, with `caughtUp`, that it serves the rows. */
    async remember(tx: Transaction, caughtUp: boolean): Promise<void> {
        if (!caughtUp) {
            await this.#revisions.remember(tx, { wanted: this.#memory.wanted });
            return;
        }

        const { revision } = this.#memory;
        const next: EngineMemory = { ...this.#memory, applied: revision, settings: this.#rows.settings };
        await this.#markApplied(tx, revision, new Set());
        await this.#revisions.remember(tx, next);
        tx.afterCommit(() => {
            this.#memory = next;
            this.#behind.clear();
            this.#refused.clear();
        });
    }

    /** Writes that the engine serves the rows, where that is not written yet. */
    async recordCaughtUp(): Promise<void> {
        const { applied, revision, settings } = this.#memory;
        if (applied < revision || settings !== this.#rows.settings) {
            await this.#options.db.writeEssential((tx) => this.remember(tx, true));
        }
    }

    #advance({ applied, deltas }: Batch): void {
        for (const { id, before } of deltas) {
            this.#refused.delete(id);
            if (!applied && !this.#behind.has(id)) {
                this.#behind.set(id, before);
            }
        }

        if (applied) {
            this.#behind.clear();
            this.#refused.clear();
        }
    }

    async #markApplied(tx: Transaction, upTo: number, except: ReadonlySet<number>): Promise<void> {
        const ids = [...this.#behind.keys()].filter((id) => this.#rows.hosts.has(id) && !except.has(id));
        if (ids.length > 0) {
            await this.#options.hosts.markApplied(tx, ids);
        }

        await this.#revisions.markApplied(tx, upTo);
    }

    async #writeMemory(tx: Transaction, next: EngineMemory): Promise<void> {
        const now = this.#memory;
        const settings = next.settings === now.settings ? {} : { settings: next.settings };
        if (
            next.revision !== now.revision ||
            next.applied !== now.applied ||
            next.lastHostId !== now.lastHostId ||
            'settings' in settings
        ) {
            await this.#revisions.remember(tx, {
                revision: next.revision,
                applied: next.applied,
                lastHostId: next.lastHostId,
                ...settings
            });
        }
    }
}

/** A batch that changed nothing that a revision holds makes none. */
const makesRevision = ({ deltas, beyondHosts }: Batch): boolean => deltas.length > 0 || beyondHosts;
