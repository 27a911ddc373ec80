/** What an admin sets. */
import { type Context, joi, type Partners, type Value } from '@portico/sdk';

import type { partners } from './partners.ts';

const mebibyte = 2 ** 20;
const gibibyte = 2 ** 30;

const port = () => joi.number().integer().min(1_024).max(65_535);

/** The settings; their descriptions are the documentation. */
export const settings = joi.object({
    user: joi
        .string()
        .pattern(/^[a-z_][a-z0-9_-]{0,31}$/)
        .invalid('root')
        .default('portico-deploy')
        .label('Account')
        .description(
            "Builds and releases run as this account of the machine; not root, and not the panel's own"
        )
        .meta({ ui: { widget: 'account' } }),
    concurrentBuilds: joi
        .number()
        .integer()
        .min(1)
        .max(16)
        .default(2)
        .label('Builds at once')
        .description('Of different projects; those of one project run one after the other'),
    queue: joi
        .number()
        .integer()
        .min(1)
        .max(1_000)
        .default(100)
        .label('Longest queue')
        .description('Deployments that may wait; further ones are refused')
        .meta({ ui: { advanced: true } }),
    ports: joi
        .object({
            from: port().default(20_000).label('From'),
            to: port().min(joi.ref('from')).default(29_999).label('To')
        })
        .default({ from: 20_000, to: 29_999 })
        .label('Ports of releases')
        .description('On 127.0.0.1; each release gets one of its own')
        .meta({ ui: { advanced: true } }),
    buildMemoryBytes: joi
        .number()
        .integer()
        .min(64 * mebibyte)
        .max(1024 * gibibyte)
        .default(2 * gibibyte)
        .label('Memory of a build')
        .unit('byte')
        .meta({ ui: { group: 'Builds' } }),
    buildCpuPercent: joi
        .number()
        .integer()
        .min(10)
        .max(25_600)
        .default(200)
        .label('Processor of a build')
        .description('100 is one processor')
        .unit('percent')
        .meta({ ui: { group: 'Builds' } }),
    buildProcesses: joi
        .number()
        .integer()
        .min(16)
        .max(32_768)
        .default(512)
        .label('Processes of a build')
        .meta({ ui: { group: 'Builds' } }),
    cacheBytes: joi
        .number()
        .integer()
        .min(0)
        .max(1024 * gibibyte)
        .default(5 * gibibyte)
        .label('Cache of a project')
        .description('A larger one is emptied after the build')
        .unit('byte')
        .meta({ ui: { group: 'Kept' } }),
    logBytes: joi
        .number()
        .integer()
        .min(65_536)
        .max(gibibyte)
        .default(16 * mebibyte)
        .label('Log of a deployment')
        .description('What is printed beyond it is left out, and said so')
        .unit('byte')
        .meta({ ui: { group: 'Kept' } })
});

/** The context of this plugin. */
export type Ctx = Context<
    Value<typeof settings>,
    Partners<Readonly<Record<never, never>>, (typeof partners)['optional']>
>;
