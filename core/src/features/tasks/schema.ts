/** The schemas of `/api/tasks`. */
import { type EventOf, joi } from '@portico/sdk';

const states = ['queued', 'running', 'succeeded', 'failed', 'cancelled'] as const;

/** The path of one task. */
export const taskParams = joi.object({
    id: joi.number().integer().min(1).max(Number.MAX_SAFE_INTEGER).required()
});

/** The query of the list. */
export const taskQuery = joi.object({
    state: joi.string().valid(...states),
    kind: joi.string().max(128),
    limit: joi.number().integer().min(1).max(500).default(100),
    cursor: joi.string().max(64).description('As in the `Link` header of the page before')
});

/** A task. */
export const taskView = joi.object({
    id: joi.number().integer().required(),
    kind: joi.string().required(),
    title: joi.string().allow('').required(),
    state: joi
        .string()
        .valid(...states)
        .required(),
    progress: joi.number().min(0).max(1).allow(null).required(),
    createdAt: joi.string().isoDate().required(),
    actor: joi
        .object({
            id: joi.number().integer().allow(null).required(),
            username: joi.string().allow(null).required(),
            tokenId: joi.number().integer().allow(null).required(),
            plugin: joi.string().allow(null).required(),
            mandateId: joi.number().integer()
        })
        .allow(null)
        .required()
        .description('Who started it, as in the audit log; null for a task of an older version of the panel'),
    route: joi
        .string()
        .allow(null)
        .required()
        .description('The operation that started it; null where a plugin or the panel did so by itself'),
    startedAt: joi.string().isoDate().allow(null).required(),
    finishedAt: joi.string().isoDate().allow(null).required(),
    result: joi
        .any()
        .required()
        .description(
            'What the work returned; null for those without the permission of the route that started it'
        ),
    error: joi.any().required().description('Why it failed, as `{ code, reason, message, data }`'),
    version: joi.number().integer().required()
});

/** A page of tasks. */
export const taskList = joi.array().items(taskView);

/** The events of a task that is followed. */
export const taskEvents = {
    progress: joi.object({
        state: joi
            .string()
            .valid(...states)
            .required(),
        progress: joi.number().min(0).max(1).allow(null).required()
    }),
    log: joi.object({ line: joi.string().allow('').required() }),
    end: taskView
};

/** One event of a task. */
export type TaskEvent = EventOf<typeof taskEvents>;
