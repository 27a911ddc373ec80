import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { joi } from '@portico/sdk';
import { validate } from '@portico/sdk/host';

export const lab = Lab.script();
const { describe, it } = lab;

const schema = joi.object({ document: joi.record(joi.any()).required(), last: joi.string().required() });
const many = (count: number, name: string): Record<string, number> =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`${name}${n}`, n]));

describe('validate', () => {
    it('takes a vast body whose required key comes last', () => {
        const body = { document: many(5_000, 'key'), last: 'here' };
        expect(validate(schema, body, 'payload', 'POST')).to.equal(body);
    });

    it('names a hundred of many unknown keys, and nothing that the rest of the body may have', () => {
        const error = expect(() =>
            validate(schema, { document: {}, ...many(80_000, 'odd'), last: 'here' }, 'payload', 'POST')
        ).to.throw<{ readonly code: number }>();
        const text = JSON.stringify(error);
        expect(error.code).to.equal(40001);
        expect(text).to.include('odd0 is not allowed').and.to.include('odd98 is not allowed');
        expect(text).not.to.include('odd99 is not allowed');
        expect(text).not.to.include('last is required');
    });

    it('names what is wrong in a vast body, and nothing that was sent as missing', () => {
        const error = expect(() =>
            validate(schema, { document: many(5_000, 'key'), last: 7 }, 'payload', 'POST')
        ).to.throw<{ readonly data: { readonly errors: readonly object[] } }>();
        expect(error.data.errors).to.equal([{ path: 'last', message: 'last must be a string' }]);
    });

    it('finds a NUL in a key and in a text, and names its place', () => {
        for (const [document, path] of [
            [{ a: { b: ['x', 'y\0'] } }, 'document.a.b.1'],
            [{ a: { 'k\0': 1 } }, 'document.a.k\\\\0']
        ] as const) {
            const error = expect(() =>
                validate(schema, { document, last: '' }, 'payload', 'POST')
            ).to.throw();
            expect(JSON.stringify(error)).to.include(path);
        }
    });

    it('gives a change no defaults for the fields that it leaves out, and all of them inside those that it sends', () => {
        const plan = joi.object({
            enabled: joi.boolean().default(true),
            keep: joi
                .object({ last: joi.number().default(0), daily: joi.number().default(7) })
                .default({ last: 1, daily: 0 }),
            'retry.rules': joi.array().items(joi.object({ minutes: joi.number().default(5) }))
        });
        const change = (body: object): unknown => validate(plan, body, 'payload', 'PUT');
        expect(change({})).to.equal({});
        expect(change({ keep: { last: 3 } })).to.equal({ keep: { last: 3, daily: 7 } });
        expect(change({ 'retry.rules': [{}] })).to.equal({ 'retry.rules': [{ minutes: 5 }] });
        expect(validate(plan, {}, 'payload', 'POST')).to.equal({
            enabled: true,
            keep: { last: 1, daily: 0 }
        });
        const either = joi.alternatives(
            joi.object({ a: joi.number().required(), b: joi.number().default(1) })
        );
        expect(validate(either, { a: 2 }, 'payload', 'PUT')).to.equal({ a: 2 });
    });
});
