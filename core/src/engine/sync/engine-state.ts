import type { Transaction } from '../../platform/database/database.ts';
import { fail } from '../../platform/errors.ts';
import { startConfig } from '../caddy/process/process.ts';
import type { CertificatePem, HostRow, HostState, WaitsForReload } from '../change.ts';
import { type EngineFolders, prepareHome } from '../files/home.ts';
import type { FragmentStore } from '../fragments/store.ts';
import { EngineRejected } from '../port.ts';
import type { EngineMemory, Revisions } from '../revisions/revisions.ts';
import type { EngineOptions, LastApply } from '../service.ts';
import type { Rows } from './draft-overlay.ts';
import { EngineContext, type ServedRows, writeCopies } from './engine-context.ts';
import type { Attempt, Batch } from './ports.ts';
import { SyncProgress } from './progress.ts';

const waitsForReload: WaitsForReload = 'Waits for a reload';

const drift = 'The engine runs another configuration than the panel gave it';

/**
 * Keeps engine and rows together, and knows how far apart they are: what was applied, what waits, what was refused, and why.
 * Methods that change anything must run inside the sync queue.
 */
export class EngineState {
    /** PEM texts of certificates that are not committed yet, by id. */
    readonly pems = new Map<number, CertificatePem>();
    readonly #options: EngineOptions;
    readonly #progress: SyncProgress;
    #context: EngineContext | null = null;
    #lastApply: LastApply | null = null;
    /** Why the engine does not serve what it should, apart from what waits on purpose. */
    #problem: string | null = null;
    #drifted = false;
    /** The engine's message when it refused what waits. */
    #refusal: string | null = null;

    constructor(options: EngineOptions, revisions: Revisions, fragments: Pick<FragmentStore, 'load'>) {
        this.#options = options;
        this.#progress = new SyncProgress(options, revisions, fragments);
    }

    get rows(): Rows {
        return this.#progress.rows;
    }

    get memory(): EngineMemory {
        return this.#progress.memory;
    }

    /** Whether `reconcile` has run. Nothing can be changed before. */
    get ready(): boolean {
        return this.#context !== null;
    }

    /** @throws NOT_READY 50300 before the first `reconcile` */
    get context(): EngineContext {
        if (this.#context === null) {
            throw fail.NOT_READY();
        }

        return this.#context;
    }

    get lastApply(): LastApply | null {
        return this.#lastApply;
    }

    /** What is wrong although the process runs; null when nothing is. */
    get problem(): string | null {
        return this.#serviceProblem ?? this.#refusal;
    }

    /** Whether the engine runs another configuration than it was given, as of the last check. */
    get drifted(): boolean {
        return this.#drifted;
    }

