/** The shapes that answers of several routes share. */
import { joi } from '@portico/sdk';

import { containerStates } from '../containers/view.ts';

/** Colours of the states of a container or a stack. */
const tones = {
    running: 'good',
    created: 'neutral',
    paused: 'warning',
    restarting: 'busy',
    exited: 'neutral',
    dead: 'bad',
    degraded: 'warning',
    starting: 'busy',
    stopped: 'neutral',
    absent: 'bad'
} as const;
const healthTones = { none: 'neutral', starting: 'busy', healthy: 'good', unhealthy: 'bad' } as const;

/** What the policy says of one value. */
export const findingSchema = joi.object({
    rule: joi.string().required().label('Rule'),
    level: joi.choice({ refused: 'Refused', consent: 'Needs consent' }).required().label('Level'),
    service: joi.string().allow(null).required().label('Service'),
    detail: joi.string().allow('').required().label('Value'),
    excepted: joi.boolean().required().label('An exception allows it')
});
const nullableText = joi.string().allow(null).required();
const nullableNumber = joi.number().allow(null).required();

const portSchema = joi.object({
    containerPort: joi.number().integer().required().label('Port in the container'),
    hostPort: joi.number().integer().required().label('Port of the machine'),
    hostIp: joi.string().required().label('Address'),
    protocol: joi.string().required().label('Protocol')
});

/** A container in a list. */
export const containerSchema = joi.object({
    id: joi
        .string()
        .required()
        .label('Id')
        .meta({ ui: { column: false } }),
    name: joi
        .string()
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } }),
    image: joi
        .string()
        .required()
        .label('Image')
        .meta({ ui: { column: 2 } }),
    imageId: joi
        .string()
        .allow('')
        .required()
        .label('Id of the image')
        .meta({ ui: { column: false } }),
    state: joi
        .valid(...containerStates)
        .required()
        .label('State')
        .meta({ ui: { column: 3, tones } }),
    health: joi
        .valid('none', 'starting', 'healthy', 'unhealthy')
        .required()
        .label('Check')
        .meta({ ui: { column: 4, tones: healthTones } }),
    createdAt: joi.string().isoDate().required().label('Made'),
    ports: joi.array().items(portSchema).required().label('Ports'),
    mounts: joi
        .array()
        .items(
            joi.object({
                type: joi.string().required().label('Type'),
                source: nullableText.label('Source'),
                target: joi.string().required().label('Target'),
                readOnly: joi.boolean().required().label('Only reads')
            })
        )
        .required()
        .label('Mounts'),
    networks: joi
        .array()
        .items(
            joi.object({
                name: joi.string().required().label('Network'),
                address: nullableText.label('Address')
            })
        )
        .required()
        .label('Networks'),
    stack: nullableText.label('Stack').meta({ ui: { column: 5 } }),
    service: nullableText.label('Service'),
    owner: nullableText.label('Made by the plugin')
});

/** One container with everything that is shown of it alone. */
export const containerDetailSchema = containerSchema.keys({
    env: joi
        .record(joi.object({ set: joi.boolean().required() }))
        .required()
        .label('Variables'),
    limits: joi
        .object({
            memoryBytes: nullableNumber.label('Memory').unit('byte'),
            cpus: nullableNumber.label('Processors'),
            pids: nullableNumber.label('Processes')
        })
        .required()
        .label('Limits'),
    restart: joi.string().required().label('Restart'),
    restarts: joi.number().integer().required().label('Restarts'),
    exitCode: nullableNumber.label('Exit code'),
    startedAt: nullableText.label('Started'),
    finishedAt: nullableText.label('Ended'),
    findings: joi.array().items(findingSchema).required().label('Policy')
});

/** How a stack updates by itself. */
export const autoUpdate = joi
    .object({
        mode: joi
            .choice({ off: 'Never', check: 'Say that there are newer images', apply: 'Take newer images' })
            .required()
            .label('Newer images'),
        everyHours: joi.number().integer().min(1).max(720).default(24).label('Every').unit('hour')
    })
    .label('Automatic update');

/** A stack as the API shows it. */
export const stackSchema = joi.object({
    name: joi
        .string()
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } }),
    description: joi.string().allow('').required().label('Description'),
    owner: nullableText.label('Made by the plugin'),
    managed: joi
        .boolean()
        .required()
        .label('Managed here')
        .meta({ ui: { column: 3 } }),
    state: joi
        .valid('running', 'degraded', 'starting', 'stopped', 'absent')
        .required()
        .label('State')
        .meta({ ui: { column: 2, tones } }),
    revision: nullableNumber.label('Revision').meta({ ui: { column: 4 } }),
    version: joi
        .number()
        .integer()
        .required()
        .label('Version')
        .meta({ ui: { column: false } }),
    services: joi
        .array()
        .items(
            joi.object({
                name: joi.string().allow('').required().label('Service'),
                image: joi.string().required().label('Image'),
                digest: nullableText.label('Digest'),
                state: joi.string().required().label('State'),
                health: joi.string().required().label('Check'),
                containers: joi.array().items(joi.string()).required().label('Containers'),
                ports: joi.array().items(portSchema).required().label('Ports')
            })
        )
        .required()
        .label('Services'),
    autoUpdate: autoUpdate.required(),
    hook: joi.boolean().required().label('Has a hook'),
    findings: joi.array().items(findingSchema).required().label('Policy'),
    createdAt: nullableText.label('Made'),
    updatedAt: nullableText.label('Changed')
});
