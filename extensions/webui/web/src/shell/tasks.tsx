/** The drawer of tasks: every piece of long work that this tab began, with its progress, its log and its end. */
import { useEffect, useState } from 'preact/hooks';

import { call } from '../api/client.ts';
import { invalidate, queries } from '../api/queries.ts';
import { follow } from '../api/streams.ts';
import { Button } from '../kit/button.tsx';
import { confirm } from '../kit/dialogs/questions.tsx';
import { toastFailure } from '../kit/dialogs/toast.tsx';
import { Badge } from '../kit/display/value.tsx';
import { Store, useStore } from '../kit/store.ts';
import { inWords } from '../schema/schema.ts';
import { t } from '../words/t.ts';

interface Task {
    readonly id: number;
    readonly kind: string;
    readonly state: string;
    readonly progress: number | null;
    readonly error: { readonly message?: string } | null;
}

const shown = new Store<readonly number[]>([]);
const keptLines = 500;

/** Shows a task in the drawer. */
export function showTask(id: number): void {
    if (!shown.value.includes(id)) {
        shown.set([id, ...shown.value]);
    }
}

/** The drawer; nothing while there is no task to show. */
export function TaskDrawer() {
    const ids = useStore(shown);
    return ids.length === 0 ? null : (
        <aside class="drawer" aria-label={t('Tasks')}>
            {ids.map((id) => (
                <TaskCard
                    key={id}
                    id={id}
                    onClose={() => shown.set(shown.value.filter((each) => each !== id))}
                />
            ))}
        </aside>
    );
}

function TaskCard({ id, onClose }: { readonly id: number; readonly onClose: () => void }) {
    const { task, lines } = useTask(id);
    if (task === null) {
        return null;
    }
    const isRunning = ['queued', 'running'].includes(task.state);
    const cancel = async (): Promise<void> => {
        if (await confirm(t('Cancel this task?'), t('Cancel the task'))) {
            await call('DELETE', `/api/tasks/${id}`).catch(toastFailure);
        }
    };
    return (
        <section class="task" aria-label={task.kind}>
            <header class="row spread">
                <strong>{inWords(task.kind)}</strong>
                <Badge text={task.state} tone={isRunning ? 'busy' : undefined} />
            </header>
            {isRunning ? (
                <progress
                    {...(task.progress === null ? {} : { value: task.progress })}
                    aria-label={t('Progress')}
                />
            ) : null}
            {task.error?.message === undefined ? null : <p class="failure">{task.error.message}</p>}
            {lines.length === 0 ? null : (
                <details>
                    <summary>{t('Log')}</summary>
                    <div class="lines" role="log" tabIndex={0}>
                        {lines.map((line, index) => (
                            <div key={index}>{line}</div>
                        ))}
                    </div>
                </details>
            )}
            <footer>
                {isRunning ? (
                    <Button onPress={cancel}>{t('Cancel the task')}</Button>
                ) : (
                    <Button onPress={onClose}>{t('Close')}</Button>
                )}
            </footer>
        </section>
    );
}

/** Follows a task by its stream; its end makes stale what it may have changed. */
function useTask(id: number): { task: Task | null; lines: readonly string[] } {
    const [task, setTask] = useState<Task | null>(null);
    const [lines, setLines] = useState<readonly string[]>([]);
    useEffect(() => {
        const controller = new AbortController();
        const read = async (): Promise<void> => setTask((await call<Task>('GET', `/api/tasks/${id}`)).data);
        const take = (event: string, data: Record<string, unknown>): void => {
            if (event === 'log') {
                setLines((before) => [...before, String(data['line'])].slice(-keptLines));
            } else if (event === 'progress') {
                setTask((before) => before && { ...before, ...(data as Partial<Task>) });
            }
        };
        const end = async (): Promise<void> => {
            await read();
            await queries.invalidateQueries();
        };
        read()
            .then(() =>
                follow(
                    `/api/tasks/${id}/events`,
                    ({ event, data }) => take(event, (data ?? {}) as Record<string, unknown>),
                    controller.signal
                )
            )
            .then(() => (controller.signal.aborted ? undefined : end()))
            .catch(toastFailure);
        return () => {
            controller.abort();
            void invalidate('/api/tasks');
        };
    }, [id]);
    return { task, lines };
}
