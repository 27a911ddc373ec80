/** The schemas of `/api/audit`. */
import { joi } from '@portico/sdk';

const name = joi.string().max(128);

/** What an entry must match, as query parameters. */
export const filterSchema = {
    action: name.description('`create`, `update`, `delete`, `login`, `login_failed`, … as in the entry'),
    resource: name.description('What kind of thing was acted on, as `hosts`'),
    resourceId: joi.string().max(256).description('Which one'),
    actor: name.description('A user name in any case, or a user id'),
    outcome: joi.string().valid('success', 'failure'),
    from: joi.string().isoDate().description('The earliest time, RFC 3339'),
    to: joi.string().isoDate().description('The latest time, RFC 3339'),
    q: joi.string().max(200).description('Text that stands anywhere in the entry; ASCII letters in any case')
};

/** The query of the list. */
export const listQuery = joi.object({
    ...filterSchema,
    limit: joi.number().integer().min(1).max(500).default(50),
    cursor: joi.string().max(64).description('As in the `Link` header of the page before')
});

/** The query of the export. */
export const exportQuery = joi.object(filterSchema);

/** The path of one entry. */
export const idParams = joi.object({
    id: joi.number().integer().min(1).max(Number.MAX_SAFE_INTEGER).required()
});

/** One entry of the audit log as the API shows it. */
export const entrySchema = joi.object({
    id: joi.number().integer().required(),
    at: joi.string().isoDate().required(),
    actor: joi
        .object({
            id: joi.number().integer().allow(null).required(),
            username: joi.string().allow(null, '').required(),
            tokenId: joi.number().integer().allow(null).required().description('The API token that was used'),
            mandateId: joi
                .number()
                .integer()
                .description('The mandate by which the plugin acted; left out where there was none'),
            plugin: joi
                .string()
                .allow(null, '')
                .required()
                .description('The plugin that acted for the user, or by itself')
        })
        .required(),
    action: joi.string().allow('').required(),
    resource: joi.string().allow('').required(),
    resourceId: joi.alternatives(joi.number().integer(), joi.string().allow('')).allow(null).required(),
    outcome: joi.string().valid('success', 'failure').required(),
    status: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .description('HTTP status of the answer; null for the work of the panel itself'),
    code: joi.number().integer().required(),
    count: joi.number().integer().required().description('How many equal refusals it stands for'),
    ip: joi.string().allow(null, '').required(),
    userAgent: joi.string().allow(null, '').required(),
    requestId: joi.string().allow(null, '').required(),
    changes: joi
        .record(joi.any().allow(null))
        .allow(null)
        .required()
        .description(
            '`before` and `after`, the fields that changed; `truncated` when something was left out'
        ),
    hash: joi.string().required().description('HMAC-SHA256 over the entry and the hash before it')
});

/** A page of entries. */
export const entryListSchema = joi.array().items(entrySchema);

/** What a verification found. */
export const verificationSchema = joi.object({
    holds: joi.boolean().required(),
    entries: joi.number().integer().required().description('How many entries were checked'),
    first: joi.number().integer().allow(null).required(),
    last: joi.number().integer().allow(null).required(),
    checkpoints: joi.number().integer().required(),
    break: joi
        .object({
            id: joi
                .number()
                .integer()
                .required()
                .description('The first entry that is not as it was written'),
            reason: joi
                .string()
                .valid(
                    'CHANGED',
                    'REMOVED',
                    'TAIL_CUT',
                    'ROLLED_BACK',
                    'HEAD_MISSING',
                    'HEAD_INVALID',
                    'HEAD_STALE',
                    'CHECKPOINT_INVALID',
                    'WRONG_KEY'
                )
                .required(),
            message: joi.string().required()
        })
        .allow(null)
        .required()
});

/** What filters can be set to. */
export const namesSchema = joi.object({
    actions: joi.array().items(joi.string().allow('')).required(),
    resources: joi.array().items(joi.string().allow('')).required()
});
