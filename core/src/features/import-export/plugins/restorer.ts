/**
 * Gives plugins the data of an import back. The data is kept sealed from the import's commit until the plugin has taken it. A plugin that does not
 * run gets it when it first runs; a return that the end of the panel interrupted is repeated. Data that was taken or refused is not given again.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

import { KeyedMutex, type Notification } from '@portico/sdk';

import type { ImportMode } from '../../../engine/section.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Database, Statement, Transaction } from '../../../platform/database/database.ts';
import type { Logger } from '../../../platform/log/log.ts';
import { PluginRestoreEntity } from '../entities.ts';
import type { PluginHooks, Recorder } from '../ports.ts';
import { type Contribution, judgeRestore } from './contributions.ts';

/** What a {@link Restorer} works with. */
export interface RestorerOptions {
    readonly db: Database;
    readonly clock: Clock;
    readonly log: Logger;
    readonly keyring: {
        seal(label: string, plain: string): string;
        open(label: string, sealed: string): string;
    };
    readonly recorder: Recorder;
    readonly hooks: PluginHooks;
    /** The running plugin of a name; every start gives it another `generation`. */
    running(plugin: string): { readonly package: string; readonly generation: object } | null;
    /** Tells the admins of a failure in the background. */
    notify(notification: Notification): void;
}

/** Who imported it, for the audit log. */
export interface Importer {
    readonly actor: {
        readonly id: number | null;
        readonly username: string | null;
        readonly tokenId: number | null;
        readonly plugin: string | null;
    };
    readonly requestId: string;
}

/** How the return of a plugin's data ended. */
export interface Restored {
    /** `waiting`: the plugin does not run, or went away meanwhile. */
    readonly state: 'restored' | 'failed' | 'waiting';
    readonly notes: readonly string[];
}

interface Row {
    readonly id: number;
    readonly name: string;
    readonly package: string;
    readonly version: string;
    readonly mode: ImportMode;
    readonly attempts: number;
    readonly sealed: string;
    readonly importer: string;
}

const label = 'import-export plugin data';
/** How often a return is tried: a plugin that crashes the panel when it gets its data would otherwise do so at every start. */
const mostAttempts = 3;
const waiting: Restored = { state: 'waiting', notes: ['its data is kept until it runs'] };

/** Gives plugins their data back, and keeps it until they have taken it. */
export class Restorer {
    readonly #options: RestorerOptions;
    readonly #outside = AsyncLocalStorage.snapshot();
    readonly #one: Statement<[string], Row>;
    readonly #all: Statement<[], Row>;
    /** One at a time for each plugin. */
    readonly #restores = new KeyedMutex();
    readonly #closing = new AbortController();
    #holds = 0;

