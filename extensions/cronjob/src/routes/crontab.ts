/** Routes that take crontabs in, and give tasks as one. */
import { errors, isFailure, joi } from '@portico/sdk';

import { findTasks } from '../queries.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { findSource, findSources } from '../sources/sources.ts';
import { type CrontabLine, readCrontab, writeCrontab } from '../tasks/crontab.ts';
import { draftOfRow } from '../tasks/draft.ts';
import { conditionOf } from '../tasks/filter.ts';
import { tag } from '../tasks/input/input.ts';

const lineSchema = joi.object({
    line: joi.number().integer().required().label('Line'),
    task: joi
        .object({})
        .unknown()
        .allow(null)
        .required()
        .label('Task')
        .description('As POST `/tasks` takes it'),
    problem: joi
        .string()
        .allow(null)
        .required()
        .label('Problem')
        .description('What would mean something else than in cron, or why there is no task'),
    taskId: joi
        .number()
        .integer()
        .label('Made as')
        .meta({ ui: { ref: 'cronjob.tasks' } })
});

/** Declares the routes that read and write the format of crontab. */
export function registerCrontabRoutes(ctx: Ctx, services: Services): void {
    registerSources(ctx);
    registerImport(ctx, services);
    registerExport(ctx);
}

function registerSources(ctx: Ctx): void {
    ctx.route({
        method: 'GET',
        path: '/import/sources',
        id: 'importSources',
        access: 'write',
        summary: 'Crontabs and timers of this machine',
        description: 'What the panel may read of them. POST `/import` takes one in.',
        ui: {
            title: 'On this machine',
            order: 6,
            label: 'id',
            empty: 'Nothing is scheduled by cron or systemd'
        },
        returns: joi.array().items(
            joi.object({
                id: joi.string().required().label('Source'),
                kind: joi
                    .choice({
                        crontab: 'The crontab of a user',
                        system: 'A crontab of the system',
                        timer: 'A timer of systemd'
                    })
                    .required()
                    .label('Kind'),
                path: joi.string().allow('').required().label('File'),
                user: joi.string().allow(null).required().label('Account'),
                entries: joi.number().integer().required().label('Entries')
            })
        ),
        handler: async () =>
            (await findSources(ctx)).map(({ id, kind, path, user, lines }) => ({
                ...{ id, kind, path, user },
                entries: lines.filter(({ task }) => task !== null).length
            }))
    });
}

function registerImport(ctx: Ctx, { tasks }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/import',
        id: 'importCrontab',
        access: 'write',
        summary: 'Take a crontab or a timer in',
        description:
            'From this machine (`source`), or a text. Says for each entry which task it makes and what is different from cron. With `dryRun: false` the tasks are made: remove the crontab or disable the timer afterwards, or each of them runs twice.',
        answers: 'done',
        ui: { title: 'Import a crontab' },
        stepUp: true,
        returns: joi.array().items(lineSchema),
        audit: { action: 'import', resource: 'task' },
        validate: {
            payload: joi.object({
                source: joi
                    .string()
                    .max(4_096)
                    .label('Source')
                    .description('An id of GET `/import/sources`; either this or `text`')
                    .meta({ ui: { ref: 'cronjob.importSources' } }),
                text: joi.string().max(262_144).label('Crontab').meta({ media: 'text/x-crontab' }),
                format: joi
                    .choice({ user: 'Of a user', system: 'With accounts, as /etc/crontab' })
                    .default('user')
                    .label('Form'),
                user: joi
                    .string()
                    .max(64)
                    .label('Account')
                    .description("Of all entries of a user's crontab; default: the panel's own")
                    .meta({ ui: { widget: 'account' } }),
                dryRun: joi.boolean().default(true).label('Only look')
            })
        },
        async handler({ payload: { source, text, format, user = null, dryRun }, audit }) {
            if ((source === undefined) === (text === undefined)) {
                throw errors.invalid([{ path: 'source', message: 'Either source or text is needed' }]);
            }
            const lines =
                source === undefined
                    ? readCrontab(text ?? '', format, user)
                    : (await findSource(ctx, source)).lines;
            const answers = [];
            for (const read of lines) {
                answers.push(await checked(read));
            }
            const made = dryRun ? [] : answers.filter(({ task }) => task !== null);
            for (const answer of made) {
                const { task } = await tasks.create(answer.task ?? {});
                Object.assign(answer, { taskId: task.id });
            }
            audit({
                after: {
                    entries: answers.length,
                    made: made.length,
                    ...(source === undefined ? {} : { source })
                }
            });
            return answers.map((each) => ({ ...each, task: each.task === null ? null : { ...each.task } }));
        }
    });

    /** An entry that POST `/tasks` would refuse makes no task. */
    async function checked(read: CrontabLine): Promise<CrontabLine> {
        if (read.task === null) {
            return read;
        }
        try {
            await tasks.check(read.task);
            return read;
        } catch (error) {
            if (!isFailure(error)) {
                throw error;
            }
            const { errors: faults = [] } = (error.data ?? {}) as { errors?: readonly { message: string }[] };
            const why = faults.map(({ message }) => message).join('; ');
            return { ...read, task: null, problem: why === '' ? error.message : why };
        }
    }
}

function registerExport(ctx: Ctx): void {
    ctx.download({
        path: '/export',
        id: 'exportCrontab',
        access: 'output',
        summary: 'Tasks as a crontab',
        description: 'In the format of `/etc/crontab`. What cron cannot do, and scripts, stand in comments.',
        ui: { title: 'Export as a crontab', role: 'action' },
        validate: {
            query: joi.object({
                tag: tag()
                    .label('Tag')
                    .meta({ ui: { ref: 'cronjob.tags' } })
            })
        },
        async handler({ query }) {
            const rows = await ctx.db.read((em) => findTasks(em, conditionOf({ tag: query.tag })));
            const text = Buffer.from(writeCrontab(rows.map(draftOfRow)));
            return {
                size: text.length,
                type: 'text/plain; charset=utf-8',
                name: 'crontab',
                async *open({ start, end }) {
                    yield text.subarray(start, end ?? text.length);
                }
            };
        }
    });
}
