/** Uptime checks, as people create, change and remove them, and as they are tried. */
import { isDeepStrictEqual } from 'node:util';

import { errors, isFailure, requireVersion } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

import { fail } from '../errors.ts';
import { maskHeaders } from '../headers.ts';
import { writeNamed } from '../named.ts';
import type { Ctx } from '../settings.ts';
import { CheckEntity, type CheckRow } from './entities.ts';
import { type CheckFields, fieldsOf } from './input.ts';
import type { Outcome } from './probes/outcome.ts';
import { probe } from './probes/probe.ts';
import { mostChecks, planRestore } from './restore.ts';
import { ResultLog, type Uptime } from './results.ts';
import { CheckRunner, type Job, type Timing } from './runner.ts';
import type { ChangedCheck, CheckKind, NewCheck } from './schema.ts';
import type { CheckSpec } from './spec.ts';
import { advance, type CheckStatus, isPending, type SeenCheck, untried } from './state.ts';

/** The values of a check in a sample; null: not known. */
export interface CheckValues {
    readonly name: string;
    readonly up: number | null;
    readonly latencyMs: number | null;
    readonly certificateDays: number | null;
}

/** The columns of what people set. */
type StoredFields = Omit<CheckRow, 'id' | 'version' | 'createdAt' | 'updatedAt'>;

interface Known extends Omit<SeenCheck, 'status'> {
    status: CheckStatus;
}

/** Counts a try that a caller causes, and says whether it may be made. */
export type MayTry = () => boolean;

/** Keeps all checks in memory, tries them, and stores what they are and how they were. */
export class Checks {
    readonly results: ResultLog;
    readonly #ctx: Ctx;
    readonly #now: () => number;
    readonly #runner: CheckRunner;
    readonly #known = new Map<number, Known>();
    readonly #end = new AbortController();

