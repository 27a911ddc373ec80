import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { isFailure } from '@portico/sdk';
import fc from 'fast-check';

import { parseJson } from '../../../../../../core/src/server/http/request/input/json.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const mebibyte = 2 ** 20;
const messageOf = (bytes: Buffer | string, largest = mebibyte): string => {
    try {
        parseJson(Buffer.from(bytes as string), largest);
    } catch (error) {
        return isFailure(error) && error.code === 40000 ? error.message : `not a refusal: ${String(error)}`;
    }
    return 'accepted';
};

describe('parseJson', () => {
    it('reads whatever JSON.stringify writes', () => {
        fc.assert(
            fc.property(fc.jsonValue({ maxDepth: 20 }), (value) => {
                const text = JSON.stringify(value);
                if (!text.includes('"__proto__"')) {
                    expect(parseJson(Buffer.from(text), mebibyte)).to.equal(JSON.parse(text));
                }
            }),
            { numRuns: 300 }
        );
    });

    it('refuses what two readers could understand differently', () => {
        expect(messageOf('{"a":1,"a":2}')).to.equal('The body has the key "a" twice');
        expect(messageOf('{"a":1,"\\u0061":2}')).to.equal('The body has the key "a" twice');
        expect(messageOf('[{"b":{"c":1,"d":{},"c":2}}]')).to.equal('The body has the key "c" twice');
        expect(messageOf('{"__proto__":1}')).to.contain('__proto__');
        expect(messageOf('{"\\u005f_proto__":1}')).to.contain('__proto__');
        expect(messageOf('{"a":{"x":1},"b":{"x":1},"c":["x","x"],"d":"\\"a\\":1,\\"a\\":2"}')).to.equal(
            'accepted'
        );
    });

    it('takes one value for every 32 bytes that the body might have had, whatever the values are', () => {
        const list = (count: number, value: string): string => `[${Array(count).fill(value).join()}]`;
        for (const value of ['1', '{}', '[]', '"a"']) {
            const each = value === '1' || value === '"a"' ? 1 : 2;
            expect(messageOf(list(1000 / each, value), 32_000), value).to.equal('accepted');
            expect(messageOf(list(1002 / each, value), 32_000), value).to.equal(
                'The body has more than 1000 values'
            );
        }
        expect(messageOf(`{${Array.from({ length: 40_000 }, (_, at) => `"k${at}":0`).join()}}`)).to.contain(
            'values'
        );
    });

    it('refuses depth, bytes that are no text, a byte order mark, and what is no JSON', () => {
        expect(messageOf('['.repeat(65) + ']'.repeat(65))).to.contain('64 levels');
        expect(messageOf('['.repeat(64) + ']'.repeat(64))).to.equal('accepted');
        expect(messageOf('{"a":'.repeat(5000) + '1' + '}'.repeat(5000))).to.contain('64 levels');
        expect(messageOf(Buffer.from([0x22, 0xff, 0x22]))).to.equal('The body is not UTF-8');
        for (const text of ['\ufeff{}', '{', '{"a":1,}', "{'a':1}", 'NaN', '', ' ', '{"a":1}{"b":2}']) {
            expect(messageOf(text), text).to.startWith('The body is not JSON');
        }
    });
});
