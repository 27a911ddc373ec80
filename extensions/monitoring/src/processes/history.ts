/** Who used most in each minute: the busiest processes of the past, by processor and by memory. */
import { deflateRawSync, inflateRawSync } from 'node:zlib';

import type { Machine } from '../machine.ts';
import {
    identityOf,
    type ProcessStat,
    readPageBytes,
    readProcesses,
    readUsers,
    startOf
} from '../sampling/sources/processes.ts';
import { readCpu, ticksPerSecond } from '../sampling/sources/system.ts';
import type { Ctx } from '../settings.ts';

/** What one process used in one minute. */
export interface UsedProcess {
    readonly pid: number;
    readonly name: string;
    readonly user: string | null;
    /** Percent of one processor over the minute; null where there was nothing to compare with. */
    readonly cpu: number | null;
    /** Bytes, the most that was seen. */
    readonly memory: number;
    readonly startedAt: string | null;
}

interface Use extends Omit<UsedProcess, 'cpu'> {
    ticks: number;
    memory: number;
}

const minuteMs = 60_000;
const dayMs = 86_400_000;
/** Processes are looked at no more often than this, whatever the interval of samples is. */
const closestMs = 9_000;
/** Of each minute so many are kept by processor, and as many by memory. */
const keptOfEach = 25;

/** The statement that makes the table. */
export const processHistoryTable =
    'create table process_minutes (at integer primary key, data blob not null)';

/** Looks at all processes with the samples, and adds up minutes. */
export class ProcessHistory {
    readonly #ctx: Ctx;
    readonly #machine: Machine;
    /** Processor time by process, of the last look. */
    #before: ReadonlyMap<string, number> | null = null;
    #lookedAt = Number.NEGATIVE_INFINITY;
    #minute: number | null = null;
    /** How much of the minute was measured. */
    #spanMs = 0;
    #used = new Map<string, Use>();
    #work: Promise<void> = Promise.resolve();
    #isLooking = false;
    #pageBytes: number | null = null;

    constructor(ctx: Ctx, machine: Machine) {
        this.#ctx = ctx;
        this.#machine = machine;
    }

    /** Looks at the processes, unless it did so just now; resolves at once. */
    offer(): void {
        const monotonic = this.#machine.monotonic();
        const isOff = this.#ctx.settings.processHistoryDays === 0;
        if (isOff || this.#isLooking || monotonic - this.#lookedAt < closestMs) {
            return;
        }
        this.#isLooking = true;
        this.#work = this.#look(monotonic)
            .catch((error: unknown) => {
                this.#ctx.log.warn('The history of processes could not be kept', { error: String(error) });
            })
            .finally(() => {
                this.#isLooking = false;
            });
    }

    /** Resolves when everything known is written. */
    async stop(): Promise<void> {
        await this.#work;
        await this.#flush().catch(() => undefined);
    }

    /** What was used in the minute of a time; none where nothing was recorded. */
    async find(time: number): Promise<readonly UsedProcess[]> {
        await this.#work;
        const at = Math.floor(time / minuteMs) * minuteMs;
        if (at === this.#minute) {
            return this.#summary();
        }
        const [row] = await this.#ctx.db.read((em) =>
            em.execute<{ data: Uint8Array }[]>('select data from process_minutes where at = ?', [at])
        );
        return row === undefined
            ? []
            : (JSON.parse(inflateRawSync(row.data).toString()) as readonly UsedProcess[]);
    }

    /** Forgets minutes that are older than they are kept. */
    async prune(now: number): Promise<void> {
        await this.#ctx.db.write((em) =>
            em.execute(
                'delete from process_minutes where at < ?',
                [now - this.#ctx.settings.processHistoryDays * dayMs],
                'run'
            )
        );
    }

    async #look(monotonic: number): Promise<void> {
        const elapsed = monotonic - this.#lookedAt;
        const all = await readProcesses(this.#machine);
        const minute = Math.floor(this.#machine.now() / minuteMs) * minuteMs;
        if (minute !== this.#minute) {
            await this.#flush();
            this.#minute = minute;
        }
        const before = this.#before;
        const pageBytes = (this.#pageBytes ??= readPageBytes(this.#machine));
        this.#spanMs += before === null ? 0 : elapsed;
        const describe = this.#describer();
        for (const stat of all) {
            const key = identityOf(stat);
            const use = this.#used.get(key) ?? describe(stat);
            // A process that is new began after the last look, so all of its time is new.
            const ticks = before === null ? 0 : Math.max(0, stat.ticks - (before.get(key) ?? 0));
            use.ticks += ticks;
            use.memory = Math.max(use.memory, stat.pages * pageBytes);
            this.#used.set(key, use);
        }
        this.#before = new Map(all.map((stat) => [identityOf(stat), stat.ticks]));
        this.#lookedAt = monotonic;
    }

    #describer(): (stat: ProcessStat) => Use {
        const users = readUsers(this.#machine);
        const bootedAt = readCpu(this.#machine)?.bootedAt ?? 0;
        return (stat) => {
            const uid = this.#machine.owner(`/proc/${stat.pid}`);
            return {
                pid: stat.pid,
                name: stat.name,
                user: uid === null ? null : (users.get(uid) ?? String(uid)),
                startedAt: startOf(stat, bootedAt),
                ticks: 0,
                memory: 0
            };
        };
    }

    #summary(): readonly UsedProcess[] {
        const seconds = this.#spanMs / 1000;
        const all = [...this.#used.values()].map(({ ticks, ...use }): UsedProcess => ({
            ...use,
            cpu: seconds > 0 ? Math.round((ticks / ticksPerSecond / seconds) * 10_000) / 100 : null
        }));
        const most = (of: (use: UsedProcess) => number): readonly UsedProcess[] =>
            all.toSorted((a, b) => of(b) - of(a)).slice(0, keptOfEach);
        return [...new Set([...most(({ cpu }) => cpu ?? 0), ...most(({ memory }) => memory)])];
    }

    async #flush(): Promise<void> {
        const [minute, summary] = [this.#minute, this.#summary()];
        this.#used = new Map();
        this.#spanMs = 0;
        if (minute !== null && summary.length > 0) {
            const data = deflateRawSync(JSON.stringify(summary));
            await this.#ctx.db.write((em) =>
                em.execute(
                    'insert into process_minutes (at, data) values (?, ?) on conflict (at) do update set data = excluded.data',
                    [minute, data],
                    'run'
                )
            );
        }
    }
}