    constructor(ctx: Ctx, now: () => number, timing: Timing) {
        this.#ctx = ctx;
        this.#now = now;
        this.results = new ResultLog(ctx.db);
        this.#runner = new CheckRunner({
            timing,
            probe: ({ spec }) => this.#probe(spec),
            conclude: ({ id }, outcome) => this.#conclude(id, outcome),
            failed: ({ id }, error) => {
                if (!this.#end.signal.aborted) {
                    ctx.log.error('A check could not be tried', { check: id, error: String(error) });
                }
            }
        });
    }

    /** Takes up the checks as an earlier generation left them. */
    async start(): Promise<void> {
        const rows = await this.#ctx.db.read((em) => em.find(CheckEntity, {}));
        const states = await this.results.states();
        for (const row of rows) {
            const known = {
                ...(await this.#open(row)),
                status: states.get(row.id) ?? untried(row.createdAt)
            };
            this.#known.set(row.id, known);
            this.#plan(known, false);
        }
        this.#runner.start();
    }

    /** Resolves when no try is under way and everything known is written. */
    async stop(): Promise<void> {
        this.#end.abort();
        await this.#runner.stop();
        await this.save();
    }

    /** Writes what waits; a failure is logged, and it goes on to wait. */
    async save(): Promise<void> {
        await this.results
            .flush()
            .catch((error: unknown) =>
                this.#ctx.log.warn('Results of checks could not be written', { error: String(error) })
            );
    }

    /** All checks, oldest first. */
    list(): readonly SeenCheck[] {
        return [...this.#known.values()].sort((a, b) => a.id - b.id);
    }

    /** One check. @throws NOT_FOUND 40400 */
    get(id: number): SeenCheck {
        const known = this.#known.get(id);
        if (known === undefined) {
            throw errors.notFound(`There is no check ${id}`);
        }
        return known;
    }

    /** The uptimes of checks. */
    uptimes(checks: readonly SeenCheck[]): Promise<ReadonlyMap<number, Uptime>> {
        return this.results.uptimes(
            checks.map(({ id }) => id),
            this.#now()
        );
    }

    /** What a sample says of the checks. */
    values(): readonly CheckValues[] {
        return this.list().map(
            ({ fields: { name, enabled }, status: { state, latencyMs, certificate } }) => ({
                name,
                up: !enabled || state === 'unknown' ? null : state === 'down' ? 0 : 1,
                latencyMs: enabled ? latencyMs : null,
                certificateDays: enabled && certificate !== null ? this.daysLeft(certificate.notAfter) : null
            })
        );
    }

    /** Days until a time. */
    daysLeft(time: number): number {
        return Math.floor(((time - this.#now()) / 86_400_000) * 10) / 10;
    }

    /**
     * Creates a check. @param mayTry - whether it is tried at once; else it is tried in its turn
     *
     * @throws CONFLICT 40900, VALIDATION_FAILED 40001, TOO_MANY_CHECKS 40951
     */
    async create(input: NewCheck, mayTry: MayTry): Promise<SeenCheck> {
        const fields = fieldsOf(input, null);
        const now = this.#now();
        const row = await this.#rowOf(fields);
        const known = await writeNamed(this.#ctx.db, async (em) => {
            if ((await em.count(CheckEntity, {})) >= mostChecks) {
                throw fail.TOO_MANY_CHECKS({ limit: mostChecks });
            }
            return this.#insert(em, fields, row, now);
        });
        return this.#put(known, mayTry);
    }

    /**
     * Changes the given fields of a check. @param mayTry - as of `create`
     *
     * @throws NOT_FOUND 40400, VERSION_STALE 41200, CONFLICT 40900, VALIDATION_FAILED 40001
     */
    async update(
        id: number,
        change: ChangedCheck,
        ifMatch: string | null,
        mayTry: MayTry
    ): Promise<SeenCheck> {
        const before = this.get(id);
        requireVersion(before, ifMatch, change.version);
        const stored = {
            ...before.fields,
            expect: { ...before.fields.expect, ...maskedHeaders(before.fields) }
        };
        const fields = fieldsOf({ ...stored, tags: [...stored.tags], ...change } as NewCheck, before.fields);
        if (isDeepStrictEqual(fields, before.fields)) {
            return before;
        }
        const now = this.#now();
        const row = await this.#rowOf(fields);
        const changed = await writeNamed(this.#ctx.db, (em) => this.#replace(em, before, fields, row, now));
        return this.#put(changed, mayTry);
    }

    /** Removes a check with its results. @throws NOT_FOUND 40400, VERSION_STALE 41200 */
    async remove(id: number, ifMatch: string | null): Promise<SeenCheck> {
        const before = this.get(id);
        requireVersion(before, ifMatch);
        await writeNamed(this.#ctx.db, async (em) => {
            await em.nativeDelete(CheckEntity, { id });
            await this.results.forget(em, id, true);
        });
        this.#known.delete(id);
        this.#runner.remove(id);
        return before;
    }

    /** Tries a check that is not stored. @throws VALIDATION_FAILED 40001, TOOL_MISSING 50302 */
    async test(input: NewCheck, signal: AbortSignal): Promise<Outcome> {
        const fields = fieldsOf(input, null);
        return probe(this.#ctx, specOf(fields), AbortSignal.any([signal, this.#end.signal]));
    }

    /** Tries a check now; it counts as any other try. @throws NOT_FOUND 40400, TOOL_MISSING 50302 */
    async run(id: number): Promise<{ readonly outcome: Outcome; readonly at: number }> {
        const { fields } = this.get(id);
        const outcome = await probe(this.#ctx, specOf(fields), this.#end.signal);
        if (this.#known.get(id)?.fields === fields && fields.enabled) {
            this.#conclude(id, outcome);
            await this.save();
        }
        return { outcome, at: this.#now() };
    }

    /** All checks as bodies of POST `/checks`, with the values of their headers. */
    exportAll(): readonly NewCheck[] {
        return this.list().map(({ fields: { headers, expect, tags, ...fields } }) => ({
            ...fields,
            tags: [...tags],
            expect: { ...expect, ...(Object.keys(headers).length === 0 ? {} : { headers: { ...headers } }) }
        }));
    }

    /**
     * Takes back exported checks. One takes the place of the check with the same name, so that a second time changes nothing; with `replace`
     * all others are removed. All of it is done, or nothing. Resolves with what is wrong with each that was left out.
     */
    async restore(inputs: readonly NewCheck[], mode: 'merge' | 'replace'): Promise<readonly string[]> {
        const { changes, removed, problems } = planRestore(inputs, this.list(), mode);
        const sealed = await Promise.all(
            changes.map(async (each) => ({ ...each, row: await this.#rowOf(each.fields) }))
        );
        const now = this.#now();
        const put = await writeNamed(this.#ctx.db, async (em) => {
            for (const { id } of removed) {
                await em.nativeDelete(CheckEntity, { id });
                await this.results.forget(em, id, true);
            }
            const done: Known[] = [];
            for (const { fields, same, row } of sealed) {
                done.push(
                    same === null
                        ? await this.#insert(em, fields, row, now)
                        : await this.#replace(em, same, fields, row, now)
                );
            }
            return done;
        });
        for (const { id, fields } of removed) {
            this.#known.delete(id);
            this.#runner.remove(id);
            this.#ctx.log.info('An import removed a check', { check: fields.name });
        }
        put.forEach((known) => this.#put(known));
        return problems;
    }

    /** Takes up a check as it is stored now, and tries it soon where it may. */
    #put(known: Known, mayTry: MayTry = () => true): SeenCheck {
        this.#known.set(known.id, known);
        this.#plan(known, known.fields.enabled && mayTry());
        return known;
    }

    async #insert(em: EntityManager, fields: CheckFields, row: StoredFields, now: number): Promise<Known> {
        const stamps = { version: 1, createdAt: now, updatedAt: now };
        const id = Number(await em.insert(CheckEntity, { ...row, ...stamps }));
        return { id, fields, ...stamps, status: untried(now) };
    }

    /** @throws VERSION_STALE 41200 when another request was faster */
    async #replace(
        em: EntityManager,
        before: SeenCheck,
        fields: CheckFields,
        row: StoredFields,
        now: number
    ): Promise<Known> {
        const { id, version } = before;
        const isOther = fields.kind !== before.fields.kind || fields.target !== before.fields.target;
        const stamps = { version: version + 1, updatedAt: now };
        if ((await em.nativeUpdate(CheckEntity, { id, version }, { ...row, ...stamps })) === 0) {
            throw errors.stale(this.#known.get(id)?.version ?? stamps.version);
        }
        if (isOther) {
            await this.results.forget(em, id, false);
        }
        const status = isOther ? untried(now) : (this.#known.get(id)?.status ?? before.status);
        return { ...before, ...stamps, fields, status };
    }

    async #probe(spec: CheckSpec): Promise<Outcome> {
        try {
            return await probe(this.#ctx, spec, this.#end.signal);
        } catch (error) {
            if (isFailure(error) && error.reason === 'TOOL_MISSING') {
                return {
                    state: 'unknown',
                    latencyMs: null,
                    code: error.reason,
                    message: error.message,
                    phases: { name: null, connect: null, tls: null, firstByte: null },
                    certificate: null
                };
            }
            throw error;
        }
    }

    /** Takes an outcome. Returns whether the check shall be tried again soon. */
    #conclude(id: number, outcome: Outcome): boolean {
        const known = this.#known.get(id);
        if (known === undefined) {
            return false;
        }
        const before = known.status;
        // Two tries may end in the same millisecond, and each is a row.
        const at = Math.max(this.#now(), before.at + 1);
        known.status = advance(before, outcome, known.fields.retries, at);
        this.results.add(id, outcome, before, known.status, isPending(known.status));
        if (before.state !== known.status.state) {
            void this.save();
        }
        return isPending(known.status);
    }

    #plan({ id, fields }: Known, soon: boolean): void {
        if (fields.enabled) {
            const job: Job = { id, intervalSeconds: fields.intervalSeconds, spec: specOf(fields) };
            this.#runner.put(job, soon);
        } else {
            this.#runner.remove(id);
        }
    }

    async #open({
        id,
        headers,
        version,
        createdAt,
        updatedAt,
        kind,
        ...row
    }: CheckRow): Promise<Omit<Known, 'status'>> {
        const { name, target, intervalSeconds, timeoutSeconds, retries, enabled, tags, expect } = row;
        return {
            id,
            version,
            createdAt,
            updatedAt,
            fields: {
                ...{ name, target, intervalSeconds, timeoutSeconds, retries, enabled, tags, expect },
                kind: kind as CheckKind,
                headers:
                    headers == null
                        ? {}
                        : (JSON.parse(await this.#ctx.secrets.open(headers)) as Record<string, string>)
            }
        };
    }

    async #rowOf({ headers, ...fields }: CheckFields): Promise<StoredFields> {
        return {
            ...fields,
            headers:
                Object.keys(headers).length === 0
                    ? null
                    : await this.#ctx.secrets.seal(JSON.stringify(headers))
        };
    }
}

/** The headers of a check as answers show them; none: no field. */
export function maskedHeaders({ headers }: CheckFields): { headers?: Record<string, { set: true }> } {
    return Object.keys(headers).length === 0 ? {} : { headers: maskHeaders(headers) };
}

function specOf({ kind, target, timeoutSeconds, expect, headers }: CheckFields): CheckSpec {
    return { kind, target, timeoutSeconds, expect, headers };
}
