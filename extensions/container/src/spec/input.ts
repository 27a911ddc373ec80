/** The spec as a request gives it. */
import { isIP } from 'node:net';
import { posix } from 'node:path';

import { errors, joi, type Value } from '@portico/sdk';

import { isReference } from '../images/reference.ts';
import { emptySpec, isReservedLabel, mergeLimits, type Mount, type Port, type Spec } from './spec.ts';

const texts = () => joi.array().items(joi.string().allow('').max(32_768)).max(1_000);
const short = () => joi.string().max(200);
const sized = () => joi.number().integer().min(1).max(Number.MAX_SAFE_INTEGER);
const seconds = () => joi.number().min(0).max(86_400);
const advanced = { ui: { advanced: true } } as const;
const imageWords = 'the name of an image, such as nginx:1.27';

/** The name of an image. */
export const imageName = () =>
    joi.typed<string>(
        joi
            .string()
            .max(255)
            .custom(
                (value: string, { error }) =>
                    isReference(value) ? value : error('string.pattern.name', { name: imageWords }),
                'name of an image'
            )
            .required()
            .label('Image')
    );

const port = joi.object({
    containerPort: joi.number().integer().min(1).max(65_535).required().label('Port in the container'),
    hostPort: joi
        .number()
        .integer()
        .min(1)
        .max(65_535)
        .allow(null)
        .label('Port of the machine')
        .description('Default: a free one'),
    hostIp: joi.typed<string>(
        joi
            .string()
            .custom(
                (value: string, { error }) =>
                    isIP(value) === 0 ? error('string.pattern.name', { name: 'an IP address' }) : value,
                'an address'
            )
            .default('127.0.0.1')
            .label('Address')
    ),
    protocol: joi.choice({ tcp: 'TCP', udp: 'UDP', sctp: 'SCTP' }).default('tcp').label('Protocol')
});
const mount = joi.object({
    type: joi
        .choice({ volume: 'Volume', bind: 'Folder of the machine', tmpfs: 'In memory' })
        .required()
        .label('Type'),
    source: joi
        .string()
        .max(4_096)
        .allow(null)
        .label('Source')
        .description('Name of a volume, or an absolute path'),
    target: joi
        .string()
        .max(4_096)
        .pattern(/^\/[^\0:]+$/, 'an absolute path')
        .required()
        .label('Target'),
    readOnly: joi.boolean().default(false).label('Only reads')
});

