import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { adoptTerminalStyles } from '@portico/page-kit/vite';
import { joi } from '@portico/sdk';
import { modelOf } from '@portico/sdk/page/model';

import {
    backOf,
    itemAddress,
    paramsOf,
    trailTo
} from '../../../extensions/webui/web/src/generated/address.ts';
import { fieldsOf, hasFields, inputOf } from '../../../extensions/webui/web/src/generated/call/input.ts';
import { columnsOf, idOf, labelOf } from '../../../extensions/webui/web/src/generated/list/columns.ts';
import { type Operation, operationsOf } from '../../../extensions/webui/web/src/generated/operations.ts';
import { changed, filled, initialValue } from '../../../extensions/webui/web/src/schema/changes.ts';
import type { Document } from '../../../extensions/webui/web/src/schema/document.ts';
import { inWords, plain, type Schema } from '../../../extensions/webui/web/src/schema/schema.ts';
import { addWords, said, setWords, type Table } from '../../../extensions/webui/web/src/words/t.ts';
import { startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { everyPlugin } from './furnish.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

type Listed = ReturnType<typeof modelOf<Operation>>['collections'][number];

describe('the model of generated pages, from the real document', { timeout: 60_000 }, () => {
    let panel: TestPanel;
    let document: Document;
    const modelFor = (tag: string) => modelOf(operationsOf(document, tag));

    before({ timeout: 60_000 }, async () => {
        panel = await startPanel();
        document = JSON.parse((await panel.client.get('/api/openapi.json')).text) as Document;
    });
    after(() => panel.close());

    it('finds lists, what makes, changes and removes an item, and what lies below it', () => {
        const { collections } = modelFor('users');
        expect(collections.map(({ list }) => list.path)).to.equal([
            '/api/users',
            '/api/users/permissions',
            '/api/users/roles'
        ]);
        const [users] = collections;
        expect(users?.create?.id).to.equal('users.create');
        expect(users?.item?.params).to.equal(['id']);
        expect(users?.item?.edit?.id).to.equal('users.update');
        expect(users?.item?.remove?.id).to.equal('users.remove');
        expect(users?.item?.actions.map(({ path }) => path)).to.equal([
            '/api/users/{id}/sessions',
            '/api/users/{id}/totp'
        ]);
    });

    it('puts an object that is read alone beside what changes it, and streams apart', () => {
        const { cards, streams, actions } = modelFor('proxyengine');
        expect(cards.map(({ read }) => read.path)).to.include('/api/proxyengine/status');
        expect(streams.map(({ path }) => path)).to.equal(['/api/proxyengine/logs']);
        expect(actions.map(({ path }) => path)).to.include([
            '/api/proxyengine/start',
            '/api/proxyengine/stop'
        ]);
        const [tasks] = modelFor('tasks').collections;
        expect(tasks?.item?.streams.map(({ path }) => path)).to.equal(['/api/tasks/{id}/events']);
    });

    it('gives every route of the core a place, or lists it', () => {
        for (const { name } of document.tags) {
            const operations = operationsOf(document, name).filter(({ ui }) => ui.role !== 'hidden');
            const model = modelOf(operations);
            const text = JSON.stringify(model);
            for (const { id } of operations) {
                expect(text, `${name} ${id}`).to.include(JSON.stringify(id));
            }
        }
    });

    it('leads to an item of a list below an item, and back', () => {
        const list = (path: string, id: string) => ({
            [path]: {
                get: {
                    operationId: id,
                    tags: ['jobs'],
                    responses: {
                        200: {
                            content: {
                                'application/json': {
                                    schema: { properties: { data: { type: 'array' } } }
                                }
                            }
                        }
                    }
                }
            }
        });
        const get = (path: string) => ({ [path]: { get: { operationId: path, tags: ['jobs'] } } });
        const paths = {
            ...list('/api/jobs', 'jobs.list'),
            ...get('/api/jobs/{id}'),
            ...list('/api/jobs/{id}/runs', 'runs.list'),
            ...get('/api/jobs/{id}/runs/{run}'),
            ...list('/api/jobs/{id}/triggers', 'triggers.list'),
            ...get('/api/triggers/{id}'),
            ...get('/api/triggers/{id}/calls')
        };
        const { collections, others } = modelOf(operationsOf({ ...document, paths }, 'jobs'));
        expect(others).to.equal([]);
        const trail = trailTo(collections, 'runs.list') ?? [];
        const [jobs, runs] = trail as [Listed, Listed];
        expect(trail.map(({ item }) => item?.params)).to.equal([['id'], ['run']]);
        const there = itemAddress('jobs', runs, ['a/b'], ['7']);
        expect(there).to.equal('/p/jobs?list=runs.list&in=a%2Fb&id=7');
        expect(paramsOf(trail, ['a/b', '7'])).to.equal({ id: 'a/b', run: '7' });
        expect(backOf('jobs', trail, ['a/b'])).to.equal('/p/jobs?list=jobs.list&id=a%2Fb');
        expect(backOf('jobs', [jobs], [])).to.equal('/p/jobs?list=jobs.list');
        expect(trailTo(collections, 'none')).to.be.null();
        // An item that stands alone has a parameter of the same name, and its page leads back to the item above its list all the same.
        const alone = trailTo(collections, 'triggers.list') ?? [];
        expect(paramsOf(alone, ['a/b', '9'])).to.equal({ id: '9' });
        expect(paramsOf(alone.slice(0, -1), ['a/b'])).to.equal({ id: 'a/b' });
        expect(backOf('jobs', alone, ['a/b'])).to.equal('/p/jobs?list=jobs.list&id=a%2Fb');
    });

    it('places questions, files and choices, and items that several parameters name', () => {
        const text = (name: string, place: string, schema: object, required = true) => ({
            name,
            in: place,
            required,
            schema: { type: 'string', ...schema }
        });
        const rows = (keys: readonly string[]) => ({
            properties: {
                data: {
                    type: 'array',
                    items: { properties: Object.fromEntries(keys.map((key) => [key, { type: 'string' }])) }
                }
            }
        });
        const operation = (id: string, more: object = {}) => ({ operationId: id, tags: ['apps'], ...more });
        const answering = (schema: object) => ({
            responses: { 200: { content: { 'application/json': { schema } } } }
        });
        const action = text('action', 'path', { enum: ['start', 'stop'] });
        const paths = {
            '/api/apps': { get: operation('apps', answering(rows(['source', 'id']))) },
            '/api/apps/{source}/{app}': { get: operation('app'), post: operation('use') },
            '/api/apps/{source}/{app}/icon': { get: operation('icon', { 'x-door': 'download' }) },
            '/api/units': { get: operation('units', answering(rows(['name']))) },
            '/api/units/{name}/{action}': {
                post: operation('act', { parameters: [text('name', 'path', {}), action] })
            },
            '/api/units/{name}/{other}/x': { post: operation('lost') },
            '/api/found': {
                get: operation('found', {
                    ...answering(rows(['id'])),
                    parameters: [text('q', 'query', {}), text('limit', 'query', {}, false)]
                })
            },
            '/api/archive': {
                put: operation('send', {
                    'x-door': 'upload',
                    requestBody: {
                        content: { 'application/x-tar': {}, 'application/octet-stream': {} },
                        'x-max-bytes': 9
                    },
                    parameters: [text('kind', 'query', { enum: ['a', 'b'] }, false)]
                })
            }
        };
        const { collections, actions, others } = modelOf(operationsOf({ ...document, paths }, 'apps'));
        const [apps, units] = collections;
        expect(apps?.item?.params).to.equal(['source', 'app']);
        expect(apps?.item?.read?.id).to.equal('app');
        expect(apps?.item?.actions.map(({ id }) => id)).to.equal(['use']);
        expect(apps?.item?.downloads.map(({ id }) => id)).to.equal(['icon']);
        expect(units?.item?.params).to.equal(['name']);
        const [act] = units?.item?.actions ?? [];
        expect(others.map(({ id }) => id)).to.equal(['lost']);
        const [found, send] = actions as [Operation, Operation];
        expect([found.id, send.id]).to.equal(['found', 'send']);

        const named = { name: 'nginx' };
        expect(fieldsOf(act as Operation, named)).to.equal({
            type: 'object',
            properties: { action: { type: 'string', enum: ['start', 'stop'] } },
            required: ['action']
        });
        expect(inputOf(act as Operation, named, { action: 'stop' })).to.equal({
            params: { name: 'nginx', action: 'stop' },
            query: {},
            body: undefined
        });
        expect(Object.keys(fieldsOf(found, {}).properties ?? {})).to.equal(['q']);
        expect(inputOf(found, {}, { q: 'a b' }).query).to.equal({ q: 'a b' });
        expect(send.file).to.equal({
            accepts: ['application/x-tar', 'application/octet-stream'],
            maxBytes: 9
        });
        expect(hasFields(send, {})).to.be.true();
        expect(hasFields(apps?.item?.actions[0] as Operation, { source: 'a', app: 'b' })).to.be.false();
    });

    it('leaves out what is hidden', () => {
        const text = JSON.stringify(modelFor('hosts'));
        expect(text).to.include('hosts.clone');
        expect(text).not.to.include('hosts.batch');
    });

    it('takes names and states first, and no secrets or objects, as columns', () => {
        const schema = modelFor('hosts').collections[0]?.list.answer.items ?? {};
        const keys = columnsOf(schema).map(({ key }) => key);
        expect(keys.slice(0, 3)).to.equal(['domain', 'enabled', 'state']);
        expect(keys).to.have.length(6);
        expect(keys).not.to.include(['upstreams', 'version', 'headers']);
        expect([labelOf(schema, undefined), idOf(schema, 'id')]).to.equal(['domain', 'id']);
    });
});

describe('reading a schema', () => {
    it('sees through alternatives that only say not set, or keep the secret', () => {
        const secret: Schema = {
            anyOf: [
                { type: 'string', format: 'password' },
                { type: 'object', properties: { set: { const: true } } },
                { type: 'null' }
            ]
        };
        expect(plain(secret)).to.include({ kind: 'secret', isNullable: true });
        expect(plain({ type: ['integer', 'null'] })).to.include({ kind: 'number', isNullable: true });
        expect(plain({ type: 'string', enum: ['a', 'b', null] }).choices.map(({ value }) => value)).to.equal([
            'a',
            'b'
        ]);
        expect(plain({ oneOf: [{ const: 'x', title: 'An x' }] }).choices).to.equal([
            { value: 'x', title: 'An x' }
        ]);
        expect(plain({ anyOf: [{ type: 'string' }, { type: 'integer' }] }).kind).to.equal('json');
        expect(plain({ type: 'array', items: { type: 'string' } }).kind).to.equal('texts');
        expect(plain({ type: 'object', additionalProperties: { type: 'string' } }).kind).to.equal('map');
        expect(inWords('lastLoginAt')).to.equal('Last login at');
        expect(inWords('acmeEab')).to.equal('ACME EAB');
    });

    it('sends what was filled or changed, and nothing else', () => {
        const schema: Schema = {
            properties: {
                name: { type: 'string' },
                note: { type: ['string', 'null'] },
                id: { type: 'integer', readOnly: true },
                version: { type: 'integer', description: 'Acts as If-Match' }
            }
        };
        const before = { id: 1, name: 'a', note: 'b', version: 3 };
        expect(initialValue(schema, before)).to.equal({ name: 'a', note: 'b' });
        expect(filled({ name: 'x', note: '', other: undefined })).to.equal({ name: 'x' });
        expect(changed(schema, before, { name: 'a', note: '' })).to.equal({ note: null });
        expect(changed(schema, before, { name: 'c', note: 'b' })).to.equal({ name: 'c' });
    });
});

describe('the terminal of the pages', () => {
    it('is built only while it writes its styles where the build looks', () => {
        // A dependency of the page kit, not of the tests.
        const packages = join(import.meta.dirname, '../../../node_modules');
        const path = join(packages, '@xterm', 'xterm', 'lib', 'xterm.mjs');
        const code = readFileSync(path, 'utf8');
        const { transform } = adoptTerminalStyles();
        expect(transform(code, path)).to.contain('.createElement("portico-style")');
        const other = code.replace('.createElement("style")', '.createElement("link")');
        expect(() => transform(other, path)).to.throw(/creates <style> in 2 places, not in 3/);
        expect(transform(other, '/another.js')).to.be.null();
    });
});

describe('words of the panel in another language', () => {
    const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');

    before(() => setWords(JSON.parse(read('extensions/webui/web/src/words/zh.json')) as Table));
    after(() => setWords({}));

    it('are found for sentences whose values are filled in', () => {
        expect(said('shop.example resolves to 192.0.2.1, 192.0.2.2')).to.equal(
            'shop.example 解析为 192.0.2.1, 192.0.2.2'
        );
        expect(said('127.0.0.1:1: the connection is refused; 127.0.0.1:2: no answer in time')).to.equal(
            '127.0.0.1:1：连接被拒绝; 127.0.0.1:2：未及时应答'
        );
        expect(said('The package cannot be used: name is required')).to.equal(
            '该软件包无法使用: 必须填写 name'
        );
        expect(said('A sentence (of a plugin) that no table has')).to.equal(
            'A sentence (of a plugin) that no table has'
        );
    });

    it('are found for what plugins bring, and the panel’s own go before them', () => {
        addWords({ 'The {pot} is empty': '{pot} 是空的', 'Nothing here yet': '不许' });
        expect(said('Nothing here yet')).to.not.equal('不许');
        expect(said('The teapot is empty')).to.equal('teapot 是空的');
        expect(said('Too many calls; the next one may be made in 3 s')).to.equal(
            '调用过多；3 秒后可进行下一次'
        );
        expect(said('The limit daily is reached; it allows more in 60 seconds')).to.equal(
            '已达到上限 daily；60 秒后可继续'
        );
    });

    it('exist for every failure of the panel, and for what is wrong at a field', () => {
        const failures = [...read('core/src/platform/errors.ts').matchAll(/message: '([^']+)'/g)].map(
            ([, message]) => (message ?? '').replaceAll(/\{\w+\}/g, 'x')
        );
        expect(failures.length).to.be.above(30);
        const text = joi.string().min(2).max(3).pattern(/^a/);
        const wrong = [
            [joi.object({ name: text.required() }), {}],
            [joi.object({ name: text }), { name: '' }],
            [joi.object({ name: text }), { name: 1 }],
            [joi.object({ name: text }), { name: 'a' }],
            [joi.object({ name: text }), { name: 'abcd' }],
            [joi.object({ name: text }), { name: 'bb' }],
            [joi.object({ name: joi.number().integer().min(2).max(3) }), { name: 1 }],
            [joi.object({ name: joi.number().integer().min(2).max(3) }), { name: 4 }],
            [joi.object({ name: joi.number().integer().min(2).max(3) }), { name: 2.5 }],
            [joi.object({ name: joi.number() }), { name: 'x' }],
            [joi.object({ name: joi.boolean() }), { name: 'x' }],
            [joi.object({ name: joi.array().min(1).max(1) }), { name: [] }],
            [joi.object({ name: joi.array().min(1).max(1) }), { name: [1, 2] }],
            [joi.object({ name: joi.array() }), { name: 'x' }],
            [joi.object({ name: joi.object({}) }), { name: 'x' }],
            [joi.object({ name: joi.valid('a', 'b') }), { name: 'x' }],
            [joi.object({}), { name: 'x' }]
        ] as const;
        const faults = wrong.map(
            ([schema, value]) =>
                schema.validate(value, { errors: { wrap: { label: false } }, convert: false }).error
                    ?.message ?? ''
        );
        expect([...failures, ...faults].filter((line) => said(line) === line)).to.equal([]);
    });

    it('exist for every failure that only an extension has, and for those that extensions share', () => {
        const tables = [...everyPlugin.map((name) => `extensions/${name}/src`), 'sdk/agents/src'];
        for (const table of tables) {
            const messages = [
                ...read(`${table}/errors.ts`).matchAll(/message:\s*(?:'([^']+)'|"([^"]+)"|`([^`]+)`)/g)
            ].map((found) => found.slice(1).find((each) => each !== undefined) ?? '');
            expect(messages, table).to.not.be.empty();
            const bare = messages
                // One that has only what others say has no words of its own.
                .filter((message) => /\w/.test(message.replaceAll(/\{\w+\}/g, '')))
                .filter((message) => {
                    const text = message.replaceAll(/\{\w+\}/g, 'x');
                    return said(text) === text;
                });
            expect(bare, table).to.equal([]);
        }
    });

    it('exist for every line of the checklist of a host', () => {
        const source = read('core/src/features/hosts/checks/checklist.ts')
            .replaceAll('${evidence}', 'Issued by x, valid until x')
            .replaceAll(/\$\{[^}]*'is' : 'are'\}/g, 'is')
            .replaceAll('${fault}', "cannot be read by the engine's user (x)");
        const lines = [
            ...source.matchAll(/(?:evidence|remedy): *(?:[^,\n`']*\? *)?(?:'([^']+)'|"([^"]+)"|`([^`]+)`)/g)
        ]
            .map((found) => found.slice(1).find((each) => each !== undefined) ?? '')
            .map((line) => line.replaceAll(/\$\{[^}]*\}/g, 'x'))
            // What to send is the same in every language.
            .filter((line) => !line.startsWith('POST /'));
        expect(lines.length).to.be.above(20);
        expect(lines.filter((line) => said(line) === line)).to.equal([]);
    });
});
