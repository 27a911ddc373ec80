import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { RouteInfo } from '@portico/sdk';

import { toolHints, toolName, toolSchema } from '../../../sdk/agents/src/tools.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const route = (more: Partial<RouteInfo>): RouteInfo => ({
    id: 'hosts.update',
    plugin: null,
    kind: 'json',
    method: 'PUT',
    path: '/api/hosts/{id}',
    summary: 'Change a host',
    description: '',
    permission: 'hosts:write',
    effect: 'write',
    dangerous: false,
    tool: true,
    params: { type: 'object', properties: { id: { type: 'integer' } } },
    query: null,
    payload: { type: 'object', properties: { domain: { type: 'string' } } },
    returns: null,
    ...more
});

describe('toolSchema', () => {
    it('asks for the parts that the route has, and allows no others', () => {
        const info = route({ payload: { type: 'object', required: ['domain'] } });
        expect(toolSchema(info)).to.equal({
            type: 'object',
            properties: { params: info.params, payload: info.payload },
            required: ['params', 'payload'],
            additionalProperties: false
        });
    });

    it('asks for no part that may be left out, nor for parameters of a path that has none', () => {
        const info = route({ path: '/api/hosts', query: { type: 'object', properties: {} } });
        expect(toolSchema(info)).to.equal({
            type: 'object',
            properties: { query: info.query, payload: info.payload },
            additionalProperties: false
        });
    });
});

describe('toolHints', () => {
    it('says what a call does', () => {
        const hints = (more: Partial<RouteInfo>): unknown[] => {
            const { readOnlyHint, destructiveHint, idempotentHint } = toolHints(route(more));
            return [readOnlyHint, destructiveHint, idempotentHint];
        };
        expect(hints({ method: 'GET', effect: 'read' })).to.equal([true, false, true]);
        expect(hints({})).to.equal([false, false, true]);
        expect(hints({ method: 'POST' })).to.equal([false, false, false]);
        expect(hints({ method: 'POST', effect: 'read' })).to.equal([true, false, true]);
        expect(hints({ method: 'DELETE', effect: 'destructive' })).to.equal([false, true, true]);
    });
});

describe('toolName', () => {
    it('has no dots', () => {
        expect(toolName('container.images.list')).to.equal('container__images__list');
    });
});
