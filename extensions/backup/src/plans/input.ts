/** What a plan is made of, and how it is checked. */
import { errors, joi, type Value } from '@portico/sdk';

import { checkPlace } from '../repositories/input.ts';
import { isZone } from '../settings.ts';

const mostCopies = 10;
const cron = joi
    .string()
    .max(200)
    .required()
    .label('Times')
    .description('Five fields, or six with seconds first')
    .meta({ ui: { widget: 'cron' } });
const count = (label: string) => joi.number().integer().min(0).max(10_000).default(0).label(label);

/** How many snapshots of each kind stay. */
export const keepSchema = joi.object({
    last: count('Newest'),
    hourly: count('Hourly'),
    daily: count('Daily'),
    weekly: count('Weekly'),
    monthly: count('Monthly'),
    yearly: count('Yearly')
});

/** One thing that is backed up. */
export const sourceSchema = joi.object({
    type: joi
        .choice({
            panel: 'The panel with all its plugins',
            folder: 'A folder of this machine',
            plugin: 'What a plugin gives'
        })
        .required()
        .label('Type'),
    path: joi
        .string()
        .pattern(/^\/[^\0]*$/)
        .max(4_000)
        .label('Folder')
        .description('Of a folder: absolute'),
    plugin: joi.string().max(40).label('Plugin'),
    items: joi
        .array()
        .items(joi.string().max(200))
        .max(1_000)
        .label('Items')
        .description('Of a plugin; default: everything that it gives'),
    oneFileSystem: joi
        .boolean()
        .label('This file system alone')
        .description('Of a folder: leaves out other file systems that are mounted in it')
});

/** When a plan runs by itself. */
export const scheduleSchema = joi.object({
    cron,
    timezone: joi.string().max(64).label('Time zone').description('Default: the setting `timezone`'),
    missed: joi
        .choice({ 'run-once': 'Run once when it can', skip: 'Leave it out' })
        .default('run-once')
        .label('When it was missed')
});

/** When the repository of a plan is checked. */
export const checkSchema = joi.object({
    cron,
    readPercent: joi.number().integer().min(0).max(100).default(5).label('Data read').unit('percent')
});
/** When a plan is drilled. */
export const drillSchema = joi.object({ cron });

/** The fields of a plan. */
export const planFields = {
    name: joi.string().min(1).max(100).label('Name'),
    repositoryId: joi
        .number()
        .integer()
        .min(1)
        .label('Repository')
        .meta({ ui: { ref: 'backup.repositories' } }),
    sources: joi.array().items(sourceSchema).min(1).max(100).label('Sources'),
    excludes: joi
        .array()
        .items(joi.string().min(1).max(1_000))
        .max(200)
        .label('Left out')
        .description('Patterns of restic, as `*.tmp` or `/srv/cache`'),
    tags: joi
        .array()
        .items(joi.string().pattern(/^[\w.-]{1,60}$/))
        .max(20)
        .label('Tags'),
    schedule: joi.typed<Value<typeof scheduleSchema> | null | undefined>(
        scheduleSchema.allow(null).label('Schedule')
    ),
    copyTo: joi
        .array()
        .items(joi.number().integer().min(1))
        .max(mostCopies)
        .unique()
        .label('Copied to')
        .description('Further repositories: each run copies its snapshot there')
        .meta({ ui: { ref: 'backup.repositories' } }),
    retries: joi
        .number()
        .integer()
        .min(0)
        .max(20)
        .label('Tried again')
        .description('After a run that failed'),
    backoffSeconds: joi
        .number()
        .integer()
        .min(1)
        .max(86_400)
        .label('Tried again after')
        .description('Twice as long before each further try')
        .unit('second'),
    check: joi.typed<Value<typeof checkSchema> | null | undefined>(
        checkSchema.allow(null).label('Check of the repository')
    ),
    drill: joi.typed<Value<typeof drillSchema> | null | undefined>(
        drillSchema.allow(null).label('Drill').description('Proves that the newest snapshot comes back')
    ),
    keep: keepSchema.label('Kept').description('All zero: everything stays'),
    notifyOn: joi.choice({ failure: 'When it fails', always: 'Always', never: 'Never' }).label('Notify'),
    enabled: joi.boolean().label('Enabled')
};

/** The body of POST `/plans`. */
export const newPlan = joi.object({
    ...planFields,
    name: planFields.name.required(),
    repositoryId: planFields.repositoryId.required(),
    sources: planFields.sources.required()
});

const ignored = joi.readOnly(joi.any());
/** The body of PUT `/plans/{id}`. */
export const changedPlan = joi.object({
    ...planFields,
    version: joi.number().integer().min(1).label('Version').description('Acts as If-Match'),
    id: ignored,
    nextRunAt: ignored,
    lastRun: ignored,
    lastSuccessAt: ignored,
    hasHooks: ignored
});

/** A plan as a caller writes it. */
export type PlanInput = {
    readonly [K in keyof Value<typeof newPlan>]?: Value<typeof newPlan>[K] | undefined;
};
/** One checked source of a plan: what it backs up. */
export type Source = Value<typeof sourceSchema>;
/** The checked schedule of a plan. */
export type Schedule = Value<typeof scheduleSchema>;
/** When the repository is checked. */
export type CheckRule = Value<typeof checkSchema>;
/** When the plan is drilled. */
export type DrillRule = Value<typeof drillSchema>;
/** The checked rules by which old snapshots are kept. */
export type Keep = Value<typeof keepSchema>;

/** Checks what the schema cannot say. @throws VALIDATION_FAILED 40001 */
export function checkPlan({ sources = [], schedule }: PlanInput): void {
    sources.forEach(({ type, path, plugin, items, oneFileSystem }, index) => {
        const at = `sources.${index}`;
        if (type === 'folder') {
            checkPlace(path ?? '/', `${at}.path`);
        }
        const wrong =
            (type === 'folder') !== (path !== undefined) ||
            (type === 'plugin') !== (plugin !== undefined) ||
            (type !== 'plugin' && items !== undefined) ||
            (type !== 'folder' && oneFileSystem !== undefined);
        if (wrong) {
            throw errors.invalid([
                { path: at, message: `${at} has a path for a folder, and a plugin with items for a plugin` }
            ]);
        }
    });
    const zone = schedule?.timezone;
    if (zone !== undefined && !isZone(zone)) {
        throw errors.invalid([
            {
                path: 'schedule.timezone',
                message: 'schedule.timezone is not a time zone that this machine knows'
            }
        ]);
    }
}
