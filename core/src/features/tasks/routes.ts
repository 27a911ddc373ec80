/** `/api/tasks`: every account may call it; {@link Tasks} decides for each task who sees it. */
import { reply } from '@portico/sdk';

import { readCursor, writeCursor } from '../../platform/cursor.ts';
import { taskView } from '../../server/http/answer/task-view.ts';
import { json, type Route, stream } from '../../server/http/route.ts';
import { taskEvents, taskList, taskParams, taskQuery } from './schema.ts';
import type { Tasks } from './tasks.ts';

/** The routes of tasks. */
export function taskRoutes(tasks: Tasks): Route[] {
    return [
        json({
            method: 'GET',
            path: '/api/tasks',
            id: 'tasks.list',
            access: 'authenticated',
            summary: 'List tasks, newest first',
            description: 'Those that the caller started, and those whose permission the caller has',
            validate: { query: taskQuery },
            returns: taskList,
            handler({ query, actor }) {
                const { limit, cursor, ...filter } = query;
                const page = tasks.list(actor, filter, {
                    limit,
                    before: readCursor('task', cursor)
                });
                return reply.list(page.tasks, {
                    next: page.next === null ? null : writeCursor('task', page.next)
                });
            }
        }),
        json({
            method: 'GET',
            path: '/api/tasks/{id}',
            id: 'tasks.read',
            access: 'authenticated',
            summary: 'Read one task',
            validate: { params: taskParams },
            returns: taskView,
            handler: ({ params, actor }) => tasks.get(params.id, actor)
        }),
        stream({
            path: '/api/tasks/{id}/events',
            id: 'tasks.follow',
            access: 'authenticated',
            summary: 'Follow a task: `progress`, `log` and at last `end`',
            description:
                'The log is for those who have the permission of the route that started the task. `Last-Event-ID` goes on after that line',
            validate: { params: taskParams },
            events: taskEvents,
            ui: { role: 'log' },
            handler: ({ params, actor, lastEventId, signal }) =>
                tasks.events(params.id, actor, { from: lineAfter(lastEventId), signal })
        }),
        json({
            method: 'DELETE',
            path: '/api/tasks/{id}',
            id: 'tasks.cancel',
            access: 'authenticated',
            summary: 'Cancel a task',
            description:
                'Answers the task as it is after a short wait; work that cannot stop at once ends later. A task that is over stays as it is',
            validate: { params: taskParams },
            returns: taskView,
            audit: { action: 'cancel', resource: 'tasks' },
            handler: (request) => tasks.cancel(request.params.id, request)
        })
    ];
}

function lineAfter(lastEventId: string | null): number {
    return lastEventId !== null && /^\d{1,15}$/.test(lastEventId) ? Number(lastEventId) + 1 : 0;
}
