/** How runs ended in the last days. */
import type { EntityManager } from '@portico/sdk/db';

/** Which runs the statistics count; what is left out does not filter. */
export interface StatisticsFilter {
    /** Milliseconds since 1970. */
    readonly since: number;
    readonly taskId?: number | undefined;
    readonly tag?: string | undefined;
}

/** One finished run. */
interface Finished {
    readonly state: 'succeeded' | 'failed' | 'timeout' | 'stopped' | 'skipped';
    readonly times: number;
    readonly day: string;
    /** Null for a run that did not begin. */
    readonly seconds: number | null;
    readonly cpu: number | null;
    readonly memory: number | null;
}

/** What the numbers say. */
export interface Statistics {
    readonly runs: number;
    readonly succeeded: number;
    readonly failed: number;
    readonly timeout: number;
    readonly stopped: number;
    readonly skipped: number;
    /** Of those that ended by themselves; null without any. */
    readonly successRate: number | null;
    readonly seconds: {
        readonly p50: number | null;
        readonly p95: number | null;
        readonly max: number | null;
    };
    readonly cpuSeconds: number;
    readonly memoryPeakBytes: number | null;
    readonly days: readonly { readonly day: string; readonly succeeded: number; readonly failed: number }[];
}

/** Reads the finished runs, and counts. */
export async function statisticsOf(
    em: EntityManager,
    { since, taskId, tag }: StatisticsFilter
): Promise<Statistics> {
    const conditions = ['finished_at >= ?'];
    const values: (string | number)[] = [since];
    if (taskId !== undefined) {
        conditions.push('task_id = ?');
        values.push(taskId);
    }
    if (tag !== undefined) {
        conditions.push('task_id in (select tasks.id from tasks, json_each(tasks.tags) where value = ?)');
        values.push(tag);
    }
    return count(
        await em.execute<Finished[]>(
            `select state, times, date(finished_at / 1000, 'unixepoch') as day, (finished_at - started_at) / 1000.0 as seconds,
                    cpu_seconds as cpu, memory_peak_bytes as memory from runs where ${conditions.join(' and ')}`,
            values
        )
    );
}

function count(runs: readonly Finished[]): Statistics {
    const number = (state: Finished['state']): number =>
        runs.reduce((sum, run) => sum + (run.state === state ? run.times : 0), 0);
    const [succeeded, failed, timeout] = [number('succeeded'), number('failed'), number('timeout')];
    const ended = succeeded + failed + timeout;
    const seconds = runs.flatMap((run) => run.seconds ?? []).sort((one, other) => one - other);
    const at = (part: number): number | null =>
        seconds[Math.max(0, Math.ceil(part * seconds.length) - 1)] ?? null;
    const memory = runs.flatMap((run) => run.memory ?? []);
    const days = Map.groupBy(runs, ({ day }) => day);
    return {
        runs: runs.reduce((sum, { times }) => sum + times, 0),
        succeeded,
        failed,
        timeout,
        stopped: number('stopped'),
        skipped: number('skipped'),
        successRate: ended === 0 ? null : succeeded / ended,
        seconds: { p50: at(0.5), p95: at(0.95), max: seconds.at(-1) ?? null },
        cpuSeconds: runs.reduce((sum, { cpu }) => sum + (cpu ?? 0), 0),
        memoryPeakBytes: memory.length === 0 ? null : Math.max(...memory),
        days: [...days]
            .sort(([one], [other]) => (one < other ? -1 : 1))
            .map(([day, of]) => ({
                day,
                succeeded: of.filter(({ state }) => state === 'succeeded').length,
                failed: of.filter(({ state }) => state === 'failed' || state === 'timeout').length
            }))
    };
}