const fields = {
    command: texts()
        .allow(null)
        .label('Command')
        .meta({ ui: { widget: 'lines' } }),
    entrypoint: texts().allow(null).label('Entry point').meta(advanced),
    env: joi
        .record(
            joi.alternatives(
                joi.string().allow('').max(131_072),
                joi.object({ set: joi.valid(true).required().label('Keep the value') })
            )
        )
        .label('Variables')
        .description('`{ "set": true }` keeps the value that is there'),
    ports: joi
        .array()
        .items(port)
        .max(500)
        .label('Ports')
        .meta({ ui: { group: 'Reach' } }),
    mounts: joi.array().items(mount).max(200).label('Mounts'),
    networks: joi
        .array()
        .items(
            joi.object({
                name: short().required().label('Network'),
                aliases: joi.array().items(short().label('Alias')).max(50).default([]).label('Further names')
            })
        )
        .max(50)
        .label('Networks')
        .meta({ ui: { group: 'Reach' } }),
    restart: joi
        .choice({
            no: 'Never',
            always: 'Always',
            'unless-stopped': 'Unless it was stopped',
            'on-failure': 'When it failed'
        })
        .label('Restart'),
    limits: joi
        .object({
            memoryBytes: sized().min(6_291_456).allow(null).label('Memory').unit('byte'),
            cpus: joi.number().min(0.01).max(1_024).allow(null).label('Processors'),
            pids: sized().allow(null).label('Processes')
        })
        .label('Limits'),
    healthcheck: joi
        .object({
            test: texts().required().label('Test').description('Begins with NONE, CMD or CMD-SHELL'),
            intervalSeconds: seconds().default(0).label('Interval').unit('second'),
            timeoutSeconds: seconds().default(0).label('Time limit').unit('second'),
            retries: joi.number().integer().min(0).max(1_000).default(0).label('Retries'),
            startSeconds: seconds().default(0).label('Time to start').unit('second')
        })
        .allow(null)
        .label('Health check')
        .meta(advanced),
    labels: joi.record(joi.string().allow('').max(10_000)).label('Labels').meta(advanced),
    user: short().allow(null).label('User').meta(advanced),
    workdir: joi.string().max(4_096).allow(null).label('Working folder').meta(advanced),
    init: joi.boolean().label('With an init process').meta(advanced),
    readOnly: joi.boolean().label('Read-only root').meta(advanced),
    stopSeconds: joi
        .number()
        .integer()
        .min(0)
        .max(3_600)
        .allow(null)
        .label('Time to stop')
        .unit('second')
        .meta(advanced),
    capAdd: texts().label('Added capabilities').meta(advanced),
    capDrop: texts().label('Dropped capabilities').meta(advanced),
    devices: texts().label('Devices').meta(advanced),
    privileged: joi.boolean().label('Privileged').meta(advanced),
    securityOpt: texts().label('Security options').meta(advanced),
    sysctls: joi.record(joi.string().max(1_000)).label('Settings of the kernel').meta(advanced),
    ulimits: joi
        .record(
            joi.object({
                soft: joi.number().integer().min(-1).required().label('Soft limit'),
                hard: joi.number().integer().min(-1).required().label('Hard limit')
            })
        )
        .label('Limits of the kernel')
        .meta(advanced),
    networkMode: short().allow('').label('Network mode').meta(advanced),
    pidMode: short().allow('').label('Process mode').meta(advanced),
    ipcMode: short().allow('').label('Memory mode').meta(advanced),
    logging: joi
        .object({
            driver: joi
                .choice({
                    'json-file': 'JSON files',
                    local: 'Files of the engine',
                    journald: 'Journal',
                    'k8s-file': 'Files of Podman',
                    none: 'No log'
                })
                .required()
                .label('Driver'),
            options: joi
                .object({
                    'max-size': joi.string().max(20).label('Size of a file'),
                    'max-file': joi.string().max(20).label('Files')
                })
                .default({})
                .label('Options')
        })
        .allow(null)
        .label('Log')
        .meta(advanced)
};

/** The fields of a body that makes a container. */
export const newSpecFields = {
    name: joi
        .string()
        .pattern(/^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,127}$/, 'letters, digits, _ . and -')
        .required()
        .label('Name'),
    image: imageName(),
    ...fields
};
/** A change of a container. */
export const changedSpecFields = {
    name: joi
        .string()
        .pattern(/^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,127}$/, 'letters, digits, _ . and -')
        .label('Name'),
    image: joi.typed<string | undefined>(
        joi
            .string()
            .max(255)
            .custom(
                (value: string, { error }) =>
                    isReference(value) ? value : error('string.pattern.name', { name: imageWords }),
                'name of an image'
            )
            .optional()
            .label('Image')
    ),
    ...fields
};
/** A change of a container. */
export const changedSpec = joi.object(changedSpecFields);
/** What a request may say of a spec. */
export type SpecInput = Value<typeof changedSpec>;

/** The fields of {@link SpecInput}, out of a payload that has more. */
export function specInputOf(payload: SpecInput): SpecInput {
    const names = Object.keys(changedSpecFields);
    return Object.fromEntries(Object.entries(payload).filter(([name]) => names.includes(name))) as SpecInput;
}

