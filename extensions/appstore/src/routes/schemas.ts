/** The shapes of answers, and the fields that requests share. */
import { joi } from '@portico/sdk';

import { serviceLimits, serviceName } from '../catalogue/app-document.ts';
import { formField } from '../catalogue/form.ts';

const column = (place: number) => ({ ui: { column: place } });
const strings = (label: string) => joi.array().items(joi.string()).required().label(label);

/** The language of texts. */
export const lang = joi
    .string()
    .pattern(/^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$/, 'a language such as en or pt-BR')
    .label('Language')
    .description('Default: that of the settings');

/** The name of a source. */
export const sourceName = joi
    .string()
    .pattern(/^[a-z0-9][a-z0-9-]{0,39}$/, 'small letters, digits and -')
    .label('Source')
    .meta({ ui: { ref: 'appstore.sources' } });

/** The name of an installed app. */
export const appName = joi
    .string()
    .pattern(/^[a-z0-9][a-z0-9-]{0,39}$/, 'small letters, digits and -')
    .label('Name');

/** Path parameters of an installed app. */
export const installedParams = joi.object({
    name: appName.required().meta({ ui: { ref: 'appstore.installed' } })
});

/** Path parameters of an app. */
export const appParams = joi.object({
    source: sourceName.required(),
    app: joi.string().max(63).required().label('App')
});

/** Consent to what a plan shows. */
export const consent = joi
    .string()
    .max(100)
    .label('Consent')
    .description('The `consent` of the plan')
    .meta({ ui: { widget: 'hidden' } });

/** The field of an install that limits memory and processors, by the name of the service. */
export const limits = joi
    .record(serviceLimits)
    .label('Limits')
    .description('By service')
    .meta({ ui: { advanced: true } });

/** A port that is published beyond this machine. */
export const published = joi.object({
    service: serviceName.required().label('Service'),
    containerPort: joi.number().integer().min(1).max(65_535).required().label('Port inside'),
    hostIp: joi.string().ip({ cidr: 'forbidden' }).required().label('Address'),
    hostPort: joi.number().integer().min(1).max(65_535).required().label('Port')
});

/** The field of an install that publishes ports beyond the proxy. */
export const publish = joi
    .array()
    .items(published)
    .max(100)
    .label('Published ports')
    .description('Beyond 127.0.0.1, where the proxy finds the app')
    .meta({ ui: { advanced: true } });

/** When an app updates by itself. */
export const autoUpdate = joi
    .choice({
        off: 'Never',
        patch: 'Small fixes',
        minor: 'Everything but new main versions',
        all: 'Always'
    })
    .label('Automatic updates');

/** An app of the catalogue. */
export const appFields = {
    key: joi
        .string()
        .required()
        .label('Key')
        .meta({ ui: { column: false } }),
    source: joi.string().required().label('Source').meta(column(4)),
    id: joi
        .string()
        .required()
        .label('App')
        .meta({ ui: { column: false } }),
    title: joi.string().allow('').required().label('Title').meta(column(1)),
    tagline: joi.string().allow('').required().label('What it is').meta(column(2)),
    version: joi.string().required().label('Version').meta(column(3)),
    categories: strings('Categories').meta({ ui: { column: false } }),
    architectures: strings('Architectures').meta({ ui: { column: false } }),
    website: joi
        .string()
        .allow(null)
        .required()
        .label('Website')
        .meta({ ui: { column: false } }),
    icon: joi.boolean().required().label('Has an icon').meta(column(8)),
    signed: joi.boolean().required().label('Signed').meta(column(5)),
    available: joi.boolean().required().label('Can be installed').meta(column(6)),
    why: joi
        .string()
        .allow(null)
        .required()
        .label('Why not')
        .meta({ ui: { column: false } }),
    installed: strings('Installed as').meta(column(7))
};

const finding = joi.object({
    rule: joi.string().required().label('Rule'),
    level: joi.valid('refused', 'consent').required().label('Level'),
    service: joi.string().allow(null).required().label('Service'),
    detail: joi.string().allow('').required().label('Detail'),
    excepted: joi.boolean().required().label('Excepted')
});
const change = joi.object({ added: strings('New'), removed: strings('Gone') });

/** What came and what went of an exposure. */
export const difference = joi.object({
    images: change.required().label('Images'),
    ports: change.required().label('Ports'),
    mounts: change.required().label('Mounts'),
    findings: change.required().label('Policy')
});

/** A plan as the API shows it. */
export const planSchema = joi.object({
    images: joi
        .array()
        .items(
            joi.object({
                service: joi.string().required().label('Service'),
                image: joi.string().required().label('Image'),
                digest: joi.string().allow(null).required().label('Digest')
            })
        )
        .required()
        .label('Images'),
    ports: joi
        .array()
        .items(
            joi.object({
                service: joi.string().required().label('Service'),
                containerPort: joi.number().required().label('Port inside'),
                hostIp: joi.string().allow('').required().label('Address'),
                hostPort: joi.number().allow(null).required().label('Port')
            })
        )
        .required()
        .label('Ports'),
    mounts: joi
        .array()
        .items(
            joi.object({
                service: joi.string().required().label('Service'),
                type: joi.string().required().label('Type'),
                source: joi.string().allow(null, '').required().label('Source'),
                target: joi.string().required().label('Target'),
                readOnly: joi.boolean().required().label('Read only')
            })
        )
        .required()
        .label('Mounts'),
    volumes: strings('Volumes'),
    findings: joi.array().items(finding).required().label('Policy'),
    difference: difference.required().label('What is new'),
    memoryBytes: joi.number().allow(null).required().label('Memory').unit('byte'),
    signed: joi.boolean().required().label('Signed'),
    warnings: strings('Warnings'),
    consent: joi.string().allow(null).required().label('Consent')
});

