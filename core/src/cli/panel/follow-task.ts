/** Follows a task of the running panel until it ends. */
import { setTimeout as wait } from 'node:timers/promises';

import type { TaskView } from '../../server/http/answer/task-view.ts';
import { CommandError, RequestRefused } from '../command/command-error.ts';
import { toPlainText } from '../command/output.ts';
import type { Client } from './client.ts';

/** Why a task failed. */
interface TaskError {
    readonly message: string;
    readonly reason: string;
    readonly data: Readonly<Record<string, unknown>> | null;
}

const mostBreaks = 20;
const pauseMs = 300;

/**
 * Passes each line of its log to `tell`. Ctrl-C ends the command, not the task.
 *
 * @returns the result of the task
 * @throws RequestRefused when the task failed; CommandError when it was cancelled, the panel ended, or Ctrl-C was pressed
 */
export async function followTask<T>(
    client: Client,
    { id, title }: Pick<TaskView, 'id' | 'title'>,
    tell: (line: string) => void
): Promise<T> {
    const leaving = new AbortController();
    const leave = (): void =>
        leaving.abort(
            new CommandError(
                `"${toPlainText(title)}" goes on in the panel as task ${id}: GET /api/tasks/${id} shows its progress, and \`portico plugin list\` its result`
            )
        );
    process.once('SIGINT', leave);
    try {
        let lastId: string | null = null;
        for (let breaks = 0; breaks < mostBreaks; breaks += 1) {
            for await (const event of client.events(`/api/tasks/${id}/events`, lastId, leaving.signal)) {
                if (event.event === 'log') {
                    tell(toPlainText(String((event.data as { readonly line?: unknown }).line)));
                }
                lastId = event.id ?? lastId;
            }
            const { data } = await client
                .call<TaskView>('GET', `/api/tasks/${id}`)
                .catch((error: unknown) => {
                    throw error instanceof RequestRefused
                        ? error
                        : new CommandError(
                              `${(error as Error).message}. Task ${id} ("${toPlainText(title)}") may have been interrupted: see GET /api/tasks/${id} when the panel runs again`
                          );
                });
            if (data.state === 'succeeded') {
                return data.result as T;
            }
            if (data.state === 'failed') {
                const { message, reason, data: more } = data.error as TaskError;
                throw new RequestRefused(message, { ...more, reason });
            }
            if (data.state === 'cancelled') {
                throw new CommandError(`Task ${id} ("${toPlainText(title)}") was cancelled`);
            }
            await wait(pauseMs);
        }
        throw new CommandError(
            `Task ${id} ("${toPlainText(title)}") has not ended, and the connection to its events is lost again and again: see GET /api/tasks/${id}`
        );
    } finally {
        process.removeListener('SIGINT', leave);
    }
}
