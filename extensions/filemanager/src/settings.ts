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
                    .description('Shown to people, and how requests name the root'),
                path: joi
                    .string()
                    .pattern(/^\/[^\0]*$/)
                    .max(4096)
                    .required()
                    .description('Absolute path of the folder'),
                roles: joi
                    .array()
                    .items(joi.string().max(64))
                    .default([])
                    .description('Roles that reach this root beside admin')
            })
        )
        .unique('name')
        .default([])
        .description('The folders that people may reach'),
    archiveEntries: joi
        .number()
        .integer()
        .min(1)
        .max(10_000_000)
        .default(100_000)
        .description('Entries of one archive, made or extracted'),
    archiveBytes: joi
        .number()
        .integer()
        .min(1)
        .default(10 * gibibyte)
        .description('Bytes that one archive may unpack to'),
    archiveRatio: joi
        .number()
        .integer()
        .min(1)
        .max(100_000)
        .default(200)
        .description('How many times its own size an archive may unpack to; the first 16 MiB are free'),
    uploadBytes: joi
        .number()
        .integer()
        .min(1)
        .default(1024 * gibibyte)
        .description('Bytes of one upload'),
    uploadHours: joi
        .number()
        .integer()
        .min(1)
        .max(24 * 30)
        .default(24)
        .description('Hours after its last byte that an unfinished upload is kept'),
    trashDays: joi
        .number()
        .integer()
        .min(0)
        .max(3650)
        .default(30)
        .description('Days that the trash is kept; 0 keeps it for ever'),
    terminalShell: joi
        .string()
        .pattern(/^[A-Za-z0-9/][\w./+-]*$/)
        .max(255)
        .default('bash')
        .description('Program of a terminal'),
    terminalUser: joi
        .string()
        .pattern(/^[a-z_][\w.-]*\$?$/i)
        .max(64)
        .description("Account that terminals run as; default: the panel's own"),
    terminals: joi
        .number()
        .integer()
        .min(0)
        .max(200)
        .default(20)
        .description('Terminals open at once; 0 forbids them')
});

/** The context of this plugin. */
export type Ctx = Context<Value<typeof settings>>;
