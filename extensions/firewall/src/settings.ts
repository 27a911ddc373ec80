/** What an admin sets. */
import { type Context, joi, type Value } from '@portico/sdk';

import { readPrefix } from './address/interval.ts';

const longestSeconds = 7 * 86_400;

/** Text that {@link readPrefix} accepts. */
const prefix = joi.typed<string>(
    joi
        .string()
        .max(50)
        .custom(
            (value: string, { error }) => (readPrefix(value) === null ? error('any.invalid') : value),
            'An address or a prefix such as 10.0.0.0/8'
        )
        .label('Address or prefix')
);

/** The settings; their descriptions are the documentation. */
export const settings = joi.object({
    loginBans: joi
        .boolean()
        .default(true)
        .label('Ban by failed logins')
        .description('Ban an address after too many failed logins to the panel')
        .meta({ ui: { group: 'Bans' } }),
    loginFailures: joi
        .number()
        .integer()
        .min(2)
        .max(1_000)
        .default(5)
        .label('Failed logins')
        .description('So many failed logins within the window make a ban')
        .meta({ ui: { group: 'Bans' } }),
    loginWindowSeconds: joi
        .number()
        .integer()
        .min(10)
        .max(86_400)
        .default(600)
        .label('Window')
        .unit('second')
        .description('For how long a failed login counts')
        .meta({ ui: { group: 'Bans' } }),
    loginBanSeconds: joi
        .number()
        .integer()
        .min(10)
        .max(longestSeconds)
        .default(3_600)
        .label('Ban for')
        .unit('second')
        .description('The first ban of an address; each further one lasts twice as long, a week at most')
        .meta({ ui: { group: 'Bans' } }),
    neverBan: joi
        .array()
        .items(prefix)
        .max(1_000)
        .default([])
        .label('Never ban')
        .description('Addresses and prefixes that no ban may touch, such as your office')
        .meta({ ui: { group: 'Bans', widget: 'lines' } }),
    bootFile: joi
        .string()
        .max(200)
        .pattern(/^\/etc\/nftables\.d\/[A-Za-z0-9][A-Za-z0-9._-]*\.nft$/, '/etc/nftables.d/<name>.nft')
        .default('/etc/nftables.d/portico.nft')
        .label('Boot file')
        .description('Where the rules lie for the next boot, in /etc/nftables.d')
        .meta({ ui: { widget: 'path', advanced: true } }),
    countrySource: joi.typed<string | undefined>(
        joi
            .string()
            .max(500)
            .pattern(/^https?:\/\/[^\s]*\{country\}[^\s]*$/)
            .optional()
            .label('Source of countries')
            .description(
                'URL of a list of prefixes, with `{country}` in place of the two letters, such as https://lists.example/{country}.zone'
            )
    ),
    logDropped: joi
        .boolean()
        .default(false)
        .label('Log what is dropped')
        .description(
            'Write what the default policies drop to the log of the kernel, ten lines a second at most'
        )
});

/** The settings as the plugin reads them. */
export type Settings = Value<typeof settings>;
/** The context of this plugin. */
export type Ctx = Context<Settings>;
