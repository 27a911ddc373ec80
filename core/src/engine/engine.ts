import { canonicalize, type Reply } from '@portico/sdk';

import type { Call } from '../platform/call.ts';
import { fail } from '../platform/errors.ts';
import type { Change, Draft, HostRow, HostState, Outcome } from './change.ts';
import { EngineControl } from './control/control.ts';
import { findDrift } from './control/drift.ts';
import { DriftWatch } from './control/drift-watch.ts';
import { readStatus } from './control/status.ts';
import { translateErrors } from './errors.ts';
import { fragmentHandlers, Fragments } from './fragments/fragments.ts';
import { FragmentStore } from './fragments/store.ts';
import type { EngineConfig, EngineProcess, EngineUpstream, LogOptions } from './port.ts';
import { explain } from './render/render.ts';
import { restoreRevision } from './revisions/restore.ts';
import { type RevisionDetail, Revisions, type RevisionSummary } from './revisions/revisions.ts';
import type {
    ControlResult,
    Drift,
    EngineOptions,
    EngineService,
    EngineStatus,
    RestoreResult
} from './service.ts';
import type { Site } from './site.ts';
import { DraftOverlay } from './sync/draft-overlay.ts';
import { projectionChangeOf } from './sync/engine-context.ts';
import { EngineState } from './sync/engine-state.ts';
import type { SyncPorts, Waiter } from './sync/ports.ts';
import { SyncQueue } from './sync/queue.ts';
import { syncBatch } from './sync/sync-batch.ts';
import { advancedOf } from './wire/mask.ts';

const reloadWindowMs = 1000;
const driftCheckMs = 15_000;

/** The engine service: the rows, the queue through which they change, and the process that serves them. It does nothing before `boot`. */
export class ProxyEngine implements EngineService {
    readonly fragments: Fragments;
    readonly #options: EngineOptions;
    readonly #revisions: Revisions;
    readonly #state: EngineState;
    readonly #queue: SyncQueue<Waiter>;
    readonly #control: EngineControl;
    readonly #driftWatch: DriftWatch;
    #checking = false;
    #closed = false;

