import { joi, reply } from '@portico/sdk';

import { readCursor, writeCursor } from '../platform/cursor.ts';
import { json, type Route, stream } from '../server/http/route.ts';
import type { EngineService } from './service.ts';
import {
    configSchema,
    controlSchema,
    driftSchema,
    logsQuery,
    restoreSchema,
    revisionListSchema,
    revisionParams,
    revisionSchema,
    revisionsQuery,
    statusSchema,
    upstreamsSchema
} from './wire/schema.ts';
import { configView, driftView, revisionView, statusView, summaryView } from './wire/views.ts';

const resource = 'proxyengine';

/** A start waits for the process, and then for one load. */
const controlSeconds = 120;

/** The errors that every control of the engine may answer. */
const controls = ['ENGINE_REJECTED', 'ENGINE_UNAVAILABLE', 'TOOL_MISSING'] as const;

const masking =
    'Hashes, header values, keys, EAB and `advanced` are masked unless the caller has `engine:secrets` and a fresh session';

/** All routes below `/api/proxyengine`. */
export function engineRoutes(engine: EngineService): Route[] {
    return [
        ...controlRoutes(engine),
        ...configRoutes(engine),
        ...revisionRoutes(engine),
        ...observationRoutes(engine)
    ];
}

function controlRoutes(engine: EngineService): Route[] {
    return [
        json({
            method: 'POST',
            path: '/api/proxyengine/start',
            id: 'proxyengine.start',
            fails: controls,
            access: 'engine:control',
            summary: 'Start the engine, with everything that waits',
            description: 'A running engine stays as it is, and the answer says so',
            returns: controlSchema,
            timeoutSeconds: controlSeconds,
            audit: { action: 'start', resource },
            handler: (request) => engine.start(request)
        }),
        json({
            method: 'POST',
            path: '/api/proxyengine/stop',
            id: 'proxyengine.stop',
            fails: controls,
            access: 'engine:control',
            summary: 'Stop the engine, and keep it stopped',
            description:
                'Changes are saved meanwhile and wait. It stays stopped over a restart of the panel, until it is started',
            returns: controlSchema,
            timeoutSeconds: controlSeconds,
            audit: { action: 'stop', resource },
            handler: (request) => engine.stop(request)
        }),
        json({
            method: 'POST',
            path: '/api/proxyengine/restart',
            id: 'proxyengine.restart',
            fails: controls,
            access: 'engine:control',
            summary: 'Stop the engine and start it again',
            returns: controlSchema,
            timeoutSeconds: controlSeconds,
            audit: { action: 'restart', resource },
            handler: (request) => engine.restart(request)
        }),
        json({
            method: 'POST',
            path: '/api/proxyengine/reload',
            id: 'proxyengine.reload',
            fails: controls,
            access: 'engine:control',
            summary: 'Load the configuration, with everything that waits',
            returns: controlSchema,
            timeoutSeconds: controlSeconds,
            audit: { action: 'reload', resource },
            handler: (request) => engine.reload(request)
        }),
        json({
            method: 'POST',
            path: '/api/proxyengine/drift/overwrite',
            id: 'proxyengine.overwrite',
            fails: controls,
            access: 'engine:control',
            summary: 'Make the engine again what the panel left',
            returns: controlSchema,
            timeoutSeconds: controlSeconds,
            audit: { action: 'overwrite', resource },
            handler: (request) => engine.overwriteDrift(request)
        })
    ];
}

