/** The schemas of `/api/tasks`. */
import { type EventOf, joi } from '@portico/sdk';

import { taskStates, taskView } from '../../server/http/answer/task-view.ts';

/** The path of one task. */
export const taskParams = joi.object({
    id: joi.number().integer().min(1).max(Number.MAX_SAFE_INTEGER).required()
});

/** The query of the list. */
export const taskQuery = joi.object({
    state: joi.string().valid(...taskStates),
    kind: joi.string().max(128),
    limit: joi.number().integer().min(1).max(500).default(100),
    cursor: joi.string().max(64).description('As in the `Link` header of the page before')
});

/** A page of tasks. */
export const taskList = joi.array().items(taskView);

/** The events of a task that is followed. */
export const taskEvents = {
    progress: joi.object({
        state: joi
            .string()
            .valid(...taskStates)
            .required(),
        progress: joi.number().min(0).max(1).allow(null).required()
    }),
    log: joi.object({ line: joi.string().allow('').required() }),
    end: taskView
};

/** One event of a task. */
export type TaskEvent = EventOf<typeof taskEvents>;
