/** The settings that an admin may change. */
import { type Context, joi, type Value } from '@portico/sdk';

import { logPattern } from './logs/pattern.ts';

const patterns = joi.array().items(joi.string().min(1).max(100)).unique().max(100);

/** The schema of the settings; its descriptions are shown to the admin. */
export const settings = joi.object({
    intervalSeconds: joi
        .number()
        .integer()
        .min(2)
        .max(300)
        .default(10)
        .description('Seconds between two samples')
        .label('Sample every')
        .unit('second'),
    retentionDays: joi
        .number()
        .integer()
        .min(1)
        .max(3650)
        .default(365)
        .description('Days that history is kept, in coarser steps the older it is')
        .label('History is kept for')
        .unit('day')
        .meta({ ui: { group: 'History' } }),
    maxSeries: joi
        .number()
        .integer()
        .min(10)
        .max(5000)
        .default(400)
        .description(
            'Largest number of series with a history; one takes about 0.4 MB at the default retention'
        )
        .label('Most series')
        .meta({ ui: { group: 'History', advanced: true } }),
    excludeDisks: patterns
        .default([])
        .description('Mount points to leave out; `*` stands for any characters, `?` for one')
        .label('Disks left out')
        .meta({ ui: { group: 'Left out', widget: 'lines' } }),
    excludeDevices: patterns
        .default(['loop*', 'ram*', 'zram*', 'sr*', 'fd*'])
        .description('Block devices to leave out')
        .label('Devices left out')
        .meta({ ui: { group: 'Left out', widget: 'lines' } }),
    excludeInterfaces: patterns
        .default(['lo', 'veth*'])
        .description('Network interfaces to leave out')
        .label('Interfaces left out')
        .meta({ ui: { group: 'Left out', widget: 'lines' } }),
    remoteDisks: joi
        .boolean()
        .default(false)
        .description('Measure file systems of other machines (NFS, SMB, …) too')
        .label('Disks of other machines'),
    containers: joi.boolean().default(true).description('Measure containers').label('Containers'),
    diskFullPercent: joi
        .number()
        .min(1)
        .max(100)
        .default(95)
        .description(
            'A disk that is used to this percentage or more is listed by `/unhealthy`, whatever the rules say'
        )
        .label('A disk is nearly full at')
        .unit('percent')
        .meta({ ui: { group: 'Alerts' } }),
    slowSeconds: joi
        .number()
        .integer()
        .min(60)
        .max(3600)
        .default(300)
        .description(
            'Seconds between two looks at drives and graphics processors, which only programs can ask'
        )
        .label('Look at drives every')
        .unit('second'),
    logFiles: joi
        .array()
        .items(joi.string().max(300).pattern(logPattern))
        .unique()
        .max(100)
        .default(['/var/log/*.log', '/var/log/syslog'])
        .description(
            'Log files that holders of the permission `logs` can read: below /var/log, never through a link; `*` stands for any characters of a name, `?` for one'
        )
        .label('Log files')
        .meta({ ui: { group: 'Logs', widget: 'lines' } }),
    trafficDays: joi
        .number()
        .integer()
        .min(0)
        .max(365)
        .default(30)
        .description(
            'Days that requests to the hosts are counted back; 0 counts none. The engine records requests with the setting `engine.accessLog`'
        )
        .label('Traffic is kept for')
        .unit('day')
        .meta({ ui: { group: 'History' } }),
    trafficAddresses: joi
        .choice({
            network: 'Their networks (/24 and /48)',
            full: 'Whole addresses',
            none: 'Nothing'
        })
        .default('network')
        .description("What is kept of visitors' addresses for the list of the most frequent ones")
        .label('Addresses of visitors')
        .meta({ ui: { group: 'History' } }),
    processHistoryDays: joi
        .number()
        .integer()
        .min(0)
        .max(30)
        .default(7)
        .description('Days that the busiest processes of each minute are kept; 0 keeps none')
        .label('Busiest processes are kept for')
        .unit('day')
        .meta({ ui: { group: 'History' } }),
    checkHistoryDays: joi
        .number()
        .integer()
        .min(1)
        .max(365)
        .default(90)
        .description('Days that the results of uptime checks are kept; good ones that changed nothing, a day')
        .label('Results of checks are kept for')
        .unit('day')
        .meta({ ui: { group: 'History' } }),
    alertsKept: joi
        .number()
        .integer()
        .min(10)
        .max(100_000)
        .default(1000)
        .description('Number of ended alerts that are kept')
        .label('Ended alerts kept')
        .meta({ ui: { group: 'Alerts' } })
});

/** The settings as the plugin reads them. */
export type Settings = Value<typeof settings>;

/** The context of this plugin. */
export type Ctx = Context<Settings>;