function configRoutes(engine: EngineService): Route[] {
    const advanced = (): ReadonlySet<string> => engine.advanced();
    return [
        json({
            method: 'GET',
            path: '/api/proxyengine/config',
            id: 'proxyengine.config',
            fails: ['ENGINE_UNAVAILABLE'],
            access: 'engine:read',
            summary: 'What the engine runs; null when it is stopped',
            description: masking,
            returns: configSchema,
            handler: async ({ actor }) => configView(await engine.configNow(), actor, advanced)
        }),
        json({
            method: 'GET',
            path: '/api/proxyengine/config/desired',
            id: 'proxyengine.desired',
            access: 'engine:read',
            summary: 'What the engine would run with everything that waits',
            description: masking,
            returns: configSchema,
            handler: ({ actor }) => configView(engine.desired(), actor, advanced)
        }),
        json({
            method: 'GET',
            path: '/api/proxyengine/drift',
            id: 'proxyengine.drift',
            fails: ['ENGINE_UNAVAILABLE'],
            access: 'engine:read',
            summary: 'Where the engine is not as the panel left it',
            description: masking,
            returns: driftSchema,
            handler: async ({ actor }) => driftView(await engine.drift(), actor, advanced)
        })
    ];
}

function revisionRoutes(engine: EngineService): Route[] {
    return [
        json({
            method: 'GET',
            path: '/api/proxyengine/revisions',
            id: 'proxyengine.revisions',
            access: 'engine:read',
            summary: 'List revisions, newest first',
            validate: { query: revisionsQuery },
            returns: revisionListSchema,
            handler({ query: { limit, cursor } }) {
                const { rows, total } = engine.revisions({
                    before: readCursor('revision', cursor),
                    limit: limit + 1
                });
                const page = rows.slice(0, limit);
                return reply.list(page.map(summaryView), {
                    total,
                    next: rows.length > limit ? writeCursor('revision', page.at(-1)?.number ?? 0) : null
                });
            }
        }),
        json({
            method: 'GET',
            path: '/api/proxyengine/revisions/{n}',
            id: 'proxyengine.revision',
            access: 'engine:read',
            summary: 'Read one revision: what it changed, and every host as it was',
            description: masking,
            validate: { params: revisionParams },
            returns: revisionSchema,
            handler: ({ params, actor }) => revisionView(engine.revision(params.n), actor)
        }),
        json({
            method: 'POST',
            path: '/api/proxyengine/revisions/{n}/restore',
            id: 'proxyengine.restore',
            fails: ['STEP_UP_REQUIRED', 'REFUSED_BY_PLUGIN', ...controls],
            access: 'engine:control',
            summary: 'Make hosts and engine settings those of a revision',
            description:
                'One change of rows and engine together. Deleted hosts come back with their ids, later ones go. Needs `hosts:write`, and `settings:write` where settings differ',
            validate: { params: revisionParams },
            returns: restoreSchema,
            timeoutSeconds: controlSeconds,
            audit: { action: 'restore', resource },
            handler: (request) => engine.restore(request.params.n, request)
        })
    ];
}

function observationRoutes(engine: EngineService): Route[] {
    return [
        json({
            method: 'GET',
            path: '/api/proxyengine/status',
            id: 'proxyengine.status',
            access: 'engine:read',
            summary: 'How the engine is, and how far it is with the rows',
            returns: statusSchema,
            handler: async () => statusView(await engine.status())
        }),
        stream({
            path: '/api/proxyengine/logs',
            id: 'proxyengine.logs',
            access: 'engine:logs',
            summary: "The last lines of the engine's log and, with `follow`, each further one",
            validate: { query: logsQuery },
            events: { message: joi.string().allow('').description('One line of the log') },
            ui: { role: 'log' },
            handler: ({ query: { lines, follow }, signal }) =>
                eventsOf(engine.logs({ lines, follow, signal }))
        }),
        json({
            method: 'GET',
            path: '/api/proxyengine/upstreams',
            id: 'proxyengine.upstreams',
            fails: ['ENGINE_UNAVAILABLE'],
            access: 'engine:read',
            summary: 'The upstreams as the engine sees them',
            returns: upstreamsSchema,
            handler: async () => [...(await engine.upstreams())]
        })
    ];
}

async function* eventsOf(lines: AsyncIterable<string>): AsyncGenerator<{ readonly data: string }> {
    for await (const line of lines) {
        yield { data: line };
    }
}
