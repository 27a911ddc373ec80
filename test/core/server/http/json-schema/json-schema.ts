import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type AnySchema, joi, reply } from '@portico/sdk';
import Joi from 'joi';

import type { Use } from '../../../../../core/src/server/http/json-schema/description.ts';
import { jsonSchemaOf } from '../../../../../core/src/server/http/json-schema/json-schema.ts';
import {
    assertExpressible,
    createOpenApi,
    type DescribedServer
} from '../../../../../core/src/server/http/openapi/document.ts';
import type { Operation } from '../../../../../core/src/server/http/openapi/operation.ts';
import { openApiRoutes } from '../../../../../core/src/server/http/openapi/routes.ts';
import {
    download,
    http,
    json,
    type Route,
    socket,
    stream,
    upload
} from '../../../../../core/src/server/http/route.ts';
import { createHttpServer, type HttpServer } from '../../../../../core/src/server/http/server.ts';
import { at, contractCheck } from '../../../../support/api/contract.ts';
import { validateDocument } from '../../../../support/api/document.ts';
import { createTestPorts } from '../../../../support/core/http-ports.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const body: Use = { side: 'body', defaults: true };
const number = { type: 'number', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER };
const answer: Use = { side: 'answer', defaults: false };
const text: Use = { side: 'text', defaults: true };
const of = (schema: Joi.Schema, use: Use = body): object => jsonSchemaOf(schema as unknown as AnySchema, use);

const id = joi.object({ id: joi.number().integer().min(1).required().description('Which') });
const thing = joi.object({
    id: joi.number().integer().required(),
    name: joi.string().required(),
    version: joi.number().integer().required()
});

