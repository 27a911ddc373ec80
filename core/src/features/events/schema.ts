/** The wire shape of `GET /api/events`. */
import { type EventOf, joi } from '@portico/sdk';

/** What the listeners choose from. */
export const topics = [
    'hosts',
    'certificates',
    'dns-providers',
    'engine',
    'settings',
    'users',
    'tasks',
    'plugins',
    'routes',
    'alerts',
    'audit'
] as const;
/** One of the topics. */
export type Topic = (typeof topics)[number];

const text = () => joi.string().allow('').required();
const id = joi.alternatives(joi.number(), joi.string()).allow(null).required();
/** Something was changed: what it is now is read from its own route. */
const change = joi.object({
    action: text().description('As in the audit log: `create`, `update`, `delete` and others'),
    resource: text(),
    id: id.description('Null where more than one was changed')
});

/** The events by their names, which are the topics, and `gap`. */
export const panelEvents = {
    hosts: change,
    certificates: change,
    'dns-providers': change,
    settings: change,
    users: change,
    engine: joi.object({
        state: joi.string().valid('applied', 'failed').required(),
        revision: joi.number().integer().description('Of the last change that is applied'),
        message: joi.string().allow('')
    }),
    tasks: joi.object({
        id: joi.number().integer().required(),
        kind: text(),
        state: joi.string().valid('queued', 'running', 'succeeded', 'failed', 'cancelled').required(),
        progress: joi.number().min(0).max(1).allow(null).required()
    }),
    plugins: joi.object({ name: text(), state: text(), before: text() }),
    routes: joi.object({ plugin: text().description('Whose routes came or went') }),
    alerts: joi.object({
        event: text(),
        severity: joi.string().valid('info', 'warning', 'error').required(),
        title: text()
    }),
    audit: joi.object({
        action: text(),
        resource: text(),
        id,
        outcome: joi.string().valid('success', 'failure').required(),
        username: joi.string().allow(null).required()
    }),
    gap: joi.object({
        missed: joi
            .number()
            .integer()
            .allow(null)
            .required()
            .description(
                'How many events are no longer kept; null when that is not known: read again what you show'
            )
    })
};

/** One event of the stream `GET /api/events`, told apart by its topic. */
export type PanelEvent = EventOf<typeof panelEvents>;

const topic = `(?:${topics.join('|')})`;

/** The query of the stream. */
export const eventsQuery = joi.object({
    topics: joi
        .string()
        .pattern(new RegExp(`^${topic}(?:,${topic}){0,${topics.length - 1}}$`))
        .description('Topics, with commas between them; default: all that the caller may see')
        .example('hosts,tasks')
});
