/** A task in answers. */
import { joi, type TaskView as BareView } from '@portico/sdk';

import type { RecordedActor } from '../../../platform/call.ts';

/** The states of a task. */
export const taskStates = ['queued', 'running', 'succeeded', 'failed', 'cancelled'] as const;

/** A task, as every answer of the panel shows it. */
export const taskView = joi.object({
    id: joi.number().integer().required(),
    kind: joi.string().required(),
    title: joi.string().allow('').required(),
    state: joi
        .string()
        .valid(...taskStates)
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

/** A task as the API shows it. */
export interface TaskView extends BareView {
    readonly title: string;
    readonly createdAt: string;
    /** Who started it; null for a task that an older version of the panel began. */
    readonly actor: RecordedActor | null;
    /** Id of the route that started it, as in the OpenAPI document; null where it was none. */
    readonly route: string | null;
    /** Increases with each change of the state. */
    readonly version: number;
}
