/** The wire shape of what an install would do. */
import { joi, type Value } from '@portico/sdk';

const text = () => joi.string().required();
const names = () => joi.array().items(joi.string()).required();
const signature = () =>
    joi
        .string()
        .required()
        .description('`unsigned` where the registry publishes no keys, `uploaded` for an archive');
const record = () => joi.record(joi.any()).required();

/** A package before it is put in place. */
export const installPreview = joi.object({
    plugin: text(),
    package: text(),
    title: text(),
    version: text(),
    from: joi.string().allow(null).required().description('The version that is there; null for none'),
    kind: joi.string().valid('install', 'upgrade', 'rollback').required(),
    integrity: text(),
    signature: signature(),
    provenance: joi.string().allow(null).required().description('Where the registry says that it was built'),
    bytes: joi.number().integer().required().description('Size of its files, with what comes with it'),
    dependencies: joi
        .array()
        .items(joi.object({ package: text(), version: text(), signature: signature() }))
        .allow(null)
        .required()
        .description('What comes with it; null for a version that is kept here'),
    sdk: text(),
    requires: joi.record(joi.string()).required(),
    optional: joi.record(joi.string()).required(),
    permissions: joi
        .array()
        .items(joi.object({ name: text(), title: text(), roles: names() }))
        .required(),
    added: names().description('Permissions that the present version does not have'),
    removed: names().description('Permissions of the present version that this one does not have'),
    capabilities: joi
        .object({
            asked: record(),
            granted: record().description('What the request grants, or what was granted before'),
            missing: joi.record(joi.any()).allow(null).required()
        })
        .required(),
    consent: joi
        .array()
        .items(
            joi.object({
                capability: text(),
                title: text().description('What it allows'),
                scope: joi.string().allow('').required().description('What of that is asked for')
            })
        )
        .required()
        .description('What is missing, in words'),
    obstacles: joi
        .array()
        .items(joi.object({ code: joi.number().integer().required(), reason: text(), message: text() }))
        .required()
        .description('Why it would fail now, beyond what is missing')
});

/** Value of a preview. */
export type InstallPreview = Value<typeof installPreview>;
