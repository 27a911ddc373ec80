/** The document of one app: what it is, what it asks for, and the compose text that runs it. */
import { joi, type Value } from '@portico/sdk';
import semver from 'semver';

import { fail } from '../errors.ts';
import { architectures, digest, firstFault, id, texts, version } from './fields.ts';
import { type FormField, formField } from './form.ts';

/** Most bytes of a document. */
export const mostDocumentBytes = 1_048_576;

/** Limits of one service. */
export const serviceLimits = joi.object({
    memoryBytes: joi
        .number()
        .integer()
        .min(6_291_456)
        .max(1_125_899_906_842_624)
        .label('Memory')
        .unit('byte'),
    cpus: joi.number().min(0.01).max(1_024).label('Processors')
});
/** The name of a service in a compose file. */
export const serviceName = joi
    .string()
    .pattern(/^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$/, 'a service of the compose file');

const documentSchema = joi.object({
    id: id.required(),
    version: version.required(),
    title: texts(200).required(),
    tagline: texts(500).required(),
    description: texts(100_000).required(),
    changelog: joi
        .array()
        .items(joi.object({ version: version.required(), text: texts(20_000).required() }))
        .max(200)
        .default([]),
    website: joi
        .string()
        .uri({ scheme: ['http', 'https'] })
        .max(500)
        .allow('', null),
    license: joi.string().allow('', null).max(100),
    categories: joi.array().items(id).max(20).default([]),
    architectures: architectures.default([]),
    form: joi.array().items(formField).max(200).default([]),
    compose: joi.string().max(mostDocumentBytes).required(),
    images: joi.typed<Readonly<Record<string, string>>>(
        joi
            .object({})
            .pattern(/^.{1,500}$/, digest)
            .max(100)
            .required()
    ),
    main: joi
        .object({
            service: serviceName.required(),
            port: joi.number().integer().min(1).max(65_535).required(),
            path: joi
                .string()
                .max(500)
                .pattern(/^\/[\x21-\x7e]*$/, 'a path')
                .default('/'),
            expectStatus: joi.number().integer().min(1).max(599).default(2)
        })
        .required(),
    limits: joi.record(serviceLimits),
    backup: joi.object({
        volumes: joi.array().items(joi.string().max(255)).max(100),
        stop: joi.boolean().default(true)
    }),
    from: joi.string().max(200)
});

/** The document of an app. */
export type AppDocument = Value<typeof documentSchema>;

/**
 * Reads a document as it was served.
 *
 * @throws INDEX_INVALID 42250 with the first fault
 */
export function readAppDocument(bytes: string): AppDocument {
    let data: unknown;
    try {
        data = JSON.parse(bytes);
    } catch {
        throw fail.INDEX_INVALID({ why: 'a document is no JSON' });
    }
    return checkAppDocument(data);
}

/** Checks what should be a document. @throws INDEX_INVALID 42250 with the first fault */
export function checkAppDocument(data: unknown): AppDocument {
    const { error, value } = documentSchema.required().validate(data, { stripUnknown: true });
    if (error !== undefined) {
        throw fail.INDEX_INVALID({ why: firstFault(error) });
    }
    const document = value as AppDocument;
    const twice = document.form.find(
        ({ name }, at) => document.form.findIndex((each) => each.name === name) !== at
    );
    if (twice !== undefined) {
        throw fail.INDEX_INVALID({ why: `the form of ${document.id} has ${twice.name} twice` });
    }
    if (document.from !== undefined && semver.validRange(document.from) === null) {
        throw fail.INDEX_INVALID({ why: `"from" of ${document.id} is no range of versions` });
    }
    document.form.forEach((field) => checkField(document.id, field));
    return document;
}

function checkField(app: string, { name, type, regex, min = 1, default: given }: FormField): void {
    if (type === 'random' && (given !== undefined || min > 1_024)) {
        throw fail.INDEX_INVALID({
            why: `the random field ${name} of ${app} has a default, or more than 1024 characters`
        });
    }
    if (regex !== undefined) {
        try {
            new RegExp(regex);
        } catch {
            throw fail.INDEX_INVALID({ why: `the pattern of ${name} of ${app} is none` });
        }
    }
}
