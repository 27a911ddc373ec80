import { joi } from '@portico/sdk';

/** Path of one revision. */
export const revisionParams = joi.object({
    n: joi.number().integer().min(1).max(Number.MAX_SAFE_INTEGER).required()
});

/** Query of the list of revisions. */
export const revisionsQuery = joi.object({
    limit: joi.number().integer().min(1).max(200).default(50),
    cursor: joi.string().max(64).description('As in the `Link` header of the page before')
});

/** Query of the log stream. */
export const logsQuery = joi.object({
    lines: joi
        .number()
        .integer()
        .min(0)
        .max(10_000)
        .default(100)
        .description('How many of the last lines to begin with'),
    follow: joi
        .boolean()
        .default(false)
        .description('Goes on with each further line; otherwise the stream ends')
});

const state = joi.string().valid('missing', 'stopped', 'running', 'failing');
const time = joi.string().isoDate();
const config = joi.record(joi.any().allow(null));

/** A configuration of the engine; null when it runs none. */
export const configSchema = joi.typed<unknown>(
    // No schema has the type `unknown`, which the handlers return.
    config.allow(null) as never
);

/** The data of `GET /api/proxyengine/status`. */
export const statusSchema = joi.object({
    state: state.required(),
    running: joi.boolean().required(),
    version: joi.string().allow(null).required(),
    pid: joi.number().integer().allow(null).required(),
    startedAt: time.allow(null).required(),
    uptimeSeconds: joi.number().integer().allow(null).required(),
    message: joi
        .string()
        .allow(null, '')
        .required()
        .description('Why it does not run, or does not serve what it should'),
    wanted: joi
        .string()
        .valid('running', 'stopped')
        .required()
        .description('What start or stop asked for last'),
    autoReload: joi.boolean().required(),
    drifted: joi
        .boolean()
        .required()
        .description('The engine runs another configuration than the panel gave it, as of the last check'),
    configuration: joi
        .object({
            wanted: joi
                .string()
                .required()
                .description('SHA-256 of the configuration with everything that waits'),
            running: joi
                .string()
                .allow(null)
                .required()
                .description('SHA-256 of what the engine runs; null when it runs nothing or does not answer')
        })
        .required(),
    revision: joi.number().integer().required(),
    appliedRevision: joi.number().integer().required(),
    pending: joi.number().integer().required().description('Revisions that the engine does not serve yet'),
    pendingHosts: joi.number().integer().required(),
    refused: joi
        .array()
        .items(
            joi.object({ id: joi.number().integer().required(), message: joi.string().allow('').required() })
        )
        .required()
        .description('Hosts that the engine does not take, and what it says'),
    lastApply: joi
        .object({
            at: time.required(),
            durationMs: joi.number().required(),
            changes: joi.number().integer().required(),
            reloaded: joi.boolean().required(),
            result: joi.string().valid('applied', 'rejected', 'failed').required(),
            message: joi.string().allow(null, '').required()
        })
        .allow(null)
        .required(),
    loads: joi.number().integer().required().description('Configurations loaded since the panel started')
});

/** The answer of every control. */
export const controlSchema = joi.object({
    changed: joi.boolean().required().description('false: it was so already'),
    state: state.required(),
    pending: joi.number().integer().required(),
    error: joi.string().allow(null, '').required().description('Why some rows are still not served')
});

/** The data of `GET /api/proxyengine/drift`. */
export const driftSchema = joi.object({
    drifted: joi.boolean().required(),
    config: joi
        .array()
        .items(
            joi.object({
                path: joi.string().allow('').required().description('JSON pointer'),
                wanted: joi.any().allow(null).description('Absent when there should be nothing'),
                running: joi.any().allow(null).description('Absent when there is nothing')
            })
        )
        .required(),
    table: joi
        .array()
        .items(
            joi.object({
                name: joi.string().allow('').required(),
                wanted: joi.string().allow(null).required(),
                running: joi.string().allow(null).required()
            })
        )
        .required(),
    more: joi.boolean().required().description('There are more differences than are told')
});

const summary = {
    number: joi.number().integer().required(),
    at: time.required(),
    applied: joi.boolean().required(),
    reloaded: joi.boolean().required(),
    hash: joi.string().required().description('SHA-256 over configuration and table'),
    by: joi
        .array()
        .items(
            joi.object({
                id: joi.number().integer().allow(null).required(),
                username: joi.string().allow(null, '').required(),
                tokenId: joi.number().integer().allow(null).required(),
                plugin: joi.string().allow(null, '').required(),
                requestId: joi.string().allow(null, '').required()
            })
        )
        .required(),
    changed: joi.number().integer().required().description('How many hosts it changed')
};

/** A page of revisions. */
export const revisionListSchema = joi.array().items(joi.object(summary));

/** The data of one revision, with every change that it made. */
export const revisionSchema = joi.object({
    ...summary,
    changes: joi
        .array()
        .items(
            joi.object({
                id: joi.number().integer().required(),
                before: config.allow(null).required(),
                after: config.allow(null).required()
            })
        )
        .required(),
    hosts: joi.array().items(config).required().description('Every host as it was'),
    settings: config.required().description("The engine's settings as they were")
});

/** The answer of a restore. */
export const restoreSchema = joi.object({
    revision: joi.number().integer().required().description('The new revision'),
    applied: joi.boolean().required(),
    reload: joi.boolean().required(),
    changed: joi.number().integer().required().description('How many hosts it changed')
});

/** The data of `GET /api/proxyengine/upstreams`: one item for each address that the engine knows. */
export const upstreamsSchema = joi.array().items(
    joi.object({
        address: joi.string().allow('').required(),
        requests: joi.number().integer().required().description('In flight now'),
        fails: joi.number().integer().required().description('Failures remembered by passive checks')
    })
);