const routes = (): Route[] => [
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
        handler: () => reply.list([{ id: 1, name: 'a', version: 1 }], { total: 1, next: 'x' }) as never
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
        handler: () => ({ a: 'x' }) as never
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

function plugin(name = 'hello'): DescribedServer {
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

const server = (): DescribedServer => ({ name: 'core', prefix: '', routes: routes() });

describe('jsonSchemaOf', () => {
    const cases: [string, Joi.Schema, object, Use?][] = [
        ['string', Joi.string(), { type: 'string', minLength: 1 }],
        ['empty string', Joi.string().allow('').max(5), { type: 'string', maxLength: 5 }],
        [
            'empty beside a pattern',
            Joi.string().allow('').pattern(/^a/),
            { anyOf: [{ type: 'string', minLength: 1, pattern: '^a' }, { const: '' }] }
        ],
        ['null', Joi.string().min(2).allow(null), { type: ['string', 'null'], minLength: 2 }],
        [
            'null of a choice',
            Joi.string().valid('a', 'b').allow(null),
            { type: ['string', 'null'], enum: ['a', 'b', null] }
        ],
        ['only null', Joi.valid(null), { type: 'null' }],
        [
            'a choice with its words',
            joi.choice({ skip: 'Skip it', queue: 'Wait' }).allow(null).default('skip') as never,
            {
                oneOf: [
                    { type: 'string', const: 'skip', title: 'Skip it' },
                    { type: 'string', const: 'queue', title: 'Wait' },
                    { type: 'null' }
                ],
                default: 'skip'
            }
        ],
        [
            'a choice of one',
            joi.choice({ local: 'A folder' }) as never,
            { type: 'string', const: 'local', title: 'A folder' }
        ],
        [
            'what pages show',
            Joi.object({
                keep: Joi.number()
                    .label('Keep for')
                    .unit('day')
                    .example(3)
                    .meta({ ui: { column: 2 } }),
                script: Joi.string()
                    .meta({ media: 'text/x-shellscript' })
                    .meta({ ui: { advanced: true } }),
                id: joi.readOnly(joi.string().required()) as never
            }),
            {
                type: 'object',
                properties: {
                    keep: {
                        ...number,
                        title: 'Keep for',
                        'x-unit': 'day',
                        examples: [3],
                        'x-ui': { column: 2 }
                    },
                    script: {
                        type: 'string',
                        minLength: 1,
                        contentMediaType: 'text/x-shellscript',
                        'x-ui': { advanced: true }
                    },
                    id: { type: 'string', minLength: 1, readOnly: true }
                },
                additionalProperties: false
            }
        ],
        ['one value', Joi.valid('x').required(), { type: 'string', const: 'x' }],
        ['other values refused', Joi.number().invalid(3), { ...number, not: { enum: [3] } }],
        [
            'a rule and no letter case',
            Joi.string().pattern(/^a[b-d]\w(?<x>e)$/i),
            { type: 'string', minLength: 1, pattern: '^[aA][b-dB-D]\\w(?<x>[eE])$' }
        ],
        [
            'inverted pattern',
            Joi.string().pattern(/x/, { invert: true }),
            { type: 'string', minLength: 1, not: { pattern: 'x' } }
        ],
        [
            'two patterns',
            Joi.string().pattern(/a/).pattern(/b/),
            { type: 'string', minLength: 1, pattern: 'a', allOf: [{ pattern: 'b' }] }
        ],
        [
            'formats',
            Joi.object({
                a: Joi.string().email(),
                b: Joi.string().uri(),
                c: Joi.string().hostname(),
                d: Joi.string().isoDate(),
                e: Joi.string().guid()
            }),
            {
                type: 'object',
                properties: {
                    a: { type: 'string', minLength: 1, format: 'email' },
                    b: { type: 'string', minLength: 1, format: 'uri' },
                    c: { type: 'string', minLength: 1, format: 'hostname' },
                    d: { type: 'string', minLength: 1, format: 'date-time' },
                    e: { type: 'string', minLength: 1, format: 'uuid' }
                },
                additionalProperties: false
            }
        ],
        [
            'lower case as it is',
            Joi.string().lowercase(),
            { type: 'string', minLength: 1, pattern: '^[^A-Z]*$' }
        ],
        ['lower case made', Joi.string().lowercase(), { type: 'string', minLength: 1 }, text],
        [
            'numbers',
            Joi.number().integer().min(1).max(5).multiple(2),
            { type: 'integer', minimum: 1, maximum: 5, multipleOf: 2 }
        ],
        [
            'open bounds',
            Joi.number().greater(1).less(5),
            { type: 'number', exclusiveMinimum: 1, exclusiveMaximum: 5 }
        ],
        ['port', Joi.number().port(), { type: 'integer', minimum: 0, maximum: 65535 }],
        ['boolean', Joi.boolean().default(false), { type: 'boolean', default: false }],
        [
            'no default in a change',
            Joi.boolean().default(false),
            { type: 'boolean' },
            { side: 'body', defaults: false }
        ],
        ['a default that is computed', Joi.number().default(() => 3), number],
        [
            'words',
            Joi.number().description('How long').unit('ms').example(5),
            { ...number, description: 'How long', 'x-unit': 'ms', examples: [5] }
        ],
        [
            'a secret',
            Joi.string().meta({ secret: true }),
            { type: 'string', minLength: 1, format: 'password', writeOnly: true }
        ],
        [
            'a secret shown',
            Joi.string().meta({ secret: true }),
            { type: 'string', minLength: 1, format: 'password' },
            answer
        ],
        ['any', Joi.any(), {}],
        ['any object', Joi.object(), { type: 'object' }],
        ['no keys', Joi.object({}), { type: 'object', additionalProperties: false }],
        [
            'keys',
            Joi.object({ a: Joi.string().required(), b: Joi.any().strip(), c: Joi.forbidden() }),
            {
                type: 'object',
                properties: { a: { type: 'string', minLength: 1 }, b: { readOnly: true } },
                required: ['a'],
                additionalProperties: false
            }
        ],
        ['open', Joi.object({ a: Joi.forbidden() }).unknown(), { type: 'object', properties: { a: false } }],
        [
            'record',
            Joi.object().pattern(Joi.string(), Joi.number()),
            { type: 'object', additionalProperties: number }
        ],
        [
            'record of names',
            Joi.object().pattern(Joi.string().valid('a', 'b'), Joi.number()),
            {
                type: 'object',
                additionalProperties: number,
                propertyNames: { type: 'string', enum: ['a', 'b'] }
            }
        ],
        [
            'patterns',
            Joi.object().pattern(/^a/, Joi.number()),
            { type: 'object', patternProperties: { '^a': number }, additionalProperties: false }
        ],
        [
            'or',
            Joi.object({ a: 1, b: 2 }).or('a', 'b').unknown(),
            {
                type: 'object',
                properties: { a: { type: 'number', const: 1 }, b: { type: 'number', const: 2 } },
                anyOf: [
                    { required: ['a'], properties: { a: {} } },
                    { required: ['b'], properties: { b: {} } }
                ]
            }
        ],
        [
            'and, with, without',
            Joi.object()
                .keys({ a: Joi.any(), b: Joi.any(), c: Joi.any() })
                .and('a', 'b')
                .with('a', 'c')
                .without('b', 'c'),
            {
                type: 'object',
                properties: { a: {}, b: {}, c: {} },
                additionalProperties: false,
                dependentRequired: { a: ['b'], b: ['a'] },
                allOf: [{ dependentRequired: { a: ['c'] } }],
                not: { required: ['b', 'c'] }
            }
        ],
        [
            'a list',
            Joi.array().items(Joi.string()).min(1).max(3).unique(),
            {
                type: 'array',
                items: { type: 'string', minLength: 1 },
                minItems: 1,
                maxItems: 3,
                uniqueItems: true
            }
        ],
        [
            'a list of several',
            Joi.array().items(Joi.string(), Joi.number()),
            { type: 'array', items: { anyOf: [{ type: 'string', minLength: 1 }, number] } }
        ],
        [
            'a tuple',
            Joi.array().ordered(Joi.string().required(), Joi.number()),
            {
                type: 'array',
                prefixItems: [{ type: 'string', minLength: 1 }, number],
                items: false,
                minItems: 1
            }
        ],
        [
            'one or a list',
            Joi.array().items(Joi.number()).single(),
            { anyOf: [{ type: 'array', items: number }, number] }
        ],
        [
            'alternatives',
            Joi.alternatives().try(Joi.string(), Joi.number()).allow(null),
            { anyOf: [{ type: 'string', minLength: 1 }, number, { type: 'null' }] }
        ],
        [
            'exactly one',
            Joi.alternatives().try(Joi.string(), Joi.number()).match('one'),
            { oneOf: [{ type: 'string', minLength: 1 }, number] }
        ],
        [
            'a condition',
            Joi.object({
                t: Joi.string().valid('a', 'b').default('a'),
                u: Joi.string().when('t', { is: 'a', then: Joi.required(), otherwise: Joi.forbidden() })
            }),
            {
                type: 'object',
                properties: {
                    t: { type: 'string', enum: ['a', 'b'], default: 'a' },
                    u: { type: 'string', minLength: 1 }
                },
                additionalProperties: false,
                if: { properties: { t: { type: 'string', const: 'a' } } },
                then: { required: ['u'] },
                else: { not: { required: ['u'] } }
            }
        ],
        [
            'a condition without parent',
            Joi.array().items(Joi.any().when('/x', { is: 1, then: Joi.string(), otherwise: Joi.number() })),
            { type: 'array', items: { allOf: [{}, { anyOf: [{ type: 'string', minLength: 1 }, number] }] } }
        ],
        [
            'alternatives on a condition',
            Joi.alternatives().conditional('a', { is: 1, then: Joi.number(), otherwise: Joi.boolean() }),
            { anyOf: [number, { type: 'boolean' }] }
        ],
        [
            'a described rule of its own',
            Joi.string()
                .description('A name')
                .custom((value: string) => value, 'No reserved word'),
            { type: 'string', minLength: 1, description: 'A name. No reserved word.' }
        ],
        ['a date in an address', Joi.date().iso(), { type: 'string', format: 'date-time' }, text],
        ['a date in an answer', Joi.date(), { type: 'string', format: 'date-time' }, answer],
        [
            'bytes in an address',
            Joi.binary().encoding('base64'),
            { type: 'string', contentEncoding: 'base64' },
            text
        ],
        [
            'empty',
            Joi.string().max(2).empty(''),
            {
                anyOf: [
                    { type: 'string', minLength: 1, maxLength: 2 },
                    { type: 'string', const: '' }
                ]
            }
        ]
    ];
    for (const [name, schema, expected, use] of cases) {
        it(`expresses ${name}`, () => {
            expect(of(schema, use)).to.equal(expected);
        });
    }

    it('names the place of everything that JSON Schema cannot say', () => {
        const refused: [Joi.Schema, RegExp, Use?][] = [
            [
                Joi.object({ a: Joi.object({ b: Joi.string().custom((value: string) => value) }) }),
                /^a\.b: .*custom rule/
            ],
            [Joi.object({ a: Joi.number().min(Joi.ref('b')), b: Joi.number() }), /^a: .*another field/],
            [Joi.array().items(Joi.symbol()), /^\*: .*the type symbol/],
            [Joi.function(), /./],
            [Joi.date(), /isoDate/],
            [Joi.binary(), /base64/],
            [Joi.date().min('now'), /bounds/, text],
            [Joi.object({ a: Joi.link('#x') }).id('x'), /the type link/],
            [Joi.any().external(() => undefined), /external/],
            [Joi.string().failover('x'), /failover/],
            [Joi.number().prefs({ convert: true }), /preference convert/],
            [Joi.object({ a: Joi.any() }).rename('b', 'a'), /renamed/],
            [Joi.object().with('a', 'b.c'), /own keys/],
            [Joi.array().unique((a, b) => a === b), /function/],
            [Joi.string().valid('A').insensitive(), /letter case/],
            [Joi.string().pattern(/a/m), /the pattern/],
            [Joi.string().pattern(new RegExp('\\@')), /flag u/],
            [Joi.string().valid(Joi.ref('a')), /another field/],
            [Joi.boolean().truthy('yes'), /other words/],
            [Joi.string().min(3, 'utf8'), /bytes/],
            [Joi.object().instance(Date), /instance/],
            [Joi.string().creditCard(), /creditCard/]
        ];
        for (const [schema, message, use] of refused) {
            expect(() => of(schema, use), JSON.stringify(schema.describe())).to.throw(TypeError, message);
        }
    });

    it('refuses what no page understands', () => {
        const wrong: [object, RegExp][] = [
            [{ widgets: 'cron' }, /^a: ui has no widgets: it knows widget, group/],
            [{ widget: 'calendar' }, /^a: ui\.widget must be one of lines, cron/],
            [{ column: 0 }, /^a: ui\.column must be false, or a whole number/],
            [{ tones: { ok: 'green' } }, /^a: ui\.tones must be an object whose values/],
            [{ ref: '' }, /^a: ui\.ref must be a text/]
        ];
        for (const [ui, message] of wrong) {
            expect(() => of(Joi.object({ a: Joi.string().meta({ ui }) }))).to.throw(TypeError, message);
        }
    });

    it('leaves out what it cannot say, and no more, where the schema is only shown', () => {
        const schema = Joi.object({
            zone: Joi.string()
                .max(9)
                .custom((value: string) => value)
                .description('A zone'),
            size: Joi.number().min(Joi.ref('least')).label('Size'),
            least: Joi.number()
        });
        expect(() => of(schema)).to.throw(TypeError, /custom rule/);
        expect(of(schema, { ...body, lenient: true })).to.equal({
            type: 'object',
            properties: {
                zone: { type: 'string', minLength: 1, maxLength: 9, description: 'A zone' },
                size: { type: 'number', title: 'Size' },
                least: number
            },
            additionalProperties: false
        });
        expect(of(Joi.object({ a: Joi.any() }).rename('b', 'a'), { ...body, lenient: true })).to.equal({
            type: 'object'
        });
    });
});

describe('assertExpressible', () => {
    it('names the route and the place', () => {
        const make =
            (validate: object, more: object = {}): (() => void) =>
            () =>
                assertExpressible({
                    kind: 'json',
                    id: 'a.b',
                    method: 'POST',
                    path: '/a/{id}',
                    access: 'authenticated',
                    summary: '',
                    validate,
                    handler: () => null,
                    ...more
                } as never);
        expect(make({ payload: Joi.object({ x: Joi.symbol() }) })).to.throw(
            TypeError,
            'Route POST /a/{id} (a.b) cannot be described: payload: x: JSON Schema cannot express the type symbol'
        );
        expect(make({ params: Joi.object({ name: Joi.string() }) })).to.throw(
            TypeError,
            /params: name does not stand in the path/
        );
        expect(make({ params: Joi.object({}) })).to.throw(TypeError, /params: id stands in the path/);
        expect(make({ query: Joi.object({ tags: Joi.array().items(Joi.string()) }) })).to.throw(
            TypeError,
            /add \.single\(\)/
        );
        expect(make({ query: Joi.object({ a: Joi.object({}) }) })).to.throw(TypeError, /no address holds/);
        expect(make({ query: Joi.object({ a: Joi.any(), b: Joi.any() }).or('a', 'b') })).to.throw(
            TypeError,
            /anyOf over parameters/
        );
        expect(make({}, { path: '/a/{id?}' })).to.throw(TypeError, /a route for each form/);
        expect(make({}, { returns: Joi.string() })).to.throw(
            TypeError,
            /data is an object, an array or null/
        );
        expect(
            make({ params: Joi.object({ id: Joi.number() }), payload: Joi.object({ x: Joi.string() }) })
        ).to.not.throw();
    });
});

describe('createOpenApi', () => {
    const document = createOpenApi({ servers: () => [server(), plugin()], version: '1.2.3' }).document();
    const operation = (method: string, path: string): Operation => {
        const found = document.paths[path]?.[method];
        if (found === undefined) {
            throw new Error(`There is no ${method} ${path}`);
        }
        return found;
    };

    const bodyProperties = ({ requestBody }: Operation): object | undefined =>
        (requestBody as { content: Record<string, { schema: { properties: object } }> }).content[
            'application/json'
        ]?.schema.properties;

    it('makes a valid document of every route, each once', () => {
        expect(validateDocument(document)).to.equal([]);
        const ids = Object.values(document.paths)
            .flatMap((item) => Object.values(item).map((operation) => operation.operationId))
            .sort();
        expect(ids).to.equal([
            'hello.put',
            'hello.say',
            'login.read',
            'things.create',
            'things.download',
            'things.events',
            'things.get',
            'things.lie',
            'things.list',
            'things.raw',
            'things.raw.POST',
            'things.socket',
            'things.update',
            'things.upload',
            'work.start'
        ]);
        expect(document.info['version']).to.equal('1.2.3');
    });

    it('merges paths that differ in the name of a parameter only', () => {
        expect(Object.keys(document.paths['/api/things/{id}'] ?? {})).to.equal(['get', 'put']);
        expect(operation('put', '/api/things/{id}').parameters[0]?.['name']).to.equal('id');
    });

    it('says what a route asks for and how it can fail', () => {
        const create = operation('post', '/api/things');
        expect(create['x-permission']).to.equal('things:write');
        expect(create['x-effect']).to.equal('write');
        expect(create.security).to.equal([{ bearer: ['things:write'] }]);
        expect(Object.keys(create.responses)).to.equal([
            '201',
            '400',
            '401',
            '403',
            '408',
            '409',
            '413',
            '415',
            '422',
            '500',
            '503',
            '507'
        ]);
        expect(create.parameters.map((each) => each['$ref'])).to.equal([
            '#/components/parameters/IdempotencyKey',
            '#/components/parameters/RequestId'
        ]);
        const update = operation('put', '/api/things/{id}');
        expect(update['x-step-up']).to.equal(true);
        expect(update.deprecated).to.equal(true);
        expect(Object.keys(update.responses)).to.include(['404', '412']);
        expect(bodyProperties(update)).to.equal({ name: { type: 'string', minLength: 1 }, size: number });
        expect(bodyProperties(create)).to.equal({
            name: { type: 'string', minLength: 1, maxLength: 20 },
            size: { ...number, default: 3 }
        });
        const login = operation('get', '/api/auth/login');
        expect([login.security, login['x-public'], Object.keys(login.responses)]).to.equal([
            [],
            'No user is logged in yet',
            ['200', '304', '400', '429', '500', '503']
        ]);
        expect(operation('get', '/api/things').security).to.equal([
            { bearer: ['things:read'] },
            { ticket: [] }
        ]);
        expect(document.components['schemas']).to.include(['Thing', 'Task', 'Failure', 'NotFoundFailure']);
        expect(Object.keys(operation('post', '/api/work').responses)[0]).to.equal('202');
        expect(operation('get', '/api/socket/{id}')['x-websocket']).to.equal({
            protocols: ['v1'],
            maxMessageBytes: 1024 * 1024
        });
    });

    it('leaves room for what a plugin may answer of its own', () => {
        const { responses, tags, 'x-permission': permission } = operation('post', '/api/plugins/hello/say');
        expect([tags, permission]).to.equal([['hello'], 'hello:write']);
        expect(Object.keys(responses)).to.equal([
            '200',
            '201',
            '202',
            '400',
            '401',
            '403',
            '404',
            '408',
            '409',
            '412',
            '413',
            '415',
            '500',
            '503',
            '507',
            'default'
        ]);
        const conflict = at(document as never, responses['409']?.['$ref'] as string) as {
            content: Record<string, { schema: { anyOf: { properties?: { code: object } }[] } }>;
        };
        expect(conflict.content['application/json']?.schema.anyOf.at(-1)?.properties?.code).to.include({
            type: 'integer',
            minimum: 40950,
            maximum: 40999
        });
    });

    it('is kept until what is mounted changes, and holds on to nothing', () => {
        let mounted = [server()];
        const openApi = createOpenApi({ servers: () => mounted, version: '1' });
        const first = openApi.document();
        expect(openApi.document()).to.shallow.equal(first);
        mounted = [...mounted, plugin()];
        expect(openApi.document().paths).to.include('/api/plugins/hello/say/{word}');
        mounted = mounted.slice(0, 1);
        expect(openApi.document().paths).to.equal(first.paths);
        expect(openApi.document().tags.map((tag) => tag.name)).to.not.include('hello');
    });
});

describe('contractCheck', () => {
    const all: HttpServer[] = [];
    const ports = { ...createTestPorts(), checkReturns: false };
    const openApi = createOpenApi({ servers: () => all, version: '1' });
    const core = createHttpServer({
        name: 'core',
        prefix: '',
        routes: [...routes(), ...openApiRoutes(() => openApi)],
        ports
    });
    all.push(core);
    const ask = async (
        method: string,
        url: string,
        options: { payload?: string; headers?: Record<string, string> } = {}
    ): Promise<{ status: number; headers: Record<string, string>; text: string }> => {
        const got = await core.inject({
            method,
            url,
            headers: {
                authorization: 'Bearer admin',
                ...(options.payload === undefined ? {} : { 'content-type': 'application/json' }),
                ...options.headers
            },
            ...(options.payload === undefined ? {} : { payload: options.payload })
        });
        return { status: got.statusCode, headers: got.headers as Record<string, string>, text: got.payload };
    };

    it('passes every answer of a server that does what it says, and finds the one that does not', async () => {
        await core.start();
        try {
            const check = contractCheck(openApi.document());
            const asked: [string, string, { payload?: string; headers?: Record<string, string> }?][] = [
                ['GET', '/api/things'],
                ['HEAD', '/api/things'],
                ['GET', '/api/things/1'],
                ['GET', '/api/things/x'],
                ['GET', '/api/things?limit=x'],
                ['POST', '/api/things', { payload: '{"name":"a"}' }],
                ['POST', '/api/things', { payload: '{' }],
                ['POST', '/api/things', { payload: '{}', headers: { 'content-type': 'text/plain' } }],
                ['GET', '/api/things', { headers: { authorization: '' } }],
                [
                    'POST',
                    '/api/things',
                    { payload: '{"name":"a"}', headers: { authorization: 'Bearer viewer' } }
                ],
                ['PUT', '/api/things/1', { payload: '{}' }],
                ['GET', '/api/auth/login'],
                ['POST', '/api/work'],
                ['GET', '/api/events'],
                ['GET', '/api/socket/1'],
                ['GET', '/api/files/a/b'],
                ['GET', '/api/files/a', { headers: { range: 'bytes=0-0' } }],
                ['GET', '/api/files/a', { headers: { range: 'bytes=9-' } }],
                ['GET', '/api/raw'],
                ['GET', '/api/nothing'],
                ['DELETE', '/api/things'],
                ['GET', '/api/openapi.json'],
                [
                    'POST',
                    '/api/upload',
                    { payload: 'x', headers: { 'content-type': 'application/octet-stream' } }
                ],
                [
                    'POST',
                    '/api/upload',
                    { payload: 'x'.repeat(99), headers: { 'content-type': 'application/octet-stream' } }
                ]
            ];
            for (const [method, url, options] of asked) {
                const got = await ask(method, url, options);
                check(method, url, got.status, got.headers, got.text);
            }
            const lie = await ask('GET', '/api/lie');
            expect(() => check('GET', '/api/lie', lie.status, lie.headers, lie.text)).to.throw(
                /\/data\/a must be number/
            );
            const good = await ask('GET', '/api/things/1');
            expect(() =>
                check('GET', '/api/things/1', 200, { ...good.headers, 'x-request-id': undefined }, good.text)
            ).to.throw(/X-Request-Id is missing/);
            expect(() => check('GET', '/api/things/1', 418, good.headers, good.text)).to.throw(
                /only 200, 304/
            );
            expect(() =>
                check(
                    'GET',
                    '/api/things/1',
                    200,
                    good.headers,
                    good.text.replace('"message"', '"extra":1,"message"')
                )
            ).to.throw(/additional properties/);
            expect(() =>
                check(
                    'GET',
                    '/api/things/1',
                    404,
                    good.headers,
                    '{"code":40410,"message":"","data":{"reason":"PLUGIN_NOT_FOUND"}}'
                )
            ).to.throw(/documents/);
            expect(() =>
                check(
                    'GET',
                    '/api/things/1',
                    404,
                    good.headers,
                    '{"code":40400,"message":"","data":{"reason":"NOT_FOUND"}}'
                )
            ).to.not.throw();
        } finally {
            await core.stop();
        }
    });

    it('serves the document bare, with a tag, to users who are logged in', async () => {
        const got = await ask('GET', '/api/openapi.json');
        expect(JSON.parse(got.text)).to.equal(JSON.parse(JSON.stringify(openApi.document())));
        expect([got.status, got.headers['content-type']]).to.equal([200, 'application/json; charset=utf-8']);
        const again = await ask('GET', '/api/openapi.json', {
            headers: { 'if-none-match': got.headers['etag'] ?? '' }
        });
        expect([again.status, again.text]).to.equal([304, '']);
        const stranger = await ask('GET', '/api/openapi.json', { headers: { authorization: '' } });
        expect([stranger.status, (JSON.parse(stranger.text) as { code: number }).code]).to.equal([
            401, 40100
        ]);
    });
});