/** A spec with what a request says in place of what it said. @throws VALIDATION_FAILED 40001 */
export function applyInput(before: Spec, input: SpecInput): Spec {
    const { env, ports, mounts, networks, labels, limits, logging, name, image, ...plain } = input;
    const given = Object.fromEntries(Object.entries(plain).filter(([, value]) => value !== undefined));
    return {
        ...before,
        ...(given as Partial<Spec>),
        name: name ?? before.name,
        image: image ?? before.image,
        ...(env === undefined ? {} : { env: envOf(env, before.env) }),
        ...(ports === undefined
            ? {}
            : { ports: ports.map((each): Port => ({ ...each, hostPort: each.hostPort ?? null })) }),
        ...(mounts === undefined
            ? {}
            : { mounts: mounts.map((each, index) => mountOf(each, index, before)) }),
        ...(networks === undefined
            ? {}
            : { networks: networks.map((each) => ({ ...each, external: false, driver: 'bridge' })) }),
        ...(labels === undefined ? {} : { labels: labelsOf(labels, before) }),
        ...(limits === undefined ? {} : { limits: mergeLimits(before.limits, limits) }),
        ...(logging === undefined
            ? {}
            : {
                  logging:
                      logging === null
                          ? null
                          : {
                                driver: logging.driver,
                                options: Object.fromEntries(
                                    Object.entries(logging.options).filter(([, value]) => value !== undefined)
                                ) as Readonly<Record<string, string>>
                            }
              })
    };
}

/** A new spec. @throws VALIDATION_FAILED 40001 */
export function newSpec(input: SpecInput): Spec {
    return applyInput({ ...emptySpec, restart: 'unless-stopped' }, input);
}

function envOf(
    given: Readonly<Record<string, string | { readonly set: true }>>,
    before: Readonly<Record<string, string>>
): Readonly<Record<string, string>> {
    return Object.fromEntries(
        Object.entries(given).map(([name, value]) => {
            if (!/^[^=\0\s][^=\0]*$/.test(name) || name === '__proto__') {
                throw errors.invalid([{ path: 'env', message: `"${name}" is no name of a variable` }]);
            }
            if (typeof value === 'string') {
                return [name, value];
            }
            const kept = Object.hasOwn(before, name) ? before[name] : undefined;
            if (kept === undefined) {
                throw errors.invalid([{ path: `env.${name}`, message: 'There is no value to keep' }]);
            }
            return [name, kept];
        })
    );
}

function mountOf(
    { type, source, target, readOnly }: NonNullable<SpecInput['mounts']>[number],
    index: number,
    before: Spec
): Mount {
    const path = `mounts.${index}.source`;
    if (type === 'bind' && (!source?.startsWith('/') || source.includes('\0'))) {
        throw errors.invalid([{ path, message: 'The source of a bind is an absolute path' }]);
    }
    if (type === 'volume' && source && !/^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,254}$/.test(source)) {
        throw errors.invalid([{ path, message: 'This is no name of a volume' }]);
    }
    const same = before.mounts.find(
        (each) => each.type === type && each.target === target && each.source === source
    );
    return {
        type,
        // The engine gets the path that the policy judges, without `..`.
        source: type === 'tmpfs' || !source ? null : type === 'bind' ? posix.normalize(source) : source,
        written: same?.written ?? (type === 'tmpfs' ? null : (source ?? null)),
        target,
        readOnly,
        propagation: same?.propagation ?? '',
        tmpfsBytes: same?.tmpfsBytes ?? null,
        volume: type === 'volume' ? { driver: 'local', options: {}, external: false } : null
    };
}

/** Labels of Compose and of the panel stay as they are, and cannot be given. */
function labelsOf(given: Readonly<Record<string, string>>, before: Spec): Readonly<Record<string, string>> {
    const reserved = Object.keys(given).find(
        (name) => isReservedLabel(name) && before.labels[name] !== given[name]
    );
    if (reserved !== undefined) {
        throw errors.invalid([
            { path: `labels.${reserved}`, message: 'This label is set by the panel alone' }
        ]);
    }
    return {
        ...Object.fromEntries(Object.entries(before.labels).filter(([name]) => isReservedLabel(name))),
        ...given
    };
}
