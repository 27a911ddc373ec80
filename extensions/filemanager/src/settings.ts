/** What an admin sets. */
import { type Context, joi, type Value } from '@portico/sdk';

const gibibyte = 2 ** 30;

/** The settings; their descriptions are the documentation. */
export const settings = joi.object({
    roots: joi
        .array()
        .items(
            joi.object({
                name: joi
                    .string()
                    .pattern(/^[\p{L}\p{N}_][\p{L}\p{N}_ .-]{0,63}$/u)
                    .required()
                    .label('Name')
                    .description('Shown to people, and how requests name the root'),
                path: joi
                    .string()
                    .pattern(/^\/[^\0]*$/)
                    .max(4096)
                    .required()
                    .label('Folder')
                    .description('Absolute path of the folder')
                    .meta({ ui: { widget: 'path' } }),
                roles: joi
                    .array()
                    .items(joi.string().max(64))
                    .default([])
                    .label('Roles')
                    .description('Roles that reach this root beside admin')
                    .meta({ ui: { ref: 'roles.list' } }),
                readOnly: joi
                    .boolean()
                    .default(false)
                    .label('Read only')
                    .description('Every change is refused, also of its trash and its versions'),
                quotaBytes: joi
                    .number()
                    .integer()
                    .min(1)
                    .allow(null)
                    .default(null)
                    .label('Quota')
                    .description(
                        'Bytes that its files may have together with trash, versions and unfinished uploads; empty: no limit'
                    )
                    .unit('byte'),
                versions: joi
                    .number()
                    .integer()
                    .min(0)
                    .max(100)
                    .default(0)
                    .label('Versions')
                    .description(
                        'Earlier contents that are kept of each file that the panel changes; 0: none'
                    )
            })
        )
        .unique('name')
        .default([])
        .description('The folders that people may reach')
        .label('Folders'),
    archiveEntries: joi
        .number()
        .integer()
        .min(1)
        .max(10_000_000)
        .default(100_000)
        .description('Entries of one archive, made or extracted')
        .label('Most entries of an archive')
        .meta({ ui: { group: 'Archives', advanced: true } }),
    archiveBytes: joi
        .number()
        .integer()
        .min(1)
        .default(10 * gibibyte)
        .description('Bytes that one archive may unpack to')
        .label('Most bytes of an archive')
        .unit('byte')
        .meta({ ui: { group: 'Archives', advanced: true } }),
    archiveRatio: joi
        .number()
        .integer()
        .min(1)
        .max(100_000)
        .default(200)
        .description('How many times its own size an archive may unpack to; the first 16 MiB are free')
        .label('Most an archive may grow')
        .meta({ ui: { group: 'Archives', advanced: true } }),
    searchSeconds: joi
        .number()
        .integer()
        .min(1)
        .max(30)
        .default(5)
        .description('Seconds after which a search in content ends with what it found')
        .label('A search in content takes at most')
        .unit('second'),
    fetchBytes: joi
        .number()
        .integer()
        .min(1)
        .default(10 * gibibyte)
        .description('Bytes of one file that is downloaded from an address')
        .label('Largest download from an address')
        .unit('byte')
        .meta({ ui: { group: 'Uploads' } }),
    uploadBytes: joi
        .number()
        .integer()
        .min(1)
        .default(1024 * gibibyte)
        .description('Bytes of one upload')
        .label('Largest upload')
        .unit('byte')
        .meta({ ui: { group: 'Uploads' } }),
    uploadHours: joi
        .number()
        .integer()
        .min(1)
        .max(24 * 30)
        .default(24)
        .description('Hours after its last byte that an unfinished upload is kept')
        .label('Unfinished uploads are kept for')
        .unit('hour')
        .meta({ ui: { group: 'Uploads' } }),
    shares: joi
        .boolean()
        .default(false)
        .description(
            'Whether links can be made by which people without an account download, and whether they work'
        )
        .label('Public links')
        .meta({ ui: { group: 'Public links' } }),
    shareDays: joi
        .number()
        .integer()
        .min(1)
        .max(365)
        .default(30)
        .description('Days that a public link is good at most')
        .label('Public links are good for')
        .unit('day')
        .meta({ ui: { group: 'Public links' } }),
    trashDays: joi
        .number()
        .integer()
        .min(0)
        .max(3650)
        .default(30)
        .description('Days that the trash is kept; 0 keeps it for ever')
        .label('Trash is kept for')
        .unit('day'),
    terminalShell: joi
        .string()
        .pattern(/^[A-Za-z0-9/][\w./+-]*$/)
        .max(255)
        .default('bash')
        .description('Program of a terminal')
        .label('Shell')
        .meta({ ui: { group: 'Terminal', widget: 'path' } }),
    terminalUser: joi
        .string()
        .pattern(/^[a-z_][\w.-]*\$?$/i)
        .max(64)
        .description("Account that terminals run as; default: the panel's own")
        .label('Account')
        .meta({ ui: { group: 'Terminal', widget: 'account' } }),
    terminalRecording: joi
        .choice({ off: 'Not recorded', on: 'What they show is recorded' })
        .default('off')
        .description('Whether terminals are recorded. What is typed is not, but shells show it')
        .label('Recording')
        .meta({ ui: { group: 'Terminal' } }),
    recordingDays: joi
        .number()
        .integer()
        .min(1)
        .max(3650)
        .default(90)
        .description('Days that a recording is kept')
        .label('Recordings are kept for')
        .unit('day')
        .meta({ ui: { group: 'Terminal' } }),
    recordingBytes: joi
        .number()
        .integer()
        .min(4_096)
        .default(256 * 2 ** 20)
        .description('Bytes of one recording; a terminal whose recording would be larger ends')
        .label('Largest recording')
        .unit('byte')
        .meta({ ui: { group: 'Terminal', advanced: true } }),
    recordingsBytes: joi
        .number()
        .integer()
        .min(4_096)
        .default(5 * gibibyte)
        .description(
            'Bytes of all recordings; beyond them recorded terminals end and none opens, until recordings are removed'
        )
        .label('Most bytes of all recordings')
        .unit('byte')
        .meta({ ui: { group: 'Terminal', advanced: true } }),
    terminals: joi
        .number()
        .integer()
        .min(0)
        .max(200)
        .default(20)
        .description('Terminals open at once; 0 forbids them')
        .label('Terminals at once')
        .meta({ ui: { group: 'Terminal' } })
});

/** The context of this plugin. */
export type Ctx = Context<Value<typeof settings>>;