    constructor(options: RestorerOptions) {
        this.#options = options;
        this.#one = options.db.prepare(
            'select id, name, package, version, mode, attempts, sealed, importer from plugin_restores where name = ?'
        );
        this.#all = options.db.prepare(
            'select id, name, package, version, mode, attempts, sealed, importer from plugin_restores order by name'
        );
    }

    /** The waiting data, for an export: it belongs to the panel as if it had been taken. */
    waiting(): ReadonlyMap<string, Contribution> {
        return new Map(
            this.#all
                .all()
                .map((row) => [
                    row.name,
                    { package: row.package, version: row.version, items: this.#itemsOf(row) }
                ])
        );
    }

    /** Keeps data inside the transaction of an import, in place of what waited before. */
    async keep(
        tx: Transaction,
        name: string,
        { package: packageName, version, items }: Contribution,
        mode: ImportMode,
        importer: Importer
    ): Promise<void> {
        await this.forget(tx, name);
        await tx.em.insert(PluginRestoreEntity, {
            name,
            package: packageName,
            version,
            mode,
            attempts: 0,
            sealed: this.#options.keyring.seal(label, JSON.stringify(items)),
            importer: JSON.stringify(importer),
            keptAt: this.#options.clock.now()
        } as never); // the database gives the id
    }

    async forget(tx: Transaction, name: string): Promise<void> {
        await tx.em.nativeDelete(PluginRestoreEntity, { name });
    }

    /** Holds back all returns while an import is under way, which starts them itself. Returns the function that ends the hold. */
    hold(): () => void {
        this.#holds += 1;
        return () => {
            this.#holds -= 1;
            if (this.#holds === 0) {
                this.#all.all().forEach(({ name }) => this.started(name));
            }
        };
    }

    /** Called when a plugin runs: gives it its waiting data, in the background. */
    started(name: string): void {
        if (this.#holds > 0 || this.#closing.signal.aborted || this.#one.get(name) === undefined) {
            return;
        }
        this.#outside(
            () =>
                void this.restore(name, this.#closing.signal)
                    .then((restored) => {
                        if (restored?.state === 'failed') {
                            this.#options.notify({
                                event: 'plugin.restoreFailed',
                                severity: 'warning',
                                title: `The plugin ${name} did not take back its imported data`,
                                text: `${restored.notes.join('; ')}. Import it again`
                            });
                        }
                    })
                    .catch((error: unknown) =>
                        this.#options.log.error('Imported data of a plugin could not be given back', {
                            plugin: name,
                            error
                        })
                    )
        );
    }

    /** Gives a plugin back what waits for it; null when nothing does. */
    restore(name: string, signal: AbortSignal): Promise<Restored | null> {
        return this.#restores.run(name, () =>
            this.#restore(name, AbortSignal.any([signal, this.#closing.signal]))
        );
    }

    /** Stops. The next start repeats what is under way. */
    async close(): Promise<void> {
        this.#closing.abort(new Error('The panel stops'));
        await this.#restores.idle();
    }

    async #restore(name: string, signal: AbortSignal): Promise<Restored | null> {
        const { running, hooks, db, log } = this.#options;
        for (;;) {
            const row = this.#one.get(name);
            if (row === undefined) {
                return null;
            }
            const here = running(name);
            if (here === null || here.package !== row.package || signal.aborted) {
                return waiting;
            }
            if (row.attempts >= mostAttempts) {
                return this.#end(row, {
                    state: 'failed',
                    notes: [`it was cut ${mostAttempts} times while it took its data back`]
                });
            }
            await db.write((tx) =>
                tx.em.nativeUpdate(PluginRestoreEntity, { id: row.id }, { attempts: row.attempts + 1 })
            );
            const outcomes = await Array.fromAsync(
                hooks.restore(
                    name,
                    { version: row.version, mode: row.mode, items: this.#itemsOf(row) },
                    signal
                )
            );
            // A plugin that stops meanwhile has not answered, even if its hook returned something.
            if (!signal.aborted && running(name)?.generation === here.generation) {
                const { ok, notes } = judgeRestore(outcomes);
                return this.#end(row, { state: ok ? 'restored' : 'failed', notes });
            }
            log.warn('A plugin went away while it took back its imported data; it gets it again', {
                plugin: name
            });
        }
    }

    async #end(row: Row, restored: Restored): Promise<Restored> {
        const { db, recorder, log } = this.#options;
        const { actor, requestId } = JSON.parse(row.importer) as Importer;
        const isOk = restored.state === 'restored';
        await db.write(async (tx) => {
            await tx.em.nativeDelete(PluginRestoreEntity, { id: row.id });
            await recorder.record(tx, {
                actor,
                action: 'import',
                resource: 'plugins',
                resourceId: row.name,
                outcome: isOk ? 'success' : 'failure',
                status: null,
                code: isOk ? 0 : 50303,
                ip: null,
                userAgent: null,
                requestId,
                after: {
                    data: restored.state,
                    version: row.version,
                    mode: row.mode,
                    ...(isOk ? {} : { notes: restored.notes })
                }
            });
        });
        log[isOk ? 'info' : 'warn'](
            isOk ? 'A plugin took back its imported data' : 'A plugin did not take back its imported data',
            { plugin: row.name, ...(isOk ? {} : { notes: restored.notes }) }
        );
        return restored;
    }

    #itemsOf({ sealed }: Row): Contribution['items'] {
        return JSON.parse(this.#options.keyring.open(label, sealed)) as Contribution['items'];
    }
}
