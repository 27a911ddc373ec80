/** Calls of generated pages: paths with their parameters, and what the user is told after an answer. */
import { type Answer, call, type CallOptions } from '../api/client.ts';
import { downloadFrom } from '../api/download.ts';
import { invalidate } from '../api/queries.ts';
import { fetchRows } from '../api/rows.ts';
import { confirm } from '../kit/dialogs/questions.tsx';
import { toast, toastFailure } from '../kit/dialogs/toast.tsx';
import { showTask } from '../shell/tasks.tsx';
import { t } from '../words/t.ts';
import type { Operation, Params } from './operations.ts';

/** The path of an operation with its parameters filled in. */
export function pathOf({ path }: Operation, params: Params): string {
    return path.replace(/\{([^}]+)\}/g, (_all, name: string) => encodeURIComponent(params[name] ?? ''));
}

/** Calls an operation, shows the task that it began, and makes stale what it changed. @throws ApiFailure */
export async function run(
    operation: Operation,
    params: Params,
    options: CallOptions = {}
): Promise<Answer<unknown>> {
    const needsBody = operation.body !== null && options.body === undefined;
    const answer = await call(operation.method, pathOf(operation, params), {
        ...options,
        ...(needsBody ? { body: {} } : {})
    });
    if (!showIfTask(answer)) {
        toast(t('Done: {what}', { what: operation.title }));
    }
    await invalidate(prefixOf(operation));
    return answer;
}

/** Where the answers lie that an operation may change: below its plugin, or its room of the core. */
export const prefixOf = ({ path }: Operation): string =>
    path.split('/{')[0]?.split('/').slice(0, 4).join('/') ?? '/api';

/** Asks a question: nothing changes. The rows of a list are in the cache then. @returns the answer that is no list @throws ApiFailure */
export async function ask(
    operation: Operation,
    params: Params,
    query: NonNullable<CallOptions['query']>
): Promise<unknown> {
    const path = pathOf(operation, params);
    return operation.isList ? fetchRows(path, query) : (await call('GET', path, { query })).data;
}

/** Downloads what an operation answers. @throws ApiFailure */
export const save = (operation: Operation, params: Params, query: CallOptions['query'] = {}): Promise<void> =>
    downloadFrom(pathOf(operation, params), query);

/** Calls an operation that needs no form, after the question that its effect asks for; a download is saved. Failures are shown. */
export async function press(operation: Operation, params: Params, version?: number): Promise<void> {
    if (operation.kind === 'download') {
        return save(operation, params).catch(toastFailure);
    }
    const question =
        operation.ui.confirm ?? (operation.effect === 'destructive' ? `${operation.title}?` : null);
    if (question === null || (await confirm(question, operation.title))) {
        await run(operation, params, { version }).catch(toastFailure);
    }
}

/** Shows the task that an answer is, if it is one. @returns whether it is */
export function showIfTask(answer: Pick<Answer<unknown>, 'status' | 'data'>): boolean {
    const isIt = isTask(answer);
    if (isIt) {
        showTask(answer.data.id);
    }
    return isIt;
}

/** Whether the work has begun and a task tells how it goes. Some routes answer 202 with an object of their own, such as a run. */
function isTask(answer: Pick<Answer<unknown>, 'status' | 'data'>): answer is Answer<{ readonly id: number }> {
    const { status, data } = answer;
    return (
        status === 202 && typeof data === 'object' && data !== null && 'kind' in data && 'progress' in data
    );
}
