/** The engine service: the rows, the queue through which they change, and the process that serves them. */
import { type Reply, reply } from '@portico/sdk';

import type { Call } from '../platform/call.ts';
import { canonicalize, hashOf } from '../platform/canonical-json.ts';
import { fail } from '../platform/errors.ts';
import type { Change, Draft, HostRow, HostState, Outcome } from './change.ts';
import { type Control, createControl } from './control/control.ts';
import { findDrift } from './control/drift.ts';
import { translateErrors } from './errors.ts';
import {
    createFragments,
    createFragmentStore,
    fragmentHandlers,
    type Fragments
} from './fragments/fragments.ts';
import type { EngineConfig, EngineProcess, EngineUpstream } from './port.ts';
import { explain } from './render/render.ts';
import { planRestore } from './revisions/restore.ts';
import {
    createRevisions,
    type RevisionDetail,
    type Revisions,
    type RevisionSummary
} from './revisions/revisions.ts';
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
import { projected } from './sync/engine-context.ts';
import { EngineState } from './sync/engine-state.ts';
import type { SyncPorts, Waiter } from './sync/ports.ts';
import { type ApplyQueue, createApplyQueue } from './sync/queue.ts';
import { syncBatch } from './sync/sync-batch.ts';
import { advancedOf } from './wire/mask.ts';

/** The engine service. Nothing happens before `boot`. */
export const createEngine = (options: EngineOptions): EngineService => new ProxyEngine(options);

const reloadWindowMs = 1000;

class ProxyEngine implements EngineService {
    readonly #options: EngineOptions;
    readonly #revisions: Revisions;
    readonly #state: EngineState;
    readonly #queue: ApplyQueue<Waiter>;
    readonly #control: Control;
    readonly fragments: Fragments;
    #checking = false;
    #closed = false;

    constructor(options: EngineOptions) {
        this.#options = options;
        this.#revisions = createRevisions(options.db, options.sealer);
        const store = createFragmentStore(options.db, options.sealer);
        const keeper = new EngineState(options, this.#revisions, store);
        this.fragments = createFragments(this, store, () => options.places?.() ?? []);
        const ports: SyncPorts = {
            db: options.db,
            hosts: options.hosts,
            rows: () => keeper.rows,
            served: () => keeper.context.served,
            mode: () => keeper.mode(),
            provable: () => keeper.provable(),
            pems: keeper.pems,
            record: (tx, batch) => keeper.recordBatch(tx, batch),
            revisionOf: (batch) => keeper.revisionOf(batch),
            attempted: (attempt) => keeper.recordAttempt(attempt),
            committed: (event) => options.hooks?.applied?.(event),
            windowMs: options.windowMs ?? reloadWindowMs
        };
        this.#state = keeper;
        this.#queue = createApplyQueue((batch: readonly Waiter[]) => syncBatch(ports, batch));
        this.#control = createControl(options, keeper, (work) => this.#exclusive(work));
    }

    async boot(): Promise<void> {
        await this.#state.load();
        await this.#exclusive(() => this.#state.reconcile(true));
        this.#options.driver.onChange((process) => this.#processChanged(process));
    }

    async close(): Promise<void> {
        this.#closed = true;
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
        // A proof takes a process and up to a second: nobody waits for it in line.
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

    async status(): Promise<EngineStatus> {
        const { driver, clock, settings } = this.#options;
        const { state, version, pid, startedAt, message } = driver.process();
        const running =
            state === 'running'
                ? await driver.config().then(
                      (config) => (config === null ? null : hashOf(config)),
                      () => null
                  )
                : null;
        const {
            lastApply,
            memory: { revision, applied, wanted },
            refused,
            problem: trouble,
            context: works
        } = this.#state;
        return {
            state,
            running: state === 'running',
            version: version?.text ?? null,
            pid,
            startedAt,
            uptimeSeconds:
                startedAt === null
                    ? null
                    : Math.max(0, Math.floor((clock.now() - startedAt.getTime()) / 1000)),
            message: state === 'running' ? trouble : (message ?? trouble),
            wanted,
            autoReload: settings.autoReload(),
            configuration: { wanted: works.served.projection.configHash(), running },
            revision,
            appliedRevision: applied,
            pending: revision - applied,
            pendingHosts: this.#state.behind.size,
            refused: [...refused].map(([id, text]) => ({ id, message: text })),
            lastApply,
            loads: works.served.loads
        };
    }

    configNow(): Promise<EngineConfig | null> {
        return translateErrors(() => this.#options.driver.config());
    }

    desired(): EngineConfig {
        return this.#state.context.served.projection.config();
    }

    drift(): Promise<Drift> {
        const { served: serving, table } = this.#state.context;
        return translateErrors(() => findDrift(this.#options.driver, serving, table));
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
        const { settings, clock, vet } = this.#options;
        const target = this.revision(number);
        const versions = new Map(
            [...this.#revisions.undo(number, this.#state.memory.revision)].map(([id, { version }]) => [
                id,
                version
            ])
        );
        let plan: ReturnType<typeof planRestore> = {};
        const { value } = await this.change<Reply<RestoreResult>>({
            by: {
                id: call.actor.id,
                username: call.actor.username,
                tokenId: call.actor.tokenId,
                plugin: call.actor.plugin,
                requestId: call.id
            },
            plan: (draft) => {
                plan = planRestore({
                    target,
                    versions,
                    draft,
                    lastVersion: (id) =>
                        draft instanceof DraftOverlay ? draft.deletedVersions.get(id) : undefined,
                    call,
                    settings,
                    now: clock.now(),
                    vet
                });
                return plan;
            },
            commit: async (tx, outcome) => {
                if (plan.settings !== undefined) {
                    const { fragments: _kept, ...own } = plan.settings;
                    await settings.write?.(tx, own);
                }

                const data: RestoreResult = {
                    revision: outcome.revision,
                    applied: outcome.applied,
                    reload: outcome.reloaded,
                    changed: plan.hosts?.length ?? 0
                };
                return call.complete(tx, {
                    action: 'restore',
                    resource: 'proxyengine',
                    resourceId: number,
                    after: { ...data },
                    reply: reply.with(data, {
                        message: `The hosts are those of revision ${number}`,
                        headers: { 'x-engine-reload': String(outcome.reloaded) }
                    })
                });
            }
        });
        return value;
    }

    logs(options: {
        readonly lines: number;
        readonly follow: boolean;
        readonly signal: AbortSignal;
    }): AsyncIterable<string> {
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
        return this.#closed ? Promise.reject(fail.NOT_READY()) : this.#queue.alone(work);
    }

    /** Lays a change over what is wanted, looks, and takes it away again. */
    async #tryStaged(
        change: Pick<Change<never>, 'plan'>
    ): Promise<{ readonly config: EngineConfig | null; readonly reloaded: boolean }> {
        this.#state.mode();
        const {
            pems,
            rows,
            context: { served: serving }
        } = this.#state;
        const sketch = new DraftOverlay(rows);
        const plan = change.plan(sketch);
        sketch.apply(plan);
        for (const { id, pem } of plan.certificates ?? []) {
            if (pem !== undefined) {
                pems.set(id, pem);
            }
        }

        const staged = serving.stage(projected(plan, sketch.settings));
        try {
            return {
                config: this.#state.provable() ? await serving.proof() : null,
                reloaded: serving.needsReload
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
                .alone(() => {
                    this.#checking = false;
                    return this.#state.recheck();
                })
                .catch((error: unknown) =>
                    this.#options.log.error('The engine could not be checked after it came back', { error })
                );
        }
    }
}
