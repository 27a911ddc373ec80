/** Exports: other systems that the values of samples are sent to. */
import { isDeepStrictEqual } from 'node:util';

import { errors, requireVersion } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

import { fail } from '../errors.ts';
import type { Machine } from '../machine.ts';
import { describeProblem } from '../named.ts';
import type { Sample } from '../sampling/sample.ts';
import type { Ctx } from '../settings.ts';
import { ExportEntity, type ExportRow } from './entities.ts';
import { type ExportFields, fieldsOf } from './input.ts';
import { type Batch, batchOf } from './protocols/series.ts';
import { ExportQueue } from './queue.ts';
import type { ChangedExport, NewExport } from './schema.ts';
import { encode, send, type Sent } from './send.ts';
import { Sender } from './sender.ts';

const mostExports = 20;

/** An export with everything that an answer shows of it. */
export interface SeenExport {
    readonly id: number;
    readonly fields: ExportFields;
    readonly version: number;
    readonly createdAt: number;
    readonly updatedAt: number;
}

/** How an export goes. */
export interface ExportStatus {
    readonly lastSuccessAt: number | null;
    readonly lastError: string | null;
    readonly queued: number;
    readonly dropped: number;
}

interface Known extends SeenExport {
    /** When the next sample is due, milliseconds since 1970. */
    dueAt: number;
    readonly sender: Sender;
}

/** Keeps all exports in memory, and sends what is due. */
export class Exports {
    readonly #ctx: Ctx;
    readonly #machine: Machine;
    readonly #queue: ExportQueue;
    readonly #known = new Map<number, Known>();
    readonly #end = new AbortController();
    readonly #work = new Set<Promise<void>>();

    constructor(ctx: Ctx, machine: Machine) {
        this.#ctx = ctx;
        this.#machine = machine;
        this.#queue = new ExportQueue(ctx.db);
    }

    /** Takes up the exports as an earlier generation left them. */
    async start(): Promise<void> {
        const rows = await this.#ctx.db.read((em) => em.find(ExportEntity, {}));
        for (const row of rows) {
            this.#put(await this.#open(row));
        }
    }

