/** What requests say of a site, and how a site is shown. */
import { errors, joi } from '@portico/sdk';

import { innerPath, outerPath } from '../machine/paths.ts';

/** Names that a program's environment may not have: they change how programs are found and loaded, or are the panel's. */
const refusedNames =
    /^(?:PATH|HOME|USER|SHELL|LANG|NODE_OPTIONS|PHP_INI_SCAN_DIR|PHPRC|FPM_.*|LD_.*|PORTICO_.*)$/;
const variable = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const hostName = /^(?:\*\.)?[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/;
/** PHP-FPM takes no empty value and none of several lines, and reads one that begins with `$` as the name of a variable of its own. */
const value = /^(?!\$)[^\0\r\n]{1,32768}$/;

const line = /^[^\p{C}]*$/u;

/** A release, such as `8.2`. */
export const releaseSchema = () =>
    joi
        .string()
        .pattern(/^\d{1,2}\.\d{1,2}$/)
        .label('PHP')
        .description('A release that is installed')
        .example('8.2');

const env = joi
    .record(joi.alternatives(joi.string().pattern(value), joi.object({ set: joi.valid(true).required() })))
    .max(100)
    .label('Environment')
    .description('Values are never read back: `{ "set": true }` stands for each, and keeps it in a write')
    .meta({ ui: { advanced: true } });

/** Fields that a site is made with, and that may be changed later. */
const common = {
    aliases: joi
        .array()
        .items(joi.string().pattern(hostName))
        .max(50)
        .unique()
        .label('Other domains')
        .meta({ ui: { widget: 'lines', advanced: true } }),
    root: joi
        .string()
        .pattern(innerPath)
        .max(200)
        .label('Served folder')
        .description('Below the folder of the site')
        .meta({ ui: { advanced: true } }),
    ssl: joi.boolean().label('HTTPS'),
    sslMode: joi
        .choice({ auto: 'A certificate of a public CA', internal: "A certificate of the engine's own CA" })
        .label('Certificate')
        .meta({ ui: { advanced: true } }),
    extraPaths: joi
        .array()
        .items(joi.string().pattern(outerPath).max(500))
        .max(20)
        .unique()
        .label('More folders')
        .description('Absolute paths that scripts may open beside the folder of the site')
        .meta({ ui: { widget: 'lines', advanced: true } }),
    env
};

const domain = () =>
    joi
        .string()
        .pattern(hostName)
        .label('Domain')
        .example('shop.example')
        .meta({ ui: { column: 2 } });

/** The body that makes a site. */
export const newSiteSchema = joi.object({
    name: joi
        .string()
        .pattern(/^[a-z][a-z0-9-]{0,24}$/)
        .required()
        .label('Name')
        .description('Of the folder and, after `php-`, of the account')
        .example('shop'),
    domain: domain().required(),
    ...common,
    release: releaseSchema(),
    runtime: joi
        .choice({ fpm: 'PHP-FPM', frankenphp: 'FrankenPHP, which is not driven yet' })
        .default('fpm')
        .label('Runtime')
        .meta({ ui: { advanced: true } }),
    template: joi
        .choice({
            empty: 'Nothing',
            php: 'A page that says that PHP runs',
            wordpress: 'WordPress',
            laravel: 'Laravel, by Composer'
        })
        .default('empty')
        .label('Begin with'),
    wordpress: joi
        .object({
            title: joi.string().trim().min(1).max(200).pattern(line).required().label('Title'),
            adminUser: joi
                .string()
                .pattern(/^[A-Za-z0-9_.@-]{1,60}$/)
                .required()
                .label('Admin')
                .description('Its password is in the result of the task, and nowhere else'),
            adminEmail: joi.string().email({ tlds: false }).max(100).required().label('E-mail of the admin')
        })
        .label('WordPress')
        .description('With the template `wordpress`, which needs `database` on a server of MySQL or MariaDB'),
    database: joi
        .object({
            serverId: joi
                .number()
                .integer()
                .min(1)
                .required()
                .label('Server')
                .meta({ ui: { ref: 'database.servers' } }),
            name: joi
                .string()
                .pattern(/^[a-z][a-z0-9_]{0,47}$/)
                .label('Name')
                .description('Default: that of the site')
        })
        .label('Database')
        .description(
            'Made beside the site by the plugin `database`; its password goes to the environment of the site'
        )
        .meta({ ui: { advanced: true } })
});

/** Fields of an answer that a change may send back, and that change nothing. */
const shownOnly = [
    'id',
    'name',
    'runtime',
    'template',
    'state',
    'message',
    'user',
    'folder',
    'socket',
    'hostId',
    'databaseName',
    'pid'
] as const;

/** The body that changes a site. What is left out stays as it is. */
export const siteChangeSchema = joi.object({
    version: joi
        .number()
        .integer()
        .label('Version')
        .description('Acts as If-Match')
        .meta({ ui: { widget: 'hidden' } }),
    domain: domain(),
    ...common,
    release: releaseSchema(),
    ...Object.fromEntries(shownOnly.map((field) => [field, joi.readOnly(joi.any())] as const))
});

/** Given values of an environment, by name; `{ set: true }` stands for the value that is there. */
export type EnvInput = Readonly<Record<string, string | { readonly set: true }>>;

/**
 * The environment after a change, which replaces it whole.
 *
 * @throws VALIDATION_FAILED 40001 for a name that a site may not set, and for a value that stands for none
 */
export function changedEnv(
    before: Readonly<Record<string, string>>,
    given: EnvInput
): Readonly<Record<string, string>> {
    const faults: { path: string; message: string }[] = [];
    const env: Record<string, string> = {};
    for (const [name, value] of Object.entries(given)) {
        const text = typeof value === 'string' ? value : before[name];
        if (!variable.test(name) || refusedNames.test(name)) {
            faults.push({
                path: `env.${name}`,
                message: `${JSON.stringify(name)} is no variable that a site may set`
            });
        } else if (text === undefined) {
            faults.push({ path: `env.${name}`, message: `${name} has no value that could be kept` });
        } else {
            env[name] = text;
        }
    }
    if (faults.length > 0) {
        throw errors.invalid(faults);
    }
    return env;
}

/** A site as it is shown. */
export const siteSchema = joi.object({
    id: joi.readOnly(joi.number().integer()).label('Number'),
    version: joi
        .number()
        .integer()
        .required()
        .label('Version')
        .meta({ ui: { widget: 'hidden' } }),
    name: joi
        .string()
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } }),
    domain: domain().required(),
    aliases: joi
        .array()
        .items(joi.string())
        .required()
        .label('Other domains')
        .meta({ ui: { column: false } }),
    release: joi
        .string()
        .required()
        .label('PHP')
        .meta({ ui: { column: 3 } }),
    runtime: joi
        .string()
        .required()
        .label('Runtime')
        .meta({ ui: { column: false } }),
    root: joi
        .string()
        .required()
        .label('Served folder')
        .meta({ ui: { column: false } }),
    template: joi
        .string()
        .required()
        .label('Began with')
        .meta({ ui: { column: false } }),
    ssl: joi
        .boolean()
        .required()
        .label('HTTPS')
        .meta({ ui: { column: 5 } }),
    sslMode: joi
        .string()
        .required()
        .label('Certificate')
        .meta({ ui: { column: false } }),
    extraPaths: joi
        .array()
        .items(joi.string())
        .required()
        .label('More folders')
        .meta({ ui: { column: false } }),
    env: joi
        .record(joi.object({ set: joi.valid(true).required() }))
        .required()
        .label('Environment')
        .description('Names; values are never shown')
        .meta({ ui: { column: false } }),
    state: joi
        .readOnly(
            joi.choice({
                running: 'Runs',
                stopped: 'Stopped',
                failed: 'Failed',
                switching: 'Is being switched',
                creating: 'Is being made'
            })
        )
        .label('State')
        .meta({
            ui: {
                column: 4,
                tones: {
                    running: 'good',
                    stopped: 'neutral',
                    failed: 'bad',
                    switching: 'busy',
                    creating: 'busy'
                }
            }
        }),
    message: joi
        .readOnly(joi.string())
        .label('Message')
        .meta({ ui: { column: false } }),
    user: joi
        .readOnly(joi.string())
        .label('Account')
        .meta({ ui: { column: false } }),
    folder: joi
        .readOnly(joi.string())
        .label('Folder')
        .meta({ ui: { column: false } }),
    socket: joi
        .readOnly(joi.string())
        .label('Socket')
        .meta({ ui: { column: false } }),
    hostId: joi
        .readOnly(joi.number().integer())
        .label('Host')
        .meta({ ui: { column: false, ref: 'hosts.list' } }),
    databaseName: joi
        .readOnly(joi.string())
        .label('Database')
        .meta({ ui: { column: false } }),
    pid: joi
        .readOnly(joi.number().integer())
        .label('Process')
        .meta({ ui: { column: false } })
});
