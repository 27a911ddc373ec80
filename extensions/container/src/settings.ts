/** What an admin sets. */
import { type Context, joi, type Value } from '@portico/sdk';

const absolute = () =>
    joi
        .string()
        .max(1_000)
        .pattern(/^\/[^\0]*$/, 'an absolute path');

/** The settings; their descriptions are the documentation. */
export const settings = joi.object({
    socket: joi.typed<string | undefined>(
        joi
            .string()
            .max(100)
            .pattern(/^\/[^\0]+$/, 'an absolute path')
            .optional()
            .label('Socket of the engine')
            .description('Default: the first to answer of /run/docker.sock and /run/podman/podman.sock')
            .meta({ ui: { widget: 'path' } })
    ),
    stackFolder: absolute()
        .default('/var/lib/portico-stacks')
        .label('Folder of stacks')
        .description('Relative paths of a compose file lie in a folder of its stack below it')
        .meta({ ui: { widget: 'path' } }),
    bindRoots: joi
        .array()
        .items(absolute().label('Folder'))
        .max(100)
        .default([])
        .label('Folders for binds')
        .description('Containers may have folders below these; any other folder needs an exception')
        .meta({ ui: { group: 'Policy', widget: 'lines' } }),
    safeCapabilities: joi
        .array()
        .items(
            joi
                .string()
                .pattern(/^[A-Z_]{3,40}$/, 'a capability of the kernel')
                .label('Capability')
        )
        .max(50)
        .default([])
        .label('Safe capabilities')
        .description(
            'Capabilities of the kernel that containers may add without an exception, such as NET_RAW'
        )
        .meta({ ui: { group: 'Policy', widget: 'lines' } }),
    checkHours: joi
        .number()
        .integer()
        .min(0)
        .max(168)
        .default(24)
        .label('Check for newer images')
        .unit('hour')
        .description('How often registries are asked for newer images of what runs; 0: never'),
    revisionsKept: joi
        .number()
        .integer()
        .min(1)
        .max(50)
        .default(10)
        .label('Revisions kept')
        .description('Revisions of each stack that a rollback can go to'),
    sessions: joi
        .number()
        .integer()
        .min(0)
        .max(100)
        .default(20)
        .label('Sessions')
        .description('Terminals in containers that may be open at once'),
    logBytes: joi
        .number()
        .integer()
        .min(65_536)
        .max(10_737_418_240)
        .default(10_485_760)
        .label('Log of a container')
        .unit('byte')
        .description('Where a container says nothing about its log, it is rotated at this size')
});

/** The settings as the plugin reads them. */
export type Settings = Value<typeof settings>;
/** The context of this plugin. */
export type Ctx = Context<Settings>;
