import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import Joi from 'joi';

import { assertExpressible, createOpenApi } from '../../../../../core/src/server/http/openapi/document.ts';
import type { Operation } from '../../../../../core/src/server/http/openapi/operation.ts';
import { at } from '../../../../support/api/contract.ts';
import { validateDocument } from '../../../../support/api/document.ts';
import { plugin, server } from '../../../../support/core/described-routes.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const number = { type: 'number', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER };

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
                });
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
        const conflict = at(document, responses['409']?.['$ref'] as string) as {
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
