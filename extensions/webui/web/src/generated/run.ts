/** Calls of generated pages: paths with their parameters, and what the user is told after an answer. */
import { type Answer, call, type CallOptions } from '../api/client.ts';
import { downloadFrom } from '../api/download.ts';
import { invalidate } from '../api/queries.ts';
import { confirm } from '../kit/questions.tsx';
import { toast, toastFailure } from '../kit/toast.tsx';
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
    options: { readonly body?: unknown; readonly version?: number | undefined } = {}
): Promise<Answer<unknown>> {
    const needsBody = operation.body !== null && options.body === undefined;
    const answer = await call(operation.method, pathOf(operation, params), {
        ...options,
        ...(needsBody ? { body: {} } : {})
    });
    if (!showIfTask(answer)) {
        toast(t('Done: {what}', { what: operation.title }));
    }
    await invalidate(operation.path.split('/{')[0]?.split('/').slice(0, 4).join('/') ?? '/api');
    return answer;
}

/** Downloads what an operation answers. @throws ApiFailure */
export const save = (operation: Operation, params: Params, query: CallOptions['query'] = {}): Promise<void> =>
    downloadFrom(pathOf(operation, params), query);

/** Downloads, and shows the failure. */
export const download = (operation: Operation, params: Params): Promise<void> =>
    save(operation, params).catch(toastFailure);

/** Calls an operation that needs no form, after the question that its effect asks for. Failures are shown. */
export async function press(operation: Operation, params: Params, version?: number): Promise<void> {
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
