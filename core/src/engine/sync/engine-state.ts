/** Keeps engine and rows together, and knows how far apart they are: what was applied, what waits, what is refused, and why. */
import { canonicalize, hashOf } from '../../platform/canonical-json.ts';
import type { Transaction } from '../../platform/database/database.ts';
import { fail } from '../../platform/errors.ts';
import { waitsForReload } from '../../platform/pending.ts';
import { startConfig } from '../caddy/process.ts';
import type { CertificatePem, HostRow, HostState } from '../change.ts';
import { type EngineFolders, prepareHome } from '../files/home.ts';
import { type FragmentStore, withFragments } from '../fragments/fragments.ts';
import { EngineRejected } from '../port.ts';
import type { EngineMemory, Revisions } from '../revisions/revisions.ts';
import type { EngineOptions, LastApply } from '../service.ts';
import { Rows } from './draft-overlay.ts';
import { createEngineContext, type EngineContext, type ServedRows, writeCopies } from './engine-context.ts';
import type { Attempt, Batch } from './ports.ts';

/** Everything in here runs inside the apply queue, but for what only looks. */
export class EngineState {
    readonly pems = new Map<number, CertificatePem>();
    readonly #options: EngineOptions;
    readonly #revisions: Revisions;
    readonly #fragments: Pick<FragmentStore, 'load'>;
    /** Rows as the engine serves them, where they are not the rows of now; null: it serves no such host. */
    readonly #behind = new Map<number, HostRow | null>();
    /** What the engine said of hosts that wait. */
    readonly #refused = new Map<number, string>();
    #rows = new Rows(
        [],
        [],
        { httpPort: 80, httpsPort: 443, acmeEmail: null, acmeDirectory: null, acmeEab: null },
        0
    );
    #memory: EngineMemory = { wanted: 'running', revision: 0, applied: 0, lastHostId: 0, settings: null };
    #context: EngineContext | null = null;
    #lastApply: LastApply | null = null;
    /** Why the engine does not serve the rows although nothing waits by wish. */
    #problem: string | null = null;
    /** What the engine said of what waits. */
    #refusal: string | null = null;

    constructor(options: EngineOptions, revisions: Revisions, fragments: Pick<FragmentStore, 'load'>) {
        this.#options = options;
        this.#fragments = fragments;
        this.#revisions = revisions;
    }

    get rows(): Rows {
        return this.#rows;
    }

    get memory(): EngineMemory {
        return this.#memory;
    }

    /** Whether rows and engine have met: nothing can be changed before. */
    get ready(): boolean {
        return this.#context !== null;
    }

    /** @throws NOT_READY 50300 before `settle` */
    get context(): EngineContext {
        if (this.#context === null) {
            throw fail.NOT_READY();
        }

        return this.#context;
    }

    get lastApply(): LastApply | null {
        return this.#lastApply;
    }

    /** What is wrong, although the process runs; null when nothing is. */
    get problem(): string | null {
        return this.#problem ?? this.#refusal;
    }

    /** Hosts that are not served as their row says. */
    get behind(): ReadonlyMap<number, HostRow | null> {
        return this.#behind;
    }

    get refused(): ReadonlyMap<number, string> {
        return new Map([...this.#refused, ...(this.#context?.excluded ?? [])]);
    }

    /** Reads rows and memory; nothing is asked of the engine. */
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

    /** Whether changes reach the engine now, or wait. @throws ENGINE_UNAVAILABLE 50301 */
    mode(): 'live' | 'deferred' {
        const { state, message } = this.#options.driver.process();
        if (
            !this.#options.settings.autoReload() ||
            this.#memory.wanted === 'stopped' ||
            state === 'missing'
        ) {
            return 'deferred';
        }

        if (state !== 'running') {
            throw fail.ENGINE_UNAVAILABLE({ engine: message ?? 'the engine does not run' });
        }

        return 'live';
    }

    /** Whether a configuration can be proven without the running engine: not without its version, which decides how it is written. */
    provable(): boolean {
        return (
            this.#context !== null &&
            this.#context.version !== null &&
            this.#options.driver.process().state !== 'missing'
        );
    }

    stateOf(row: HostRow): HostState {
        const { id, enabled } = row.site;
        const refused = this.#refused.get(id) ?? this.#context?.excluded.get(id);
        if (refused !== undefined) {
            return { state: 'error', message: refused };
        }

        const { state, message } = this.#options.driver.process();
        const resting = state === 'missing' || this.#memory.wanted === 'stopped';
        if (this.#behind.has(id) || (enabled && resting)) {
            return {
                state: 'pending',
                message:
                    state === 'missing'
                        ? 'The engine is not installed'
                        : resting
                          ? 'The engine is stopped'
                          : waitsForReload
            };
        }

        if (!enabled) {
            return { state: 'disabled', message: null };
        }

        const trouble =
            state === 'running' ? this.#problem : (message ?? this.#problem ?? 'The engine does not answer');
        return trouble === null ? { state: 'applied', message: null } : { state: 'error', message: trouble };
    }

    /** Changes what is wished; written down by `remember`. */
    setWanted(wanted: EngineMemory['wanted']): void {
        this.#memory = { ...this.#memory, wanted };
    }

    /**
     * Brings engine and rows together as far as they can be. The engine's troubles do not make it throw: they are `trouble`.
     * @param hold - leaves what waits waiting, if auto-reload is off
     */
    async reconcile(hold: boolean): Promise<void> {
        this.#problem = null;
        this.#refusal = null;
        const home = this.#home();
        const up = home !== null && this.#memory.wanted === 'running' && (await this.#startProcess(home));
        const version = this.#options.driver.process().version;
        const waiting: ServedRows = {
            hosts: this.#behind,
            settings: this.#memory.settings ?? this.#rows.settings
        };
        const works = createEngineContext(this.#options, home, version, waiting.settings, this.pems);
        this.#context = works;
        works.stageServed(this.#rows, waiting);
        if (!up) {
            // As if it were served, so that changes are told apart by what they add; the next `bring` looks in any case.
            works.served.projection.loaded();
            works.stagePending(this.#rows, waiting);
            return;
        }

        if (hold && !this.#options.settings.autoReload()) {
            await this.#captureProblem(() => this.#syncServed());
            works.stagePending(this.#rows, waiting);
            return;
        }

        const staged = works.stagePending(this.#rows, waiting);
        const waits = this.#behind.size > 0 || waiting.settings !== this.#rows.settings;
        try {
            await (waits ? this.sync(false) : this.#syncServed());
            await this.#recordCaughtUp();
        } catch (error) {
            if (waits && error instanceof EngineRejected) {
                // What waits is refused: the last good state serves on.
                staged.undo();
                await this.#captureProblem(() => this.#syncServed());
                works.stagePending(this.#rows, waiting);
                this.refuse(error.message);
                return;
            }

            this.#reportProblem(error);
        }
    }

    /** After the engine came back by itself, or was found changed. */
    async recheck(): Promise<void> {
        const { driver } = this.#options;
        const { state, version } = driver.process();
        if (this.#memory.wanted === 'stopped' || state !== 'running') {
            return;
        }

        if (
            this.#context === null ||
            this.#context.served.loaded === null ||
            this.#problem !== null ||
            this.#context.version !== (version?.text ?? null)
        ) {
            await this.reconcile(true);
            return;
        }

        const { served: serving } = this.#context;
        await this.#captureProblem(async () => {
            await serving.repair();
        });
    }

    /** Brings everything that is wanted, and keeps how that went. @throws EngineRejected, EngineUnavailable */
    async sync(reload: boolean): Promise<void> {
        const began = performance.now();
        const { served: serving } = this.context;
        const changes = this.#memory.revision - this.#memory.applied;
        try {
            const reloaded = await serving.sync({ reload });
            this.recordAttempt({ changes, reloaded, durationMs: performance.now() - began, error: null });
        } catch (error) {
            this.recordAttempt({
                changes,
                reloaded: true,
                durationMs: performance.now() - began,
                error: error as Error
            });
            throw error;
        }
    }

    /** Says of everything that waits that the engine refused it. */
    refuse(message: string): void {
        this.#refusal = message;
        for (const id of this.#behind.keys()) {
            this.#refused.set(id, message);
        }
    }

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
        } else {
            this.#options.log.warn('The engine did not take a change', { result, engine: error?.message });
            this.#options.hooks?.failed?.({ result, message: error?.message ?? '' });
        }
    }

    /** The number that the revision of a batch has. */
    revisionOf(batch: Batch): number {
        return this.#memory.revision + (makesRevision(batch) ? 1 : 0);
    }

    /** Writes the revision of a batch and how far the engine is; returns what is to be done in memory once that is durable. */
    async recordBatch(tx: Transaction, batch: Batch): Promise<() => void> {
        const number = this.revisionOf(batch);
        const { applied, reloaded, deltas, by, draft: sketch } = batch;
        const { projection } = this.context.served;
        if (makesRevision(batch)) {
            const hash = hashOf([projection.configHash(), projection.tableHash()]);
            await this.#revisions.append(tx, {
                number,
                at: this.#options.clock.now(),
                applied,
                reloaded,
                hash,
                by,
                deltas,
                settings: sketch.settings
            });
        }

        const caughtUp = applied && this.#memory.applied < this.#memory.revision;
        if (caughtUp) {
            await this.#markServed(tx, number, new Set(deltas.map(({ id }) => id)));
        }

        const next: EngineMemory = {
            ...this.#memory,
            revision: number,
            applied: applied ? number : this.#memory.applied,
            lastHostId: sketch.lastHostId,
            settings: applied ? sketch.settings : this.#memory.settings
        };
        await this.#remember(tx, next);
        return () => {
            this.#memory = next;
            for (const { id, before } of deltas) {
                this.#context?.excluded.delete(id);
                this.#refused.delete(id);
                if (!applied && !this.#behind.has(id)) {
                    this.#behind.set(id, before);
                }
            }

            if (applied) {
                this.#behind.clear();
                this.#refused.clear();
            }
        };
    }

    /** Writes down the wish, and with `caughtUp` that nothing waits any more. */
    async remember(tx: Transaction, caughtUp: boolean): Promise<void> {
        const { revision } = this.#memory;
        if (!caughtUp) {
            await this.#revisions.remember(tx, { wanted: this.#memory.wanted });
            return;
        }

        const next: EngineMemory = { ...this.#memory, applied: revision, settings: this.#rows.settings };
        await this.#markServed(tx, revision, new Set());
        await this.#revisions.remember(tx, next);
        tx.afterCommit(() => {
            this.#memory = next;
            this.#behind.clear();
            this.#refused.clear();
        });
    }

    async #markServed(tx: Transaction, upTo: number, except: ReadonlySet<number>): Promise<void> {
        const ids = [...this.#behind.keys()].filter((id) => this.#rows.hosts.has(id) && !except.has(id));
        if (ids.length > 0) {
            await this.#options.hosts.markApplied(tx, ids);
        }

        await this.#revisions.markApplied(tx, upTo);
    }

    async #remember(tx: Transaction, next: EngineMemory): Promise<void> {
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

    async #recordCaughtUp(): Promise<void> {
        const { applied, revision, settings } = this.#memory;
        if (applied < revision || settings !== this.#rows.settings) {
            await this.#options.db.write((tx) => this.remember(tx, true));
        }
    }

    #syncServed(): Promise<boolean> {
        const { context: works } = this;
        return works.syncAcceptable(() =>
            [...this.#rows.hosts.values()].map((row) => this.#behind.get(row.site.id) ?? row)
        );
    }

    /** @returns whether the engine runs */
    async #startProcess(home: EngineFolders): Promise<boolean> {
        try {
            prepareHome(home);
            await writeCopies(this.#options, home, this.#rows);
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

    #reportProblem(error: unknown): void {
        this.#problem = (error as Error).message;
        this.#context?.served.invalidate();
        this.#options.log.error('The engine and the rows could not be brought together', { error });
        this.#options.hooks?.failed?.({
            result: error instanceof EngineRejected ? 'rejected' : 'failed',
            message: this.#problem
        });
    }
}

/** A batch that changed nothing that a revision holds is none. */
const makesRevision = ({ deltas, beyondHosts }: Batch): boolean => deltas.length > 0 || beyondHosts;
