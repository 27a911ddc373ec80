import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    fillForm,
    type FormField,
    type GivenValue
} from '../../../../extensions/appstore/src/catalogue/form.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const field = (more: Partial<FormField>): FormField => ({
    name: 'X',
    type: 'text',
    label: '',
    hint: '',
    placeholder: '',
    required: false,
    ...more
});
const fill = (more: Partial<FormField>, value?: GivenValue) =>
    fillForm([field(more)], value === undefined ? {} : { X: value }, {});
const isTaken = (more: Partial<FormField>, value: GivenValue): boolean =>
    fill(more, value).faults.length === 0;

describe('fillForm', () => {
    it('takes what each of the nine types allows, and nothing else', () => {
        const cases: readonly (readonly [
            Partial<FormField>,
            readonly GivenValue[],
            readonly GivenValue[]
        ])[] = [
            [
                { type: 'text' },
                ['a', '', 'ü "$x"', 12],
                [true, 'a\nb', 'a\tb', 'a\u2028b', 'x'.repeat(4_097)]
            ],
            [{ type: 'password', min: 4, max: 6 }, ['1234', '123456'], ['123', '1234567']],
            [{ type: 'email' }, ['a@b.example'], ['a', 'a@', '@b', 'a b@c', 'a@b@c', '<a@b>']],
            [
                { type: 'number', min: 1, max: 10 },
                [1, '10', 2.5],
                [0, 11, '1e3', '0x1', 'Infinity', '1 ', '-1', 'NaN']
            ],
            [
                { type: 'fqdn' },
                ['a.example', 'A-b.example'],
                ['localhost', '10.0.0.1', 'a..b', '-a.b', 'a.b/', 'https://a.b']
            ],
            [{ type: 'ip' }, ['10.0.0.1', '::1'], ['10.0.0', 'a.b', '10.0.0.1/8', '10.0.0.1:80']],
            [{ type: 'fqdnip' }, ['10.0.0.1', 'a.example'], ['a b', 'localhost', '10.0.0.1:80']],
            [{ type: 'boolean' }, [true, false, 'true'], ['yes', 1]],
            [
                {
                    options: [
                        { label: 'One', value: 1 },
                        { label: 'B', value: 'b' }
                    ]
                },
                [1, '1', 'b'],
                ['c', 'One']
            ],
            [{ regex: '^[a-z]+$' }, ['abc'], ['ABC', '1']]
        ];
        for (const [more, good, bad] of cases) {
            for (const value of good) {
                expect([more.type, value, isTaken(more, value)]).to.equal([more.type, value, true]);
            }
            for (const value of bad) {
                expect([more.type, value, isTaken(more, value)]).to.equal([more.type, value, false]);
            }
        }
        expect(fill({ required: true }).faults[0]).to.equal({
            path: 'values.X',
            message: 'A value is required'
        });
        expect(fill({ regex: '^a$', patternError: 'Only a' }, 'b').faults[0]?.message).to.equal('Only a');
        expect(fill({ type: 'boolean' }).values).to.equal({ X: 'false' });
        expect(fill({ default: 5, type: 'number' }).values).to.equal({ X: '5' });
    });

    it('makes random values once, of the length that the field says', () => {
        const make = (more: Partial<FormField>): string =>
            fill({ type: 'random', ...more }).values['X'] ?? '';
        expect(make({})).to.match(/^[A-Za-z0-9]{32}$/);
        expect(make({ min: 9, encoding: 'hex' })).to.match(/^[0-9a-f]{9}$/);
        expect(Buffer.from(make({ min: 44, encoding: 'base64' }), 'base64').length).to.equal(33);
        expect(make({})).to.not.equal(make({}));
        const form = [field({ type: 'random' })];
        expect(fillForm(form, {}, { X: 'kept' }).values).to.equal({ X: 'kept' });
        expect(fillForm(form, { X: 'given' }, { X: 'kept' })).to.equal({
            values: { X: 'kept' },
            faults: [{ path: 'values.X', message: 'The panel makes this value' }]
        });
        expect(fillForm([field({ default: 'd' })], { X: null }, { X: 'kept' }).values).to.equal({ X: 'd' });
    });

    it('gives a pattern that never ends little time', () => {
        const begun = performance.now();
        const { faults } = fill({ regex: '^(a+)+$' }, `${'a'.repeat(40)}!`);
        expect(faults[0]?.message).to.equal('The pattern of this field cannot be checked');
        expect(performance.now() - begun < 5_000).to.equal(true);
    });
});
