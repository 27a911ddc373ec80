import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { argumentsOf, callHash, maskArguments } from '../../../sdk/agents/src/calls.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const failure = (work: () => unknown): unknown => {
    try {
        return work();
    } catch (error) {
        return error;
    }
};

describe('argumentsOf', () => {
    it('gives one form to what means the same', () => {
        expect(argumentsOf(undefined)).to.equal({});
        expect(argumentsOf({ params: {}, query: {} })).to.equal({});
        expect(argumentsOf({ params: { id: 1 }, payload: {} })).to.equal({ params: { id: 1 }, payload: {} });
    });

    it('refuses what is no part of a call', () => {
        for (const given of [
            { parameters: {} },
            { headers: {} },
            { params: 'x' },
            { query: [1] },
            'x',
            [1]
        ]) {
            expect(
                failure(() => argumentsOf(given)),
                JSON.stringify(given)
            ).to.include({ code: 40001 });
        }
    });
});

describe('callHash', () => {
    it('is the same for the same call in another order, and another one for each change', () => {
        const hash = callHash('hosts.update', { params: { id: 1 }, payload: { a: 1, b: [1, 2] } });
        expect(hash).to.match(/^[0-9a-f]{64}$/);
        expect(callHash('hosts.update', { payload: { b: [1, 2], a: 1 }, params: { id: 1 } })).to.equal(hash);
        const others = [
            callHash('hosts.create', { params: { id: 1 }, payload: { a: 1, b: [1, 2] } }),
            callHash('hosts.update', { params: { id: 2 }, payload: { a: 1, b: [1, 2] } }),
            callHash('hosts.update', { params: { id: '1' }, payload: { a: 1, b: [1, 2] } }),
            callHash('hosts.update', { params: { id: 1 }, payload: { a: 1, b: [2, 1] } }),
            callHash('hosts.update', { query: { id: 1 }, payload: { a: 1, b: [1, 2] } })
        ];
        expect(new Set([hash, ...others]).size).to.equal(6);
    });
});

describe('maskArguments', () => {
    it('hides what the schema calls a secret, wherever it lies', () => {
        const secret = { type: 'string', writeOnly: true, format: 'password' };
        const payload = {
            type: 'object',
            properties: {
                code: secret,
                many: { type: 'array', items: { anyOf: [{ type: 'object', properties: { code: secret } }] } },
                free: { type: 'object', additionalProperties: secret },
                open: { type: 'string' }
            }
        };
        const shown = maskArguments(
            { params: null, query: null, payload },
            {
                params: { id: 1 },
                payload: { code: 'a', many: [{ code: 'b' }], free: { x: 'c' }, open: 'd' }
            }
        );
        expect(shown).to.equal({
            params: { id: 1 },
            payload: {
                code: '[secret]',
                many: [{ code: '[secret]' }],
                free: { x: '[secret]' },
                open: 'd'
            }
        });
    });

    it('hides by name what no schema describes, and passwords in addresses', () => {
        const shown = maskArguments(
            { params: null, query: null, payload: null },
            {
                payload: {
                    apiKey: 'a',
                    password: '',
                    headers: [
                        { name: 'Authorization', value: 'Bearer x' },
                        { name: 'Accept', value: '*/*' }
                    ],
                    url: 'https://u:p@example.com/a',
                    hasToken: false
                }
            }
        );
        expect(shown.payload).to.equal({
            apiKey: '[secret]',
            password: '',
            headers: [
                { name: 'Authorization', value: '[secret]' },
                { name: 'Accept', value: '*/*' }
            ],
            url: 'https://[secret]@example.com/a',
            hasToken: false
        });
    });
});
