import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { modelOf } from '@portico/sdk/page/model';

import {
    backOf,
    itemAddress,
    paramsOf,
    trailTo
} from '../../../extensions/webui/web/src/generated/address.ts';
import { columnsOf, idOf, labelOf } from '../../../extensions/webui/web/src/generated/columns.ts';
import { type Operation, operationsOf } from '../../../extensions/webui/web/src/generated/operations.ts';
import { changed, filled, initialValue } from '../../../extensions/webui/web/src/schema/changes.ts';
import type { Document } from '../../../extensions/webui/web/src/schema/document.ts';
import { inWords, plain, type Schema } from '../../../extensions/webui/web/src/schema/schema.ts';
import { startPanel, type TestPanel } from '../../support/panel/panel.ts';

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
        expect(users?.item?.param).to.equal('id');
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
            ...get('/api/jobs/{id}/runs/{run}')
        };
        const { collections } = modelOf(operationsOf({ ...document, paths }, 'jobs'));
        const trail = trailTo(collections, 'runs.list') ?? [];
        const [jobs, runs] = trail as [Listed, Listed];
        expect(trail.map(({ item }) => item?.param)).to.equal(['id', 'run']);
        const there = itemAddress('jobs', runs, { id: 'a/b' }, '7');
        expect(there).to.equal('/p/jobs?list=runs.list&in.id=a%2Fb&id=7');
        const params = paramsOf(new URL(there, 'http://panel.example').searchParams);
        expect(params).to.equal({ id: 'a/b' });
        expect(backOf('jobs', trail, params)).to.equal('/p/jobs?list=jobs.list&id=a%2Fb');
        expect(backOf('jobs', [jobs], {})).to.equal('/p/jobs?list=jobs.list');
        expect(trailTo(collections, 'none')).to.be.null();
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
