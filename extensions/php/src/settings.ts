/** What an admin sets. */
import { type Context, joi, type Partners, type Value } from '@portico/sdk';

import type { partners } from './partners.ts';

const folder = (longest: number) =>
    joi
        .string()
        .pattern(/^(?:\/[A-Za-z0-9._-]*[A-Za-z0-9_-])+$/)
        .max(longest)
        .meta({ ui: { widget: 'path', group: 'Places', advanced: true } });

/** The settings; their descriptions are the documentation. */
export const settings = joi.object({
    sitesFolder: folder(200)
        .default('/var/www')
        .label('Folder of the sites')
        .description('Each new site gets a folder of its name in it'),
    runFolder: folder(60)
        .default('/run/portico-php')
        .label('Folder of the sockets')
        .description('Sockets and configurations of new sites lie in it'),
    defaultRelease: joi
        .string()
        .pattern(/^\d{1,2}\.\d{1,2}$/)
        .label('Release of new sites')
        .description('Such as 8.2; default: the newest that is installed'),
    wordpressArchive: joi
        .object({
            url: joi
                .string()
                .pattern(/^(?:https:\/\/|\/)[^\s\0]+\.(?:tar\.gz|tgz|zip)$/i)
                .max(1_000)
                .required()
                .label('Where it is')
                .description('An address of HTTPS, or the path of a file on this machine')
                .example('https://wordpress.org/latest.tar.gz'),
            sha256: joi
                .string()
                .pattern(/^[0-9a-f]{64}$/i)
                .required()
                .label('SHA-256')
        })
        .label('Archive of WordPress')
        .description('For the template `wordpress`: a release as wordpress.org gives it, .tar.gz or .zip')
        .meta({ ui: { group: 'WordPress', advanced: true } }),
    composerRepository: joi
        .string()
        .pattern(/^(?:https:\/\/[^\s\0/@]+(?:\/[^\s\0]*)?|(?:\/[A-Za-z0-9._-]+)+)$/)
        .max(1_000)
        .label('Repository of Composer')
        .description(
            'Where the template `laravel` comes from, by HTTPS or as a folder of this machine; default: packagist.org'
        )
        .meta({ ui: { group: 'Laravel', advanced: true } }),
    logBytes: joi
        .number()
        .integer()
        .min(65_536)
        .max(2 ** 32)
        .default(10_485_760)
        .label('Largest log')
        .description('A log of a site that is larger becomes `<log>.1`, which it replaces')
        .unit('byte')
});

/** The context of this plugin. */
export type Ctx = Context<
    Value<typeof settings>,
    Partners<Readonly<Record<never, never>>, (typeof partners)['optional']>
>;
