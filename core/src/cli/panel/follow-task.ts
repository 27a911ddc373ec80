/** Follows a task of the running panel to its end. */
import { setTimeout as wait } from 'node:timers/promises';

import type { TaskView } from '../../features/tasks/task.ts';
import { Complaint, Refusal } from '../command/command-error.ts';
import { plain } from '../command/output.ts';
import type { Client } from './client.ts';

/** Why a task failed. */
interface Fault {
    readonly message: string;
    readonly reason: string;
    readonly data: Readonly<Record<string, unknown>> | null;
}

const mostBreaks = 20;
const pauseMs = 300;

/**
 * Tells each line of its log. Ctrl-C ends the command, not the task.
 *
 * @returns its result
 * @throws Refusal as the task failed, Complaint when it was cancelled, the panel ended, or nobody wanted to wait
 */
export async function followTask<T>(
    client: Client,
    { id, title }: Pick<TaskView, 'id' | 'title'>,
    tell: (line: string) => void
): Promise<T> {
    const leaving = new AbortController();
    const leave = (): void =>
        leaving.abort(
            new Complaint(
                `"${plain(title)}" goes on in the panel as task ${id}: GET /api/tasks/${id} says how far it is, and \`portico plugin list\` what came of it`
            )
        );
    process.once('SIGINT', leave);
    try {
        let lastId: string | null = null;
        for (let breaks = 0; breaks < mostBreaks; breaks += 1) {
            for await (const event of client.events(`/api/tasks/${id}/events`, lastId, leaving.signal)) {
                if (event.event === 'log') {
                    tell(plain(String((event.data as { readonly line?: unknown }).line)));
                }
                lastId = event.id ?? lastId;
            }
            const { data } = await client
                .call<TaskView>('GET', `/api/tasks/${id}`)
                .catch((error: unknown) => {
                    throw error instanceof Refusal
                        ? error
                        : new Complaint(
                              `${(error as Error).message}. Task ${id} ("${plain(title)}") may have been cut: ask GET /api/tasks/${id} when the panel is back`
                          );
                });
            if (data.state === 'succeeded') {
                return data.result as T;
            }
            if (data.state === 'failed') {
                const { message, reason, data: more } = data.error as Fault;
                throw new Refusal(message, { ...more, reason });
            }
            if (data.state === 'cancelled') {
                throw new Complaint(`Task ${id} ("${plain(title)}") was cancelled`);
            }
            await wait(pauseMs);
        }
        throw new Complaint(
            `Task ${id} ("${plain(title)}") is not done, and its events break off: ask GET /api/tasks/${id}`
        );
    } finally {
        process.removeListener('SIGINT', leave);
    }
}
