/** The shapes of `/api/import-export`. */
import { joi } from '@portico/sdk';

import { taskView } from '../../server/http/answer/task-view.ts';

const passphrase = () => joi.secret().min(8).max(1024);

/** Body of POST `/export`. */
export const exportBody = joi.object({
    sections: joi
        .array()
        .items(joi.string().max(32))
        .min(1)
        .max(32)
        .unique()
        .description(
            'By name: settings, roles, users, dnsProviders, certificates, hosts, plugins; what they need comes along. Without it, all that the caller may read'
        ),
    passphrase: passphrase().description(
        'At least 8 characters. With it the secrets are part of the document, sealed; it needs a fresh session'
    ),
    complete: joi
        .boolean()
        .default(false)
        .description(
            "Refuses where a plugin's own data would be left out; without it, the document's `notes` say what is"
        )
});

/** Body of POST `/import`. */
export const importBody = joi.object({
    document: joi
        .record(joi.any())
        .required()
        .description(
            'What an export gave; or `{ format: "caddyfile", text }`; or `{ format: "caddy-json", config }` with what a running Caddy answers at /config/'
        ),
    passphrase: joi.secret().max(1024).description('That of the export'),
    mode: joi
        .string()
        .valid('merge', 'replace')
        .required()
        .description(
            '`merge` adds and changes; `replace` also removes what the sections of the document do not have'
        ),
    dryRun: joi.boolean().default(false).description('Answers the plan, and changes nothing'),
    installPlugins: joi
        .boolean()
        .default(false)
        .description(
            "Installs plugins that are missing, in the document's versions and without any grant; without it, what belongs to them is kept until they are installed"
        )
});

/** An export document, as an answer. */
export const documentView = joi.object({
    format: joi.string().valid('portico-export').required(),
    formatVersion: joi.number().integer().required(),
    createdAt: joi.string().isoDate().required(),
    generator: joi.string().required(),
    sections: joi.record(joi.any()).required(),
    notes: joi
        .array()
        .items(joi.string())
        .description('What is not in it, and why; not there when nothing is missing'),
    secrets: joi
        .object({
            kdf: joi
                .object({
                    name: joi.string().required(),
                    memoryKiB: joi.number().required(),
                    passes: joi.number().required(),
                    lanes: joi.number().required(),
                    salt: joi.string().required()
                })
                .required(),
            cipher: joi.string().required(),
            check: joi.string().required(),
            box: joi.string().required()
        })
        .description('Only with a passphrase')
});

const names = () => joi.array().items(joi.string()).required();
const count = () => joi.number().integer().required();

/** Of a dry run; a task of an import has the same as its result. */
const planView = joi.object({
    mode: joi.string().valid('merge', 'replace').required(),
    dryRun: joi.boolean().required(),
    secrets: joi.boolean().required().description('Whether the document has secrets'),
    sections: joi
        .record(
            joi.object({
                create: names(),
                update: names(),
                delete: names(),
                unchanged: names(),
                notes: joi
                    .array()
                    .items(joi.object({ name: joi.string().required(), message: joi.string().required() }))
                    .required()
                    .description('What is not as the document says, and why'),
                counts: joi
                    .object({ create: count(), update: count(), delete: count(), unchanged: count() })
                    .required()
            })
        )
        .required()
        .description('Names by what becomes of them'),
    plugins: joi
        .array()
        .items(
            joi.object({
                name: joi.string().required(),
                install: joi
                    .string()
                    .valid('planned', 'installed', 'failed')
                    .allow(null)
                    .required()
                    .description('null: nothing is to be installed'),
                data: joi
                    .string()
                    .valid('planned', 'waiting', 'restored', 'failed')
                    .allow(null)
                    .required()
                    .description('Of its own data; `waiting` until it runs, null: the document has none'),
                state: joi
                    .string()
                    .allow(null)
                    .required()
                    .description('Of the plugin after that; null in a dry run'),
                notes: names()
            })
        )
        .required()
        .description('Plugins of which more becomes than their settings'),
    reload: joi.boolean().required().description('Whether the engine has to load a configuration'),
    applied: joi
        .boolean()
        .allow(null)
        .required()
        .description('False: stored, and waiting for the engine; null in a dry run'),
    notes: joi.array().items(joi.string()).required()
});

/** The plan, or the task. */
export const importAnswer = joi.alternatives(planView, taskView);
