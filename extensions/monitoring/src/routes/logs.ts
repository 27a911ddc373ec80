/** Routes of the logs of the machine. */
import { errors, joi, pages, reply } from '@portico/sdk';

import { engineLogRoute, followEngineLog, readEngineLog } from '../logs/engine.ts';
import { listLogFiles, readLogFile } from '../logs/files.ts';
import { followFile, followJournal, type FollowOptions } from '../logs/follow.ts';
import { listJournalUnits, readJournal } from '../logs/journal.ts';
import { levels, lineSchema } from '../logs/line.ts';
import type { LogQuery } from '../logs/query.ts';
import { followRequests } from '../logs/requests.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const sourceSchema = joi.object({
    id: joi
        .string()
        .required()
        .label('Source')
        .meta({ ui: { column: false } }),
    kind: joi
        .choice({ file: 'File', unit: 'Unit', engine: 'Proxy engine', access: 'Requests' })
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
type SourceKind = 'file' | 'unit' | 'engine' | 'access';

const time = joi.string().isoDate().max(40);
/** Texts without line ends and other control characters. */
const part = joi
    .string()
    .min(1)
    .max(200)
    .pattern(/^\P{Cc}+$/u);
const source = /^(?:(file|unit):(.+)|engine|access)$/;

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
        description:
            "Files below /var/log that the setting `logFiles` names, units with a journal, the proxy engine's log for those who may read it in the panel, and the newest requests to the hosts.",
        async handler({ actor }) {
            const [files, units, routes] = await Promise.all([
                listLogFiles(ctx),
                listJournalUnits(ctx),
                ctx.api.routes({ for: actor, effect: 'read' })
            ]);
            const isEngineShown = routes.some(({ id }) => id === engineLogRoute);
            return [
                ...(isEngineShown
                    ? [{ id: 'engine', kind: 'engine' as const, title: 'Proxy engine', bytes: null }]
                    : []),
                { id: 'access', kind: 'access' as const, title: 'Requests to the hosts', bytes: null },
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

function registerLines(ctx: Ctx, { machine, requests }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/logs/lines',
        id: 'logs',
        access: 'logs',
        summary: 'Lines of one log',
        ui: { title: 'Lines', empty: 'No line is like that' },
        returns: joi.array().items(lineSchema),
        description:
            "The newest line first. A page is looked for during some seconds: it may have fewer lines than `limit`, also none, and a next page. Lines that are longer than 16 KiB are cut. Of the engine's log the newest 5,000 lines are searched, in one page; of the requests the newest 5,000 since the plugin started, while the panel's setting `engine.accessLog` is on.",
        validate: {
            query: joi.object({
                ...asked,
                from: time.label('From'),
                to: time.label('To'),
                ...pages.query(100, 1_000)
            })
        },
        async handler({ query, actor, signal }) {
            const { kind, name } = readSource(query.source);
            const wanted: LogQuery = {
                q: query.q ?? null,
                level: query.level ?? null,
                from: query.from === undefined ? null : Date.parse(query.from),
                to: query.to === undefined ? null : Date.parse(query.to)
            };
            const page = { limit: query.limit, cursor: query.cursor, now: machine.now(), signal };
            if (kind === 'engine') {
                return reply.list(await readEngineLog(ctx, actor, wanted, page), { next: null });
            }
            const { lines, next } =
                kind === 'access'
                    ? requests.find(wanted, ctx.settings.trafficAddresses, page)
                    : kind === 'file'
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
        description:
            'From now on; with `Last-Event-ID` after that line of a file or a unit, where it is still there.',
        validate: { query: joi.object(asked) },
        events: { line: lineSchema },
        async *handler({ query, actor, lastEventId, signal }) {
            const { kind, name } = readSource(query.source);
            const how: FollowOptions = {
                query: { q: query.q ?? null, level: query.level ?? null, from: null, to: null },
                after: lastEventId ?? null,
                now: () => machine.now(),
                signal: AbortSignal.any([signal, ctx.signal])
            };
            const lines = {
                file: () => followFile(ctx, name, how),
                unit: () => followJournal(ctx, name, how),
                engine: () => followEngineLog(ctx, actor, how),
                access: () => followRequests(ctx, how)
            }[kind]();
            for await (const { id, line } of lines) {
                yield { event: 'line', id, data: line };
            }
        }
    });
}

/** @throws NOT_FOUND 40400 for what is no name of a unit */
function readSource(text: string): { readonly kind: SourceKind; readonly name: string } {
    const [, kind, name = ''] = source.exec(text) ?? [];
    if (kind === 'unit' && !/^[A-Za-z0-9:_.\\@-]{1,255}$/.test(name)) {
        throw errors.notFound(`There is no unit ${name}`);
    }
    return { kind: (kind ?? text) as SourceKind, name };
}
