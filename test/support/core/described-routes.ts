/** Routes of every kind, and servers of the panel and of a plugin, for tests of the OpenAPI document. */
import { joi, reply } from '@portico/sdk';
import Joi from 'joi';

import type { DescribedServer } from '../../../core/src/server/http/openapi/document.ts';
import {
    download,
    http,
    json,
    type Route,
    socket,
    stream,
    upload
} from '../../../core/src/server/http/route.ts';

const id = joi.object({ id: joi.number().integer().min(1).required().description('Which') });
const thing = joi.object({
    id: joi.number().integer().required(),
    name: joi.string().required(),
    version: joi.number().integer().required()
});

export const routes = (): Route[] => [
    json({
        id: 'things.list',
        method: 'GET',
        path: '/api/things',
        access: 'things:read',
        summary: 'Lists',
        validate: {
            query: joi.object({
                q: joi.string().max(9).description('Part'),
                limit: joi.number().integer().default(5),
                tag: joi.typed<string[] | undefined>(Joi.array().items(Joi.string()).single())
            })
        },
        returns: joi.array().items(thing),
        handler: () => reply.list([{ id: 1, name: 'a', version: 1 }], { total: 1, next: 'x' })
    }),
    json({
        id: 'things.create',
        method: 'POST',
        path: '/api/things',
        access: 'things:write',
        summary: 'Makes',
        validate: {
            payload: joi.object({ name: joi.string().max(20).required(), size: joi.number().default(3) })
        },
        returns: thing,
        fails: ['ENGINE_REJECTED'],
        handler: ({ payload }) => reply.created('/api/things/2', { id: 2, name: payload.name, version: 1 })
    }),
    json({
        id: 'things.get',
        method: 'GET',
        path: '/api/things/{id}',
        access: 'things:read',
        summary: 'Reads',
        validate: { params: id },
        returns: thing,
        handler: ({ params }) => ({ id: params.id, name: 'a', version: 1 })
    }),
    json({
        id: 'things.update',
        method: 'PUT',
        path: '/api/things/{thing}',
        access: 'things:write',
        summary: 'Changes',
        stepUp: true,
        validate: { payload: joi.object({ name: joi.string(), size: joi.number().default(3) }) },
        returns: thing,
        deprecated: { since: '1.1', removedIn: '2.0' },
        handler: () => ({ id: 1, name: 'a', version: 1 })
    }),
    json({
        id: 'things.lie',
        method: 'GET',
        path: '/api/lie',
        access: 'authenticated',
        summary: 'Lies',
        returns: joi.object({ a: joi.number().required() }),
        handler: () => ({ a: 'x' as never }) // wrong on purpose
    }),
    json({
        id: 'login.read',
        method: 'GET',
        path: '/api/auth/login',
        access: { public: 'No user is logged in yet' },
        summary: 'Challenges',
        handler: () => ({ challenge: 'x' })
    }),
    json({
        id: 'work.start',
        method: 'POST',
        path: '/api/work',
        access: 'things:write',
        summary: 'Begins',
        answers: [202],
        handler: () =>
            reply.accepted({
                id: 1,
                kind: 'work',
                state: 'queued',
                progress: null,
                startedAt: null,
                finishedAt: null,
                result: null,
                error: null
            })
    }),
    stream({
        id: 'things.events',
        path: '/api/events',
        access: 'things:read',
        summary: 'Tells',
        async *handler() {
            yield { data: 1 };
        }
    }),
    socket({
        id: 'things.socket',
        path: '/api/socket/{id}',
        access: 'things:read',
        summary: 'Talks',
        validate: { params: id },
        protocols: ['v1'],
        handler: async () => undefined
    }),
    upload({
        id: 'things.upload',
        method: 'POST',
        path: '/api/upload',
        access: 'things:write',
        summary: 'Takes',
        accepts: ['application/octet-stream'],
        maxBytes: 10,
        handler: () => ({ bytes: 1 })
    }),
    download({
        id: 'things.download',
        path: '/api/files/{path*}',
        access: 'things:read',
        summary: 'Gives',
        handler: () => ({
            size: 1,
            type: 'text/plain',
            version: 'a',
            open: () =>
                (async function* () {
                    yield Buffer.from('x');
                })()
        })
    }),
    http({
        id: 'things.raw',
        methods: ['GET', 'POST'],
        path: '/api/raw',
        access: 'things:read',
        summary: 'Raw',
        raw: 'A foreign protocol of the tests',
        maxBytes: 100,
        handler: () => new Response('hi', { status: 207 })
    })
];

export function plugin(name = 'hello'): DescribedServer {
    return {
        name: `${name}@1.0.0`,
        prefix: `/api/plugins/${name}`,
        routes: [
            json({
                id: 'say',
                method: 'GET',
                path: '/say/{word}',
                access: 'authenticated',
                summary: 'Says',
                handler: () => null
            }),
            json({
                id: 'put',
                method: 'POST',
                path: '/say',
                access: 'hello:write',
                summary: 'Hears',
                handler: () => null
            })
        ]
    };
}

export const server = (): DescribedServer => ({ name: 'core', prefix: '', routes: routes() });
