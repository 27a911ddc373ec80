/** What an admin says of a project. */
import { joi, type ObjectOf, type Value } from '@portico/sdk';

import { refForm } from '../git/remote/refs.ts';

/** Kinds of builds, in the words of a choice. */
const kinds = {
    auto: 'Find out by the files',
    commands: 'Commands',
    static: 'A static site',
    dockerfile: 'An image of a Dockerfile',
    compose: 'The services of a compose file',
    nixpacks: 'An image that nixpacks makes',
    railpack: 'An image that railpack makes'
} as const;

const hostName = /^(?:\*\.)?[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/;
/** Below the checkout: no part is `.` or `..`, begins with `-` or is the folder of git. */
const innerPath =
    /^(?!.*(?:^|\/)(?:\.{1,2}|\.git)(?:\/|$))(?:[A-Za-z0-9_.@][A-Za-z0-9_.@ -]*(?:\/(?!$)|$)){1,20}$/;
const workerName = /^[a-z][a-z0-9-]{0,19}$/;

/** One program with its arguments; no shell reads it. */
export const argv = () =>
    joi
        .array()
        .items(
            joi
                .string()
                .max(4_096)
                .pattern(/^[^\0]*$/)
        )
        .min(1)
        .max(100);

const path = () => joi.string().pattern(innerPath).max(400);
/** A choice that most leave as it is. */
const rarely = () =>
    joi
        .boolean()
        .default(false)
        .meta({ ui: { advanced: true } });
const count = (least: number, most: number) => joi.number().integer().min(least).max(most);

/** An object whose keys all have defaults, which is that object when it is left out. */
function filled<T>(schema: ObjectOf<T>): ObjectOf<T, 'default'> {
    const { value } = schema.validate({});
    // Typed schemas say nothing of their keys' methods once they have a default, and an object keeps them.
    return schema.default(value as T & {}) as ObjectOf<T, 'default'>;
}

/** The folder of a project in its repository; empty: all of it. */
export const folderPath = () =>
    path()
        .allow('')
        .label('Folder')
        .description('Of this project in the repository')
        .meta({ ui: { advanced: true } });

const source = joi
    .object({
        url: joi
            .string()
            .max(2_000)
            .pattern(/^[^\s\p{C}-][^\s\p{C}]*$/u)
            .required()
            .label('Address')
            .description('`https://…`, `ssh://…` or `user@host:path`, without a password')
            .example('https://github.com/acme/shop.git'),
        branch: joi.string().pattern(refForm).default('main').label('Branch'),
        path: folderPath().default(''),
        connection: joi
            .number()
            .integer()
            .min(1)
            .allow(null)
            .default(null)
            .label('Connection')
            .description('For a repository that is not public')
            .meta({ ui: { ref: 'deploy.connections' } }),
        submodules: rarely().label('Submodules'),
        lfs: rarely().label('Git LFS').description('Over https')
    })
    .label('Repository');

const build = joi
    .object({
        kind: joi.choice(kinds).default('auto').label('Kind'),
        install: argv()
            .allow(null)
            .default(null)
            .label('Install')
            .description('One program with its arguments'),
        commands: joi
            .array()
            .items(argv())
            .max(20)
            .allow(null)
            .default(null)
            .label('Commands')
            .description('Each is one program with its arguments; no shell reads them'),
        output: path()
            .allow(null, '.')
            .default(null)
            .label('Output')
            .description('The folder that is released; default: what the framework makes, or everything'),
        dockerfile: path()
            .allow(null)
            .default(null)
            .label('Dockerfile')
            .description('Of the kind for that; default: `Dockerfile`')
            .meta({ ui: { advanced: true } }),
        network: joi.boolean().default(true).label('Network').description('Whether the build may use it'),
        timeoutSeconds: count(10, 86_400).default(1_800).label('At most').unit('second'),
        cache: joi
            .array()
            .items(path())
            .max(20)
            .default([])
            .label('Cached folders')
            .description('They are there again in the next build')
            .meta({ ui: { widget: 'lines', advanced: true } })
    })
    .label('Build');

const limits = joi
    .object({
        memoryBytes: joi
            .number()
            .integer()
            .min(16 * 2 ** 20)
            .allow(null)
            .default(null)
            .label('Memory')
            .unit('byte'),
        cpuPercent: count(1, 25_600).allow(null).default(null).label('Processor').unit('percent'),
        processes: count(4, 32_768).allow(null).default(null).label('Processes and threads')
    })
    .label('Limits');

const run = joi
    .object({
        command: argv()
            .allow(null)
            .default(null)
            .label('Command')
            .description('Default: that of the framework'),
        port: count(1, 65_535)
            .allow(null)
            .default(null)
            .label('Port')
            .description(
                'Default: one of its own, told by the variable PORT. Of an image: the port in the container'
            )
            .meta({ ui: { advanced: true } }),
        workers: joi
            .array()
            .items(
                joi.object({
                    name: joi.string().pattern(workerName).invalid('web').required().label('Name'),
                    command: argv().required().label('Command'),
                    instances: count(1, 32).default(1).label('Instances')
                })
            )
            .max(20)
            .unique('name')
            .default([])
            .label('Workers')
            .description('Programs beside the one that answers requests'),
        shared: joi
            .array()
            .items(path())
            .max(20)
            .unique()
            .default([])
            .label('Shared folders')
            .description('They outlive releases, and can be written to')
            .meta({ ui: { widget: 'lines' } }),
        limits: filled(limits),
        stopSeconds: count(0, 600)
            .default(10)
            .label('Time to end')
            .unit('second')
            .meta({ ui: { advanced: true } }),
        drainSeconds: count(0, 3_600)
            .default(30)
            .label('Time for its last requests')
            .description('So long the old release is kept while connections to it are open')
            .unit('second')
            .meta({ ui: { advanced: true } })
    })
    .label('Run');

const health = joi
    .object({
        path: joi
            .string()
            .pattern(/^\/[\x21-\x7e]{0,2000}$/)
            .default('/')
            .label('Path'),
        expectStatus: count(1, 599)
            .default(2)
            .label('Status')
            .description('A status, or its first digit: 2 is 200 to 299'),
        contains: joi.string().max(1_000).allow(null).default(null).label('Contains'),
        startSeconds: count(1, 3_600).default(60).label('Time to start').unit('second'),
        successes: count(1, 100)
            .default(2)
            .label('Good answers')
            .description('In a row, before it gets requests')
    })
    .label('Health');

const host = joi
    .object({
        domain: joi.string().pattern(hostName).required().label('Domain').example('shop.example'),
        aliases: joi
            .array()
            .items(joi.string().pattern(hostName))
            .max(50)
            .unique()
            .default([])
            .label('Other domains')
            .meta({ ui: { widget: 'lines' } }),
        ssl: joi.boolean().default(false).label('HTTPS'),
        sslMode: joi
            .choice({
                auto: 'A certificate of a public CA',
                internal: "A certificate of the engine's own CA"
            })
            .default('auto')
            .label('Certificate')
    })
    .allow(null)
    .label('Host')
    .description('Null: none is made');

const canary = joi
    .object({
        weight: count(1, 50).required().label('Share').unit('percent'),
        seconds: count(10, 86_400).required().label('For').unit('second'),
        failures: count(1, 100)
            .default(3)
            .label('Bad answers')
            .description('In a row, until it is taken back'),
        rules: joi
            .array()
            .items(joi.number().integer().min(1))
            .max(20)
            .unique()
            .default([])
            .label('Rules of monitoring')
            .description('It is taken back when one of them fires meanwhile')
            .meta({ ui: { ref: 'monitoring.rules' } })
    })
    .allow(null)
    .label('Canary')
    .description('A new release of programs gets a share of the requests first; null: all of them at once')
    .meta({ ui: { advanced: true } });

const hooks = joi
    .object({
        pre: joi.array().items(argv()).max(20).default([]).label('Before the start'),
        post: joi.array().items(argv()).max(20).default([]).label('After the switch')
    })
    .label('Commands around a release');

const patterns = () => joi.array().items(joi.string().min(1).max(200)).max(50).default([]);

const triggers = joi
    .object({
        auto: joi.boolean().default(true).label('Deploy pushes'),
        branches: patterns()
            .label('Branches')
            .description('Patterns; none: the branch of the repository')
            .meta({ ui: { widget: 'lines' } }),
        tags: patterns()
            .label('Tags')
            .description('Patterns; none: no tag')
            .meta({ ui: { widget: 'lines' } }),
        paths: patterns()
            .label('Files')
            .description('Patterns; a push that changes none of them is ignored')
            .meta({ ui: { widget: 'lines' } }),
        requiredChecks: joi
            .array()
            .items(joi.string().min(1).max(200))
            .max(50)
            .unique()
            .default([])
            .label('Required checks')
            .description('Names of statuses of the commit that must be good before it is built')
            .meta({ ui: { widget: 'lines', advanced: true } }),
        pollSeconds: joi
            .number()
            .integer()
            .allow(0)
            .min(60)
            .max(86_400)
            .default(0)
            .label('Ask every')
            .description('0: never')
            .unit('second'),
        plainToken: joi
            .boolean()
            .default(false)
            .label('Accept X-Gitlab-Token')
            .description('It sends the secret itself, so it is worth less than a signature')
            .meta({ ui: { advanced: true } })
    })
    .label('Pushes');

const previews = joi
    .object({
        domain: joi
            .string()
            .pattern(/^(?=.*\{number\})(?:[A-Za-z0-9]|\{number\})(?:[A-Za-z0-9.-]|\{number\}){0,250}$/)
            .required()
            .label('Domain')
            .description('`{number}` stands for the number of the pull request')
            .example('pr-{number}.shop.example'),
        expireDays: count(1, 365)
            .default(7)
            .label('Kept for')
            .description('Without a new commit')
            .unit('day'),
        max: count(1, 50).default(5).label('At most').description('The oldest makes place for a new one'),
        forks: joi
            .choice({ approve: 'Each commit, once it is approved', never: 'Never' })
            .default('approve')
            .label('Pull requests of forks'),
        comment: joi
            .boolean()
            .default(true)
            .label('Comment')
            .description('One comment on the pull request, kept up to date; needs a connection')
    })
    .allow(null)
    .label('Previews')
    .description('Each pull request is served at a domain of its own; null: none is')
    .meta({ ui: { advanced: true } });

const envGroups = joi
    .array()
    .items(joi.number().integer().min(1))
    .max(20)
    .unique()
    .label('Groups of variables')
    .meta({ ui: { ref: 'deploy.envGroups', advanced: true } });
const keep = count(1, 50)
    .label('Releases kept')
    .meta({ ui: { advanced: true } });
const enabled = joi.boolean().label('Enabled').description('Whether pushes and users may deploy');

/** Every field of a project but its name, each with its default. */
const common = {
    build: filled(build),
    run: filled(run),
    health: filled(health),
    host: host.default(null),
    canary: canary.default(null),
    hooks: filled(hooks),
    triggers: filled(triggers),
    previews: previews.default(null),
    envGroups: envGroups.default([]),
    keep: keep.default(5),
    enabled: enabled.default(true)
};
const name = () =>
    joi
        .string()
        .pattern(/^[a-z][a-z0-9-]{0,39}$/)
        .label('Name')
        .example('shop')
        .meta({ ui: { column: 1 } });

/** The whole of what an admin says of a project. */
export const projectInput = joi.object({ name: name().required(), source: source.required(), ...common });

/** A project as an admin says it. */
export type ProjectInput = Value<typeof projectInput>;
/** The same without the name, which is a column of its own. */
export type ProjectConfig = Omit<ProjectInput, 'name'>;

/** The fields of a project, without the defaults that they have in a new one. */
export const fields = {
    name,
    source,
    build,
    run,
    health,
    host,
    canary,
    hooks,
    triggers,
    previews,
    envGroups,
    keep,
    enabled
};