/** One app, with its form and its plan. */
export const wholeApp = joi.object({
    ...appFields,
    description: joi
        .object({
            markdown: joi.string().allow('').required().label('Text').meta({ media: 'text/markdown' }),
            html: joi.string().allow('').required().label('HTML').meta({ media: 'text/html' })
        })
        .required()
        .label('Description'),
    form: joi.array().items(formField).required().label('Form'),
    changelog: joi
        .array()
        .items(
            joi.object({
                version: joi.string().required().label('Version'),
                html: joi.string().allow('').required().label('Changes').meta({ media: 'text/html' })
            })
        )
        .required()
        .label('Changes'),
    plan: joi.typed<unknown>(planSchema.allow(null).required()).label('Plan')
});

/** An installed app as the API shows it. */
export const installedSchema = joi.object({
    name: joi.string().required().label('Name').meta(column(1)),
    key: joi.string().required().label('App').meta(column(2)),
    source: joi
        .string()
        .required()
        .label('Source')
        .meta({ ui: { column: false } }),
    app: joi
        .string()
        .required()
        .label('Id')
        .meta({ ui: { column: false } }),
    keyId: joi
        .string()
        .allow(null)
        .required()
        .label('Key')
        .meta({ ui: { column: false } }),
    version: joi.string().allow(null).required().label('Version').meta(column(3)),
    revision: joi
        .number()
        .required()
        .label('Revision')
        .meta({ ui: { column: false } }),
    state: joi
        .choice({
            installing: 'Being installed',
            running: 'Runs',
            degraded: 'Runs in part',
            stopped: 'Stopped',
            updating: 'Being changed',
            failed: 'Failed'
        })
        .required()
        .label('State')
        .meta({
            ui: {
                column: 4,
                tones: {
                    installing: 'busy',
                    running: 'good',
                    degraded: 'warning',
                    stopped: 'neutral',
                    updating: 'busy',
                    failed: 'bad'
                }
            }
        }),
    address: joi
        .string()
        .required()
        .label('Address')
        .meta({ ui: { column: false } }),
    domain: joi
        .string()
        .allow(null)
        .required()
        .label('Domain')
        .meta({ ui: { column: false } }),
    hostId: joi
        .number()
        .allow(null)
        .required()
        .label('Host')
        .meta({ ui: { column: false, ref: 'hosts.list' } }),
    url: joi.string().required().label('Found at').meta(column(5)),
    stack: joi
        .string()
        .required()
        .label('Stack')
        .meta({ ui: { column: false, ref: 'container.stacks' } }),
    values: joi
        .record(joi.alternatives(joi.string().allow(''), joi.object({ set: joi.boolean().required() })))
        .required()
        .label('Values')
        .meta({ ui: { column: false } }),
    publish: joi
        .array()
        .items(published)
        .required()
        .label('Published ports')
        .meta({ ui: { column: false } }),
    limits: joi
        .record(serviceLimits)
        .required()
        .label('Limits')
        .meta({ ui: { column: false } }),
    digests: joi
        .record(joi.string())
        .required()
        .label('Digests')
        .meta({ ui: { column: false } }),
    autoUpdate: autoUpdate.required().meta({ ui: { column: false } }),
    update: joi
        .string()
        .allow(null)
        .required()
        .label('Update')
        .description('The version that waits')
        .meta(column(6)),
    lastError: joi
        .string()
        .allow(null)
        .required()
        .label('Last fault')
        .meta({ ui: { column: false } })
});

/** A source of apps as the API shows it. */
export const sourceSchema = joi.object({
    name: joi.string().required().label('Name').meta(column(1)),
    version: joi
        .number()
        .required()
        .label('Version')
        .meta({ ui: { column: false } }),
    kind: joi
        .choice({
            portico: 'Signed catalogue',
            runtipi: 'Runtipi',
            casaos: 'CasaOS',
            local: 'Imported by hand'
        })
        .required()
        .label('Kind')
        .meta(column(2)),
    url: joi.string().required().label('Address').meta(column(3)),
    publicKey: joi
        .string()
        .allow(null)
        .required()
        .label('Public key')
        .meta({ ui: { column: false } }),
    branch: joi
        .string()
        .allow(null)
        .required()
        .label('Branch')
        .meta({ ui: { column: false } }),
    acceptUnsigned: joi
        .boolean()
        .required()
        .label('Unsigned apps')
        .meta({ ui: { column: false } }),
    enabled: joi
        .boolean()
        .required()
        .label('Enabled')
        .meta({ ui: { column: false } }),
    signed: joi.boolean().required().label('Signed').meta(column(4)),
    keyId: joi
        .string()
        .allow(null)
        .required()
        .label('Key')
        .meta({ ui: { column: false } }),
    state: joi
        .choice({ pending: 'Not synced yet', ready: 'Ready', expired: 'Expired', error: 'Failed' })
        .required()
        .label('State')
        .meta({
            ui: { column: 5, tones: { pending: 'neutral', ready: 'good', expired: 'bad', error: 'bad' } }
        }),
    sequence: joi
        .number()
        .allow(null)
        .required()
        .label('Sequence')
        .meta({ ui: { column: false } }),
    commit: joi
        .string()
        .allow(null)
        .required()
        .label('Commit')
        .meta({ ui: { column: false } }),
    expiresAt: joi
        .string()
        .isoDate()
        .allow(null)
        .required()
        .label('Expires')
        .meta({ ui: { column: false } }),
    apps: joi.number().required().label('Apps').meta(column(6)),
    lastSyncAt: joi.string().isoDate().allow(null).required().label('Last sync').meta(column(7)),
    lastError: joi
        .string()
        .allow(null)
        .required()
        .label('Last fault')
        .meta({ ui: { column: false } })
});
