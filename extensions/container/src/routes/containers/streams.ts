/** Streams: logs, figures, and what happens at the engine. */
import { errors, joi } from '@portico/sdk';

import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import type { LogLine, LogQuery } from '../../streams/logs.ts';
import { containerParams, stackParams } from '../fields.ts';

const logQuery = {
    follow: joi.boolean().default(true).label('Follow'),
    tail: joi.number().integer().min(0).max(100_000).default(200).label('Lines').description('Newest lines'),
    since: joi.string().isoDate().label('From'),
    until: joi.string().isoDate().label('To'),
    stream: joi.choice({ stdout: 'Output', stderr: 'Errors' }).label('Stream')
};
const logEvents = {
    line: joi.object({
        at: joi.string().required().label('Time'),
        stream: joi.valid('stdout', 'stderr').required().label('Stream'),
        text: joi.string().allow('').required().label('Text'),
        service: joi.string().allow('').label('Service')
    }),
    end: joi.object({})
};
const statsEvents = {
    stats: joi.object({
        id: joi.string().required().label('Container'),
        name: joi.string().required().label('Name'),
        at: joi.string().required().label('Time'),
        cpuPercent: joi.number().required().label('Processor').unit('percent'),
        memoryBytes: joi.number().required().label('Memory').unit('byte'),
        memoryLimitBytes: joi.number().required().label('Limit of memory').unit('byte'),
        netRxBytes: joi.number().required().label('Received').unit('byte'),
        netTxBytes: joi.number().required().label('Sent').unit('byte'),
        blockReadBytes: joi.number().required().label('Read').unit('byte'),
        blockWriteBytes: joi.number().required().label('Written').unit('byte'),
        pids: joi.number().required().label('Processes')
    })
};

/** Declares the streams of logs, figures and events. */
export function registerStreamRoutes(ctx: Ctx, services: Services): void {
    registerLogs(ctx, services);
    registerStats(ctx, services);
    registerEvents(ctx, services);
}

async function* eventsOf(lines: AsyncIterable<LogLine>) {
    for await (const { id, ...data } of lines) {
        yield { event: 'line' as const, id, data };
    }
    yield { event: 'end' as const, data: {} };
}

function registerLogs(ctx: Ctx, { logs, stacks }: Services): void {
    ctx.stream({
        path: '/containers/{id}/logs',
        id: 'containerLogs',
        access: 'logs',
        summary: 'Log of a container',
        description: 'Events `line`, whose ids resume, and at last `end`.',
        ui: { title: 'Log', role: 'log' },
        events: logEvents,
        validate: { params: containerParams, query: joi.object(logQuery) },
        handler: async ({ params, query, lastEventId, signal }) => {
            const wanted: LogQuery = { ...query, after: lastEventId, signal };
            return eventsOf(await logs.container(params.id, wanted));
        }
    });
    ctx.stream({
        path: '/stacks/{name}/logs',
        id: 'stackLogs',
        access: 'logs',
        summary: 'Log of a stack',
        description: 'Events `line` of all its services, whose ids resume, and at last `end`.',
        ui: { title: 'Log', role: 'log' },
        events: logEvents,
        validate: {
            params: stackParams,
            query: joi.object({ ...logQuery, service: joi.string().max(63).label('Service') })
        },
        handler: async ({ params, query: { service, ...query }, lastEventId, signal }) => {
            const { services } = await stacks.get(params.name);
            if (service !== undefined && !services.some(({ name }) => name === service)) {
                throw errors.notFound(`The stack has no service ${service}`);
            }
            return eventsOf(await logs.stack(params.name, service, { ...query, after: lastEventId, signal }));
        }
    });
}

async function* statsOf<T>(source: AsyncIterable<T>) {
    for await (const data of source) {
        yield { event: 'stats' as const, data: { ...data } };
    }
}

function registerStats(ctx: Ctx, { stats }: Services): void {
    ctx.stream({
        path: '/containers/{id}/stats',
        id: 'containerStats',
        access: 'read',
        summary: 'Figures of a container, each second',
        ui: { title: 'Figures', role: 'chart' },
        events: statsEvents,
        validate: { params: containerParams },
        handler: async ({ params, signal }) => statsOf(await stats.container(params.id, signal))
    });
    ctx.stream({
        path: '/stats',
        id: 'stats',
        access: 'read',
        summary: 'Figures of all containers, each second',
        ui: { title: 'Figures', role: 'hidden' },
        events: statsEvents,
        handler: ({ signal }) => statsOf(stats.all(signal))
    });
}

function registerEvents(ctx: Ctx, { events }: Services): void {
    ctx.stream({
        path: '/events',
        id: 'events',
        access: 'read',
        summary: 'What happens at the engine',
        ui: { title: 'Events', role: 'log' },
        events: {
            engine: joi.object({
                at: joi.string().required().label('Time'),
                type: joi.string().required().label('Type'),
                action: joi.string().required().label('Action'),
                id: joi.string().allow('').required().label('Id'),
                name: joi.string().allow('').required().label('Name')
            })
        },
        validate: {
            query: joi.object({
                types: joi
                    .string()
                    .pattern(/^[a-z]+(,[a-z]+)*$/, 'words with commas')
                    .label('Types')
                    .description('Such as `container,image`'),
                since: joi.string().isoDate().label('From')
            })
        },
        handler: async ({ query, lastEventId, signal }) => {
            const source = await events.read({
                types: query.types?.split(',') ?? [],
                since: lastEventId ?? query.since,
                signal
            });
            return (async function* named() {
                for await (const data of source) {
                    yield { event: 'engine' as const, id: data.at, data: { ...data } };
                }
            })();
        }
    });
}
