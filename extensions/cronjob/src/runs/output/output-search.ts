/** Finds lines in the kept output of runs. */
import type { EntityManager } from '@portico/sdk/db';

/** What is searched for. */
export interface OutputQuery {
    /** A part of a line, whatever the case. */
    readonly q: string;
    readonly taskId?: number | undefined;
    readonly tag?: string | undefined;
    /** Milliseconds since 1970, when a run was created. */
    readonly from?: number | undefined;
    readonly to?: number | undefined;
    /** Only runs with a smaller id. */
    readonly before: number | null;
    /** Lines; those of the last run all come along. */
    readonly limit: number;
}

/** A line that was found. */
export interface FoundLine {
    readonly runId: number;
    readonly taskId: number;
    /** When the run was created. */
    readonly at: number;
    /** 1 is the first line that was kept. */
    readonly line: number;
    readonly text: string;
}

interface OutputOfRun {
    readonly id: number;
    readonly taskId: number;
    readonly at: number;
    readonly text: string;
}

/** Runs that are read at once. */
const batch = 50;
/** Lines that one run gives, and how long each may be. */
const [mostLines, longest] = [100, 2_000];

/** Resolves with lines of the newest runs first, and the run after which to go on; null when there are no more. */
export async function searchOutput(
    em: EntityManager,
    query: OutputQuery
): Promise<{ readonly lines: readonly FoundLine[]; readonly next: number | null }> {
    const needle = query.q.toLowerCase();
    const lines: FoundLine[] = [];
    let before = query.before;
    for (;;) {
        const runs = await read(em, { ...query, before });
        for (const [index, run] of runs.entries()) {
            lines.push(...linesOf(run, needle));
            if (lines.length >= query.limit) {
                return { lines, next: index === runs.length - 1 && runs.length < batch ? null : run.id };
            }
        }
        if (runs.length < batch) {
            return { lines, next: null };
        }
        before = runs.at(-1)?.id ?? null;
    }
}

async function read(
    em: EntityManager,
    { q, taskId, tag, from, to, before }: OutputQuery
): Promise<readonly OutputOfRun[]> {
    const parts: readonly (readonly [string, string | number | undefined])[] = [
        ['instr(lower(head || tail), lower(?)) > 0', q],
        ['runs.id < ?', before ?? undefined],
        ['task_id = ?', taskId],
        ['task_id in (select tasks.id from tasks, json_each(tasks.tags) where value = ?)', tag],
        ['created_at >= ?', from],
        ['created_at <= ?', to]
    ];
    const given = parts.flatMap(([sql, value]) => (value === undefined ? [] : [{ sql, value }]));
    return em.execute<OutputOfRun[]>(
        `select runs.id as id, task_id as taskId, created_at as at, head || tail as text from outputs join runs on runs.id = run_id
         where ${given.map(({ sql }) => sql).join(' and ')} order by runs.id desc limit ${batch}`,
        given.map(({ value }) => value)
    );
}

function linesOf({ id, taskId, at, text }: OutputOfRun, needle: string): FoundLine[] {
    return text
        .split('\n')
        .map((line, index) => ({ runId: id, taskId, at, line: index + 1, text: line.slice(0, longest) }))
        .filter((line) => line.text.toLowerCase().includes(needle))
        .slice(0, mostLines);
}