    /** Resolves when nothing is being sent; what waits goes on after the next start. */
    async stop(): Promise<void> {
        this.#end.abort();
        await Promise.all(this.#work);
    }

    /** Sends a sample to the exports that it is due for; resolves at once. */
    offer(sample: Sample): void {
        const at = Date.parse(sample.at);
        for (const known of this.#known.values()) {
            const interval = known.fields.intervalSeconds * 1000;
            // The clock may have been set back.
            const isDue = at >= known.dueAt || known.dueAt > at + interval;
            if (known.fields.enabled) {
                known.dueAt = isDue ? Math.floor(at / interval) * interval + interval : known.dueAt;
                this.#begin(known, isDue ? this.#batchOf(known.fields, sample) : null);
            }
        }
    }

    /** All exports, oldest first. */
    list(): readonly SeenExport[] {
        return [...this.#known.values()].sort((a, b) => a.id - b.id);
    }

    /** One export. @throws NOT_FOUND 40400 */
    get(id: number): SeenExport {
        return this.#get(id);
    }

    /** How all exports go, by number. */
    async statuses(): Promise<ReadonlyMap<number, ExportStatus>> {
        const [rows, queued] = await Promise.all([
            this.#ctx.db.read((em) => em.find(ExportEntity, {})),
            this.#queue.counts()
        ]);
        return new Map(
            rows.map(({ id, lastSuccessAt, lastError, dropped }) => [
                id,
                {
                    lastSuccessAt: lastSuccessAt ?? null,
                    lastError: lastError ?? null,
                    queued: queued.get(id) ?? 0,
                    dropped
                }
            ])
        );
    }

    /** Creates an export; the next sample is sent. @throws VALIDATION_FAILED 40001, TOO_MANY_EXPORTS 40953 */
    async create(input: NewExport): Promise<SeenExport> {
        const fields = fieldsOf(input, null);
        return this.#put(await this.#ctx.db.write((em) => this.#insert(em, fields)));
    }

    /** Changes the given fields. @throws NOT_FOUND 40400, VERSION_STALE 41200, VALIDATION_FAILED 40001 */
    async update(id: number, change: ChangedExport, ifMatch: string | null): Promise<SeenExport> {
        const before = this.#get(id);
        requireVersion(before, ifMatch, change.version);
        const kept = Object.fromEntries(
            Object.keys(before.fields.headers).map((name) => [name, { set: true as const }])
        );
        const { metrics, ...stored } = before.fields;
        const body = { ...stored, metrics: [...metrics], headers: kept, ...change } as NewExport;
        const fields = fieldsOf(body, before.fields);
        if (isDeepStrictEqual(fields, before.fields)) {
            return before;
        }
        const [row, now, version] = [await this.#rowOf(fields), this.#machine.now(), before.version + 1];
        await this.#ctx.db.write(async (em) => {
            const done = await em.nativeUpdate(
                ExportEntity,
                { id, version: before.version },
                { ...row, version, updatedAt: now }
            );
            if (done === 0) {
                throw errors.stale(this.#known.get(id)?.version ?? version);
            }
            if (fields.type !== before.fields.type) {
                // What waits is in the other format.
                await forgetBatches(em, id);
            }
        });
        return this.#put({ ...before, fields, version, updatedAt: now });
    }

    /** Removes an export with what waits. @throws NOT_FOUND 40400, VERSION_STALE 41200 */
    async remove(id: number, ifMatch: string | null): Promise<SeenExport> {
        const before = this.#get(id);
        requireVersion(before, ifMatch);
        await this.#ctx.db.write((em) => this.#delete(em, id));
        this.#known.delete(id);
        return before;
    }

    /** Sends a sample now, beside what waits. @throws NOT_FOUND 40400 */
    async test(id: number, sample: Sample, signal: AbortSignal): Promise<Sent> {
        const { fields } = this.#get(id);
        const body = encode(fields.type, this.#batchOf(fields, sample));
        return send(this.#ctx, fields, body, AbortSignal.any([signal, this.#end.signal]));
    }

    /** All exports as bodies of POST `/exports`, with the values of their headers. */
    exportAll(): readonly NewExport[] {
        return this.list().map(({ fields: { metrics, headers, labels, ...fields } }) => ({
            ...fields,
            metrics: [...metrics],
            headers: { ...headers },
            labels: { ...labels }
        }));
    }

    /**
     * Takes back exports. One takes the place of that with the same address and type; with `replace` all others are removed. All of it is done,
     * or nothing. Resolves with what is wrong with each that was left out.
     */
    async restore(inputs: readonly NewExport[], mode: 'merge' | 'replace'): Promise<readonly string[]> {
        const keyOf = ({ type, url }: Pick<NewExport, 'type' | 'url'>): string => `${type} ${url}`;
        const others = new Map(this.list().map((each) => [keyOf(each.fields), each]));
        const problems: string[] = [];
        const [put, removed] = await this.#ctx.db.write(async (em) => {
            const done: SeenExport[] = [];
            for (const input of inputs) {
                const same = others.get(keyOf(input));
                others.delete(keyOf(input));
                try {
                    const fields = fieldsOf(input, null);
                    done.push(
                        await (same === undefined
                            ? this.#insert(em, fields)
                            : this.#replace(em, same, fields))
                    );
                } catch (error) {
                    problems.push(`${input.url}: ${describeProblem(error)}`);
                }
            }
            const gone = mode === 'replace' ? [...others.values()] : [];
            for (const { id } of gone) {
                await this.#delete(em, id);
            }
            return [done, gone] as const;
        });
        put.forEach((each) => this.#put(each));
        removed.forEach(({ id }) => this.#known.delete(id));
        return problems;
    }

    #begin(known: Known, batch: Batch | null): void {
        const work = (async () => {
            if (batch !== null && batch.values.length > 0) {
                await this.#queue.add(known.id, batch.at, encode(known.fields.type, batch));
            }
            await known.sender.run(known.fields);
        })().catch((error: unknown) => {
            if (!this.#end.signal.aborted) {
                this.#ctx.log.warn('Metrics could not be sent', { export: known.id, error: String(error) });
            }
        });
        this.#work.add(work);
        void work.finally(() => this.#work.delete(work));
    }

    #batchOf({ metrics, labels }: ExportFields, sample: Sample): Batch {
        const instance = this.#machine.read('/proc/sys/kernel/hostname')?.trim() || 'unknown';
        return batchOf(sample, metrics, { instance, ...labels });
    }

    #get(id: number): Known {
        const known = this.#known.get(id);
        if (known === undefined) {
            throw errors.notFound(`There is no export ${id}`);
        }
        return known;
    }

    #put(seen: SeenExport): SeenExport {
        const before = this.#known.get(seen.id);
        const sender =
            before?.sender ?? new Sender(this.#ctx, this.#machine, this.#queue, seen.id, this.#end.signal);
        sender.retryNow();
        const known = { ...seen, sender, dueAt: 0 };
        this.#known.set(seen.id, known);
        return known;
    }

    async #insert(em: EntityManager, fields: ExportFields): Promise<SeenExport> {
        if ((await em.count(ExportEntity, {})) >= mostExports) {
            throw fail.TOO_MANY_EXPORTS({ limit: mostExports });
        }
        const now = this.#machine.now();
        const state = { version: 1, createdAt: now, updatedAt: now };
        const row = { ...(await this.#rowOf(fields)), ...state, dropped: 0 };
        return { id: Number(await em.insert(ExportEntity, row)), fields, ...state };
    }

    async #replace(em: EntityManager, same: SeenExport, fields: ExportFields): Promise<SeenExport> {
        if (isDeepStrictEqual(fields, same.fields)) {
            return same;
        }
        const changed = { version: same.version + 1, updatedAt: this.#machine.now() };
        await em.nativeUpdate(ExportEntity, { id: same.id }, { ...(await this.#rowOf(fields)), ...changed });
        return { ...same, fields, ...changed };
    }

    async #delete(em: EntityManager, id: number): Promise<void> {
        await em.nativeDelete(ExportEntity, { id });
        await forgetBatches(em, id);
    }

    async #open(row: ExportRow): Promise<SeenExport> {
        const { id, type, url, headers, metrics, intervalSeconds, labels, enabled } = row;
        const { version, createdAt, updatedAt } = row;
        const opened = headers == null ? '{}' : await this.#ctx.secrets.open(headers);
        return {
            ...{ id, version, createdAt, updatedAt },
            fields: {
                ...{ url, metrics, intervalSeconds, labels, enabled },
                type: type as NewExport['type'],
                headers: JSON.parse(opened) as Record<string, string>
            }
        };
    }

    async #rowOf({ headers, ...fields }: ExportFields) {
        const isEmpty = Object.keys(headers).length === 0;
        return {
            ...fields,
            headers: isEmpty ? null : await this.#ctx.secrets.seal(JSON.stringify(headers))
        };
    }
}

async function forgetBatches(em: EntityManager, id: number): Promise<void> {
    await em.execute('delete from export_batches where export_id = ?', [id], 'run');
}