    get #serviceProblem(): string | null {
        return this.#problem ?? (this.#drifted ? drift : null);
    }

    /** Hosts that wait, by id: the row that the engine serves; null: it serves no such host. */
    get behind(): ReadonlyMap<number, HostRow | null> {
        return this.#progress.behind;
    }

    /** The engine's message for each host that it refuses, by id. */
    get refused(): ReadonlyMap<number, string> {
        return new Map([...this.#progress.refused, ...(this.#context?.excluded ?? [])]);
    }

    /** Reads the rows and the state row. The engine is not asked. */
    load(): Promise<void> {
        return this.#progress.load();
    }

    /** Whether changes reach the engine now or wait. @throws ENGINE_UNAVAILABLE 50301 when it should run and does not answer */
    mode(): 'live' | 'deferred' {
        const { state, message } = this.#options.driver.process();
        if (!this.#options.settings.autoReload() || this.memory.wanted === 'stopped' || state === 'missing') {
            return 'deferred';
        }

        if (state !== 'running') {
            throw fail.ENGINE_UNAVAILABLE({ engine: message ?? 'the engine does not run' });
        }

        return 'live';
    }

    /** Whether a configuration can be validated without the running engine: its version must be known, since it decides the form. */
    provable(): boolean {
        return (
            this.#context !== null &&
            this.#context.version !== null &&
            this.#options.driver.process().state !== 'missing'
        );
    }

    /** How a host stands towards the engine now. */
    stateOf(row: HostRow): HostState {
        const { id, enabled } = row.site;
        const refused = this.#progress.refused.get(id) ?? this.#context?.excluded.get(id);
        if (refused !== undefined) {
            return { state: 'error', message: refused };
        }

        const { state, message } = this.#options.driver.process();
        const stopped = state === 'missing' || this.memory.wanted === 'stopped';
        if (this.behind.has(id) || (enabled && stopped)) {
            const why = stopped ? 'The engine is stopped' : waitsForReload;
            return {
                state: 'pending',
                message: state === 'missing' ? 'The engine is not installed' : why
            };
        }

        if (!enabled) {
            return { state: 'disabled', message: null };
        }

        const problem =
            state === 'running'
                ? this.#serviceProblem
                : (message ?? this.#problem ?? 'The engine does not answer');
        return problem === null ? { state: 'applied', message: null } : { state: 'error', message: problem };
    }

    /** Sets whether the engine should run. `remember` makes it durable. */
    setWanted(wanted: EngineMemory['wanted']): void {
        this.#progress.setWanted(wanted);
    }

    /**
     * Starts the engine if it should run, and brings it to the rows as far as it goes. Troubles of the engine are kept as `problem`, not thrown.
     * @param hold - leaves waiting what waits, where auto-reload is off
     */
    async reconcile(hold: boolean): Promise<void> {
        this.#problem = null;
        this.#refusal = null;
        this.#drifted = false;
        const home = this.#home();
        const up = home !== null && this.memory.wanted === 'running' && (await this.#startProcess(home));
        const served: ServedRows = {
            hosts: this.behind,
            settings: this.memory.settings ?? this.rows.settings
        };
        const context = new EngineContext({
            engine: this.#options,
            folders: home,
            version: this.#options.driver.process().version,
            settings: served.settings,
            pems: this.pems
        });
        this.#context = context;
        context.stageServed(this.rows, served);
        if (!up) {
            // Counts as served, so that a change says what it adds. The next sync compares with the engine in any case.
            context.served.projection.loaded();
            context.stagePending(this.rows, served);
        } else if (hold && !this.#options.settings.autoReload()) {
            await this.#captureProblem(() => this.#syncServed());
            context.stagePending(this.rows, served);
        } else {
            await this.#syncPending(context, served);
        }
    }

    /** Compares the engine with what it was given, after it came back by itself. */
    async recheck(): Promise<void> {
        const { state, version } = this.#options.driver.process();
        if (this.memory.wanted === 'stopped' || state !== 'running') {
            return;
        }

        const context = this.#context;
        if (
            context === null ||
            context.served.loaded === null ||
            this.#problem !== null ||
            context.version !== (version?.text ?? null)
        ) {
            await this.reconcile(true);
            return;
        }

        await this.#captureProblem(() => context.served.repair());
    }

    /** Makes the engine serve again what it was given last. @returns whether anything had to be repaired */
    async repair(reload: boolean): Promise<boolean> {
        const changed = await this.context.served.repair({ reload });
        this.#drifted = false;
        return changed;
    }

    /** Notes whether the engine runs another configuration than it was given, and reports it once. */
    noteDrift(drifted: boolean): void {
        if (drifted && !this.#drifted) {
            this.#reportDrift(drift);
        }

        this.#drifted = drifted;
    }

    /** Repairs an engine that others have changed, and reports it. Troubles of the engine are kept as `problem`. */
    async repairDrift(): Promise<void> {
        try {
            if (await this.repair(false)) {
                this.#reportDrift(`${drift}; the panel has repaired it`);
            }
        } catch (error) {
            this.noteDrift(true);
            if ((error as Error).message !== this.#problem) {
                this.#reportProblem(error);
            }
        }
    }

    /** Syncs everything that is staged, and notes how that went. @throws EngineRejected, EngineUnavailable */
    async sync(reload: boolean): Promise<void> {
        const began = performance.now();
        const changes = this.memory.revision - this.memory.applied;
        const attempt = (reloaded: boolean, error: Error | null): void =>
            this.recordAttempt({ changes, reloaded, durationMs: performance.now() - began, error });
        try {
            attempt(await this.context.served.sync({ reload }), null);
        } catch (error) {
            attempt(true, error as Error);
            throw error;
        }
    }

    /** Notes that the engine refused everything that waits. */
    refuse(message: string): void {
        this.#refusal = message;
        this.#progress.refuse(message);
    }

    /** Notes one attempt to sync, and reports a failed one. */
    recordAttempt({ changes, reloaded, durationMs, error }: Attempt): void {
        const result = error === null ? 'applied' : error instanceof EngineRejected ? 'rejected' : 'failed';
        this.#lastApply = {
            at: new Date(this.#options.clock.now()),
            durationMs: Math.round(durationMs * 1000) / 1000,
            changes,
            reloaded,
            result,
            message: error?.message ?? null
        };
        if (result === 'applied') {
            this.#problem = null;
            this.#refusal = null;
            this.#drifted &&= !reloaded;
        } else {
            this.#options.log.warn('The engine did not take a change', { result, engine: error?.message });
            this.#options.hooks?.failed?.({ result, message: error?.message ?? '' });
        }
    }

    /** The number that the revision of a batch has. */
    revisionOf(batch: Batch): number {
        return this.#progress.revisionOf(batch);
    }

    /** Writes the revision of a batch and the state row. @returns what to do in memory after the commit */
    async recordBatch(tx: Transaction, batch: Batch): Promise<() => void> {
        const advance = await this.#progress.recordBatch(tx, batch, this.context.served);
        return () => {
            advance();
            for (const { id } of batch.deltas) {
                this.#context?.excluded.delete(id);
            }
        };
    }

    /** Writes whether the engine should run and, with `caughtUp`, that it serves the rows. */
    remember(tx: Transaction, caughtUp: boolean): Promise<void> {
        return this.#progress.remember(tx, caughtUp);
    }

    /** Syncs with what waits. If the engine refuses that, the last good state serves on and what waits is noted as refused. */
    async #syncPending(context: EngineContext, served: ServedRows): Promise<void> {
        const staged = context.stagePending(this.rows, served);
        const pending = this.behind.size > 0 || served.settings !== this.rows.settings;
        try {
            await (pending ? this.sync(false) : this.#syncServed());
            await this.#progress.recordCaughtUp();
        } catch (error) {
            if (!pending || !(error instanceof EngineRejected)) {
                this.#reportProblem(error);
                return;
            }

            staged.undo();
            await this.#captureProblem(() => this.#syncServed());
            context.stagePending(this.rows, served);
            this.refuse(error.message);
        }
    }

    #syncServed(): Promise<boolean> {
        return this.context.syncAcceptable(() =>
            Array.from(this.rows.hosts.values(), (row) => this.behind.get(row.site.id) ?? row)
        );
    }

    /** @returns whether the engine runs */
    async #startProcess(home: EngineFolders): Promise<boolean> {
        try {
            prepareHome(home);
            await writeCopies(this.#options, home, this.rows);
            await this.#options.driver.start(startConfig(home));
            return true;
        } catch (error) {
            this.#reportProblem(error);
            return false;
        }
    }

    #home(): EngineFolders | null {
        try {
            return this.#options.home();
        } catch (error) {
            this.#reportProblem(error);
            return null;
        }
    }

    async #captureProblem(work: () => Promise<unknown>): Promise<void> {
        try {
            await work();
            this.#problem = null;
        } catch (error) {
            this.#reportProblem(error);
        }
    }

    #reportDrift(message: string): void {
        this.#options.log.warn('The engine was changed by others', { message });
        this.#options.hooks?.failed?.({ result: 'drifted', message });
    }

    #reportProblem(error: unknown): void {
        this.#problem = (error as Error).message;
        this.#context?.served.invalidate();
        this.#options.log.error('The engine could not be brought to the rows', { error });
        this.#options.hooks?.failed?.({
            result: error instanceof EngineRejected ? 'rejected' : 'failed',
            message: this.#problem
        });
    }
}