    constructor(options: EngineOptions) {
        this.#options = options;
        this.#revisions = new Revisions(options.db, options.sealer);
        const store = new FragmentStore(options.db, options.sealer);
        const state = new EngineState(options, this.#revisions, store);
        this.fragments = new Fragments(this, store, () => options.places?.() ?? []);
        const ports: SyncPorts = {
            db: options.db,
            hosts: options.hosts,
            rows: () => state.rows,
            served: () => state.context.served,
            mode: () => state.mode(),
            provable: () => state.provable(),
            pems: state.pems,
            record: (tx, batch) => state.recordBatch(tx, batch),
            revisionOf: (batch) => state.revisionOf(batch),
            attempted: (attempt) => state.recordAttempt(attempt),
            committed: (event) => options.hooks?.applied?.(event),
            windowMs: options.windowMs ?? reloadWindowMs
        };
        this.#state = state;
        this.#queue = new SyncQueue((batch: readonly Waiter[]) => syncBatch(ports, batch));
        this.#control = new EngineControl(options, state, (work) => this.#exclusive(work));
        this.#driftWatch = new DriftWatch({
            driver: options.driver,
            state,
            exclusive: (work) => this.#exclusive(work),
            repairs: () => options.settings.driftRepair?.() ?? true,
            everyMs: options.driftCheckMs ?? driftCheckMs,
            log: options.log
        });
    }

    async boot(): Promise<void> {
        await this.#state.load();
        await this.#exclusive(() => this.#state.reconcile(true));
        this.#options.driver.onChange((process) => this.#processChanged(process));
        this.#driftWatch.start();
    }

    async close(): Promise<void> {
        this.#closed = true;
        this.#driftWatch.close();
        await this.#options.driver.close();
        await this.#queue.idle();
    }

    change<T>(change: Change<T>): Promise<{ readonly value: T; readonly outcome: Outcome }> {
        return new Promise((resolve, reject) => {
            if (this.#closed || !this.#state.ready) {
                reject(fail.NOT_READY());
                return;
            }

            this.#queue.change({
                change,
                resolve: (result) => resolve(result as { readonly value: T; readonly outcome: Outcome }),
                reject
            });
        });
    }

    async tryChange(change: Pick<Change<never>, 'plan'>): Promise<{ readonly reloaded: boolean }> {
        const { config, reloaded } = await this.#exclusive(() => this.#tryStaged(change));
        // A validation takes a process and up to a second: it runs outside the queue.
        if (config !== null) {
            await translateErrors(() => this.#options.driver.validate(config));
        }

        return { reloaded };
    }

    draft(): Draft {
        return this.#state.rows;
    }

    process(): EngineProcess {
        return this.#options.driver.process();
    }

    problem(): string | null {
        const { state, message } = this.#options.driver.process();
        return state === 'failing' ? (message ?? 'The engine does not answer') : this.#state.problem;
    }

    pending(): ReadonlySet<number> {
        return new Set([...this.#state.behind.keys(), ...this.#state.refused.keys()]);
    }

    stateOf(row: HostRow): HostState {
        return this.#state.stateOf(row);
    }

    preview(site: Site): EngineConfig {
        return explain(site, this.#state.context.compileContext);
    }

    upstreams(): Promise<readonly EngineUpstream[]> {
        return translateErrors(() => this.#options.driver.upstreams());
    }

    start(call: Call): Promise<Reply<ControlResult>> {
        return this.#control.start(call);
    }

    stop(call: Call): Promise<Reply<ControlResult>> {
        return this.#control.stop(call);
    }

    restart(call: Call): Promise<Reply<ControlResult>> {
        return this.#control.restart(call);
    }

    reload(call: Call): Promise<Reply<ControlResult>> {
        return this.#control.reload(call);
    }

    overwriteDrift(call: Call): Promise<Reply<ControlResult>> {
        return this.#control.overwriteDrift(call);
    }

    async catchUp(): Promise<void> {
        await this.#exclusive(() => this.#state.reconcile(true));
    }

    status(): Promise<EngineStatus> {
        return readStatus(this.#options, this.#state);
    }

    configNow(): Promise<EngineConfig | null> {
        return translateErrors(() => this.#options.driver.config());
    }

    desired(): EngineConfig {
        return this.#state.context.served.projection.config();
    }

    drift(): Promise<Drift> {
        const { served, table } = this.#state.context;
        return translateErrors(() => findDrift(this.#options.driver, served, table));
    }

    revisions(page: { readonly before: number | null; readonly limit: number }): {
        readonly rows: readonly RevisionSummary[];
        readonly total: number;
    } {
        return { rows: this.#revisions.page(page.before, page.limit), total: this.#revisions.total() };
    }

    revision(number: number): RevisionDetail {
        if (!this.#state.ready) {
            throw fail.NOT_READY();
        }

        const summary = this.#revisions.summary(number);
        if (summary === null) {
            throw fail.NOT_FOUND();
        }

        const hosts = new Map(this.#state.rows.hosts);
        for (const [id, { row }] of this.#revisions.undo(number, this.#state.memory.revision)) {
            if (row === null) {
                hosts.delete(id);
            } else {
                hosts.set(id, row);
            }
        }

        return {
            ...summary,
            changes: this.#revisions.changes(number),
            hosts: [...hosts.values()].sort((a, b) => a.site.id - b.site.id),
            settings: this.#revisions.settings(number)
        };
    }

    async restore(number: number, call: Call): Promise<Reply<RestoreResult>> {
        const revision = this.revision(number);
        const versions = new Map(
            Array.from(
                this.#revisions.undo(number, this.#state.memory.revision),
                ([id, { version }]) => [id, version] as const
            )
        );
        return restoreRevision({ ...this.#options, engine: this }, { revision, versions }, call);
    }

    logs(options: LogOptions): AsyncIterable<string> {
        return this.#options.driver.logs(options);
    }

    advanced(): ReadonlySet<string> {
        const served = [...this.#state.behind.values()].filter((row) => row !== null);
        return new Set([
            ...advancedOf([...this.#state.rows.hosts.values(), ...served].map((row) => row.site)),
            ...fragmentHandlers(this.#state.rows.settings).map((handler) => canonicalize(handler))
        ]);
    }

    #exclusive<T>(work: () => Promise<T>): Promise<T> {
        return this.#closed ? Promise.reject(fail.NOT_READY()) : this.#queue.exclusive(work);
    }

    /** Stages a change, reads what it would cost, and undoes it. */
    async #tryStaged(
        change: Pick<Change<never>, 'plan'>
    ): Promise<{ readonly config: EngineConfig | null; readonly reloaded: boolean }> {
        this.#state.mode();
        const {
            pems,
            rows,
            context: { served }
        } = this.#state;
        const draft = new DraftOverlay(rows);
        const plan = change.plan(draft);
        draft.apply(plan);
        for (const { id, pem } of plan.certificates ?? []) {
            if (pem !== undefined) {
                pems.set(id, pem);
            }
        }

        const staged = served.stage(projectionChangeOf(plan, draft.settings));
        try {
            return {
                config: this.#state.provable() ? await served.proof() : null,
                reloaded: served.needsReload
            };
        } finally {
            staged.undo();
            pems.clear();
        }
    }

    #processChanged(process: EngineProcess): void {
        if (process.state === 'failing') {
            this.#options.hooks?.failed?.({
                result: 'failed',
                message: process.message ?? 'The engine does not answer'
            });
        }

        if (process.state === 'running' && !this.#checking && !this.#closed) {
            this.#checking = true;
            this.#queue
                .exclusive(() => {
                    this.#checking = false;
                    return this.#state.recheck();
                })
                .catch((error: unknown) =>
                    this.#options.log.error('The engine could not be checked after it came back', { error })
                );
        }
    }
}
