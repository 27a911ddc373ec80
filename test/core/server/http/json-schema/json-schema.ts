import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type AnySchema, joi } from '@portico/sdk';
import Joi from 'joi';

import type { Use } from '../../../../../core/src/server/http/json-schema/description.ts';
import { jsonSchemaOf } from '../../../../../core/src/server/http/json-schema/json-schema.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const body: Use = { side: 'body', defaults: true };
const number = { type: 'number', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER };
const answer: Use = { side: 'answer', defaults: false };
const text: Use = { side: 'text', defaults: true };
const of = (schema: Joi.Schema, use: Use = body): object => jsonSchemaOf(schema as AnySchema, use);

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
            joi.choice({ skip: 'Skip it', queue: 'Wait' }).allow(null).default('skip'),
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
            joi.choice({ local: 'A folder' }),
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
                id: joi.readOnly(joi.string().required())
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
