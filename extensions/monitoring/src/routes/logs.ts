/** Routes of the logs of the machine. */
import { errors, joi, pages, reply } from '@portico/sdk';

import { listLogFiles, readLogFile } from '../logs/files.ts';
import { followFile, followJournal } from '../logs/follow.ts';
import { listJournalUnits, readJournal } from '../logs/journal.ts';
import { levels, lineSchema } from '../logs/line.ts';
import type { LogQuery } from '../logs/query.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const sourceSchema = joi.object({
    id: joi
        .string()
        .required()
        .label('Source')
        .meta({ ui: { column: false } }),
    kind: joi
        .choice({ file: 'File', unit: 'Unit' })
        .required()
        .label('Kind')
        .meta({ ui: { column: 2 } }),
    title: joi
        .string()
        .required()
        .label('Log')
        .meta({ ui: { column: 1 } }),
    bytes: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .label('Size')
        .unit('byte')
        .description('Null where it is not known')
        .meta({ ui: { column: 3 } })
});
const time = joi.string().isoDate().max(40);
/** Texts without line ends and other control characters. */
const part = joi
    .string()
    .min(1)
    .max(200)
    .pattern(/^\P{Cc}+$/u);
const source = /^(file|unit):(.+)$/;

const asked = {
    source: joi
        .string()
        .max(600)
        .pattern(source)
        .required()
        .label('Log')
        .meta({ ui: { ref: 'monitoring.logSources' } }),
    q: part.label('Text').description('A part of the line; the letters a to z match in both cases'),
    level: joi
        .valid(...levels)
        .label('Level')
        .description('And what is more severe')
};

/** Declares `/logs/sources`, `/logs/lines` and `/logs/follow`. */
export function registerLogRoutes(ctx: Ctx, services: Services): void {
    registerSources(ctx);
    registerLines(ctx, services);
    registerFollow(ctx, services);
}

function registerSources(ctx: Ctx): void {
    ctx.route({
        method: 'GET',
        path: '/logs/sources',
        id: 'logSources',
        access: 'logs',
        summary: 'Logs that can be read',
        ui: {
            title: 'Logs',
            order: 10,
            label: 'title',
            empty: 'No log can be read: see the setting logFiles',
            links: { lines: { operationId: 'monitoring.logs', parameters: { source: 'id' } } }
        },
        returns: joi.array().items(sourceSchema),
        description: 'Files below /var/log that the setting `logFiles` names, and units with a journal.',
        async handler() {
            const [files, units] = await Promise.all([listLogFiles(ctx), listJournalUnits(ctx)]);
            return [
                ...files.map(({ path, bytes }) => ({
                    id: `file:${path}`,
                    kind: 'file' as const,
                    title: path,
                    bytes
                })),
                ...units.map((name) => ({
                    id: `unit:${name}`,
                    kind: 'unit' as const,
                    title: name,
                    bytes: null
                }))
            ];
        }
    });
}

function registerLines(ctx: Ctx, { machine }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/logs/lines',
        id: 'logs',
        access: 'logs',
        summary: 'Lines of one log',
        ui: { title: 'Lines', empty: 'No line is like that' },
        returns: joi.array().items(lineSchema),
        description:
            'The newest line first. A page is looked for during some seconds: it may have fewer lines than `limit`, also none, and a next page. Lines that are longer than 16 KiB are cut.',
        validate: {
            query: joi.object({
                ...asked,
                from: time.label('From'),
                to: time.label('To'),
                ...pages.query(100, 1_000)
            })
        },
        async handler({ query, signal }) {
            const { kind, name } = readSource(query.source);
            const wanted: LogQuery = {
                q: query.q ?? null,
                level: query.level ?? null,
                from: query.from === undefined ? null : Date.parse(query.from),
                to: query.to === undefined ? null : Date.parse(query.to)
            };
            const page = { limit: query.limit, cursor: query.cursor, now: machine.now(), signal };
            const { lines, next } =
                kind === 'file'
                    ? await readLogFile(ctx, name, wanted, page)
                    : await readJournal(ctx, name, wanted, page);
            return reply.list(lines, { next });
        }
    });
}

function registerFollow(ctx: Ctx, { machine }: Services): void {
    ctx.stream({
        path: '/logs/follow',
        id: 'followLogs',
        access: 'logs',
        summary: 'Lines of one log, as they are written',
        ui: { title: 'Follow', role: 'log' },
        description: 'From now on; with `Last-Event-ID` after that line, where it is still there.',
        validate: { query: joi.object(asked) },
        events: { line: lineSchema },
        async *handler({ query, lastEventId, signal }) {
            const { kind, name } = readSource(query.source);
            const follow = kind === 'file' ? followFile : followJournal;
            const lines = follow(ctx, name, {
                query: { q: query.q ?? null, level: query.level ?? null, from: null, to: null },
                after: lastEventId ?? null,
                now: () => machine.now(),
                signal: AbortSignal.any([signal, ctx.signal])
            });
            for await (const { id, line } of lines) {
                yield { event: 'line', id, data: line };
            }
        }
    });
}

/** @throws NOT_FOUND 40400 for what is no name of a unit */
function readSource(text: string): { readonly kind: 'file' | 'unit'; readonly name: string } {
    const [, kind, name = ''] = source.exec(text) ?? [];
    if (kind === 'unit' && !/^[A-Za-z0-9:_.\\@-]{1,255}$/.test(name)) {
        throw errors.notFound(`There is no unit ${name}`);
    }
    return { kind: kind === 'unit' ? 'unit' : 'file', name };
}
