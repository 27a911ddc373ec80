/** Commands of projects that run at certain times, in the release that serves then. */
import { errors, type Scheduled } from '@portico/sdk';
import { findRow, findRows } from '@portico/sdk/db';

import type { Store } from '../deployments/store.ts';
import { CronEntity, type CronRow } from '../entities.ts';
import { uniqueName } from '../errors.ts';
import type { Commands } from '../releases/commands.ts';
import type { Ctx } from '../settings.ts';
import { cronInput } from './schema.ts';

/** What an admin says of a cron. */
export interface CronInput {
    readonly name: string;
    readonly schedule: string;
    readonly timezone: string | null;
    readonly command: readonly string[];
    readonly timeoutSeconds: number;
    readonly enabled: boolean;
}

/** How a cron ended. */
export interface CronRun {
    readonly at: string;
    readonly seconds: number;
    /** Null when a signal ended it, and when it could not begin. */
    readonly exitCode: number | null;
    /** The end of what it printed, or why it could not begin. */
    readonly output: string;
}

/** A cron as it is kept. */
export interface Cron extends CronInput {
    readonly id: number;
    readonly version: number;
    readonly projectId: number;
    readonly lastRun: CronRun | null;
}

interface Parts {
    readonly ctx: Ctx;
    readonly store: Store;
    readonly commands: Commands;
}

const shownCharacters = 4_000;

/** Keeps crons, and runs them. */
export class Crons {
    readonly #parts: Parts;
    readonly #scheduled = new Map<number, Scheduled>();

    constructor(parts: Parts) {
        this.#parts = parts;
    }

    /** Begins to run all that are enabled. */
    async start(): Promise<void> {
        const rows = await this.#parts.ctx.db.read((em) => findRows(em, CronEntity, {}));
        for (const row of rows) {
            await this.#schedule(cronOf(row));
        }
    }

    /** The crons of a project, by name. */
    async list(projectId: number): Promise<readonly Cron[]> {
        const rows = await this.#parts.ctx.db.read((em) =>
            findRows(em, CronEntity, { projectId }, { orderBy: { name: 'asc' } })
        );
        return rows.map(cronOf);
    }

    /** One cron. @throws NOT_FOUND 40400 */
    async get(id: number): Promise<Cron> {
        const row = await this.#parts.ctx.db.read((em) => findRow(em, CronEntity, id));
        if (row === null) {
            throw errors.notFound(`There is no cron ${id}`);
        }
        return cronOf(row);
    }

    /** A cron from what came by another way than a route. @throws VALIDATION_FAILED 40001 */
    read(given: unknown): CronInput {
        const { error, value } = cronInput.required().validate(given);
        if (error !== undefined) {
            throw errors.invalid([{ path: 'crons', message: error.message }]);
        }
        return value as CronInput;
    }

    /** Adds a cron. @throws VALIDATION_FAILED 40001 for a schedule that is none; CONFLICT 40900 */
    async add(projectId: number, { name, ...input }: CronInput): Promise<Cron> {
        await this.#check(input);
        const row = await uniqueName(() =>
            this.#parts.ctx.db.write(async (em) => {
                const config = JSON.stringify(input);
                const entity = em.create(CronEntity, { projectId, name, config, version: 1, lastRun: null });
                await em.flush();
                return { ...entity } as CronRow;
            })
        );
        const cron = cronOf(row);
        await this.#schedule(cron);
        return cron;
    }

    /** Changes a cron. @throws VALIDATION_FAILED 40001; CONFLICT 40900 */
    async change(before: Cron, { name, ...input }: CronInput): Promise<Cron> {
        await this.#check(input);
        const { id, version } = before;
        const change = { name, config: JSON.stringify(input), version: version + 1 };
        await uniqueName(() => this.#parts.ctx.db.write((em) => em.nativeUpdate(CronEntity, { id }, change)));
        const cron = await this.get(id);
        await this.#schedule(cron);
        return cron;
    }

    /** Removes a cron; one that runs is ended. */
    async remove(id: number): Promise<void> {
        await this.#stop(id);
        await this.#parts.ctx.db.write((em) => em.nativeDelete(CronEntity, { id }));
    }

    /** Removes the crons of a project. */
    async removeAll(projectId: number): Promise<void> {
        for (const { id } of await this.list(projectId)) {
            await this.remove(id);
        }
    }

    /** Runs a cron now, and writes down how it ended. */
    async run(id: number, signal: AbortSignal): Promise<CronRun> {
        const { ctx, store, commands } = this.#parts;
        const { projectId, command, timeoutSeconds, name } = await this.get(id);
        const project = await store.project(projectId);
        const at = new Date();
        const result = await commands.run(project, command, timeoutSeconds, signal).then(
            ({ code, stdout, stderr, timedOut }) => ({
                exitCode: timedOut ? null : code,
                output: timedOut ? `It took longer than ${timeoutSeconds} s` : stdout + stderr
            }),
            (error: unknown) => ({ exitCode: null, output: (error as Error).message })
        );
        const run = {
            at: at.toISOString(),
            seconds: (Date.now() - at.getTime()) / 1_000,
            exitCode: result.exitCode,
            output: result.output.slice(-shownCharacters)
        };
        await ctx.db.write((em) => em.nativeUpdate(CronEntity, { id }, { lastRun: JSON.stringify(run) }));
        if (run.exitCode !== 0) {
            await ctx.notify({
                event: 'cron-failed',
                severity: 'error',
                title: `${project.name}: the cron ${name} failed`,
                data: { projectId, cronId: id, exitCode: run.exitCode }
            });
        }
        return run;
    }

    async #schedule(cron: Cron): Promise<void> {
        await this.#stop(cron.id);
        if (cron.enabled) {
            const scheduled = await this.#parts.ctx.schedule(`cron-${cron.id}`, whenOf(cron), ({ signal }) =>
                this.run(cron.id, signal).then(() => undefined)
            );
            this.#scheduled.set(cron.id, scheduled);
        }
    }

    async #stop(id: number): Promise<void> {
        await this.#scheduled.get(id)?.[Symbol.asyncDispose]();
        this.#scheduled.delete(id);
    }

    /** A schedule that the panel takes for a moment is one that it takes for good. @throws VALIDATION_FAILED 40001 */
    async #check(input: Pick<CronInput, 'schedule' | 'timezone'>): Promise<void> {
        try {
            const trial = await this.#parts.ctx.schedule('cron-trial', whenOf(input), () => undefined);
            await trial[Symbol.asyncDispose]();
        } catch (error) {
            throw errors.invalid([{ path: 'schedule', message: (error as Error).message }]);
        }
    }
}

function whenOf({ schedule, timezone }: Pick<CronInput, 'schedule' | 'timezone'>) {
    return { cron: schedule, ...(timezone === null ? {} : { timezone }) };
}

function cronOf({ id, version, projectId, name, config, lastRun }: CronRow): Cron {
    return {
        ...{ id, version, projectId, name },
        ...(JSON.parse(config) as Omit<CronInput, 'name'>),
        // An empty column may be left out of a row.
        lastRun: lastRun == null ? null : (JSON.parse(lastRun) as CronRun)
    };
}
