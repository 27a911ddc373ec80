/** Tasks in exports of the panel, and taken back from them. */
import { isFailure } from '@portico/sdk';

import type { TaskRow } from '../entities.ts';
import { findTasks } from '../queries.ts';
import type { Ctx } from '../settings.ts';
import { draftOfRow } from './draft.ts';
import type { ExportedTask, TaskInput } from './input/input.ts';
import type { Tasks } from './tasks.ts';

/** Gives all tasks, and takes them back. */
export class ExportSection {
    readonly #ctx: Ctx;
    readonly #tasks: Tasks;

    constructor(ctx: Ctx, tasks: Tasks) {
        this.#ctx = ctx;
        this.#tasks = tasks;
    }

    /** All tasks as bodies of POST `/tasks`, with the values of their environments in plain text. */
    async exportAll(): Promise<readonly ExportedTask[]> {
        const rows = await this.#ctx.db.read((em) => findTasks(em, {}));
        return Promise.all(rows.map((task) => this.#exported(task)));
    }

    /**
     * Takes back exported tasks. One takes the place of the task with the same name, so that a second time changes nothing; with `replace` all
     * others are removed. An account that this machine does not have is no obstacle: the runs say that it is missing.
     * Resolves with what is wrong with each task that was left out.
     */
    async restore(inputs: readonly ExportedTask[], mode: 'merge' | 'replace'): Promise<readonly string[]> {
        const rows = await this.#ctx.db.read((em) => findTasks(em, {}));
        const byName = Map.groupBy(rows, ({ name }) => name);
        const kept = new Set<TaskRow>();
        const problems: string[] = [];
        /** Ids here, by ids of the panel that wrote the export. */
        const ids = new Map<number, number>();
        const chained: { readonly id: number; readonly input: ExportedTask }[] = [];
        for (const input of inputs) {
            const { id, then: _then, ...body } = input;
            const same = byName.get(input.name ?? '')?.shift();
            if (same !== undefined) {
                kept.add(same);
            }
            try {
                const restored = await this.#tasks.put(body, same ?? null);
                ids.set(id ?? 0, restored);
                chained.push({ id: restored, input });
            } catch (error) {
                problems.push(`${input.name}: ${describeProblem(error)}`);
            }
        }
        problems.push(...(await this.#chain(chained, ids)));
        for (const { id } of mode === 'replace' ? rows.filter((row) => !kept.has(row)) : []) {
            await this.#tasks.remove(id, null);
        }
        return problems;
    }

    /** Connects restored tasks, once all of them are there. */
    async #chain(
        restored: readonly { readonly id: number; readonly input: ExportedTask }[],
        ids: ReadonlyMap<number, number>
    ): Promise<readonly string[]> {
        const problems: string[] = [];
        for (const { id, input } of restored) {
            const given = input.then ?? [];
            const then = given.flatMap(({ taskId, on }) => {
                const now = ids.get(taskId);
                return now === undefined ? [] : [{ taskId: now, on }];
            });
            if (then.length < given.length) {
                problems.push(`${input.name}: a task that follows it is missing`);
            }
            if (then.length > 0) {
                await this.#tasks.update(id, { then }, null);
            }
        }
        return problems;
    }

    async #exported(task: TaskRow): Promise<ExportedTask> {
        const { request, parameters, ...draft } = draftOfRow(task);
        const [headers, defaults] = [
            await this.#tasks.open(task.headers),
            await this.#tasks.open(task.parameterDefaults)
        ];
        const body: TaskInput = {
            ...draft,
            env: await this.#tasks.open(task.env),
            request: request === null ? null : { ...request, headers },
            parameters: parameters.map((each) =>
                each.secret && each.default !== null
                    ? { ...each, default: defaults[each.name] ?? null }
                    : each
            )
        };
        return { ...body, id: task.id };
    }
}

/** What is wrong with a draft, from the error of its check. */
function describeProblem(error: unknown): string {
    if (!isFailure(error)) {
        throw error;
    }
    const { errors: problems = [] } = (error.data ?? {}) as { errors?: readonly { message: string }[] };
    return problems.length === 0 ? error.message : problems.map(({ message }) => message).join(', ');
}
