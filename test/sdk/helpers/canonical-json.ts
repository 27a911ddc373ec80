import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { canonicalize } from '../../../sdk/src/helpers/canonical-json.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('canonicalize', () => {
    it('writes the example of RFC 8785', () => {
        const value: unknown = JSON.parse(
            '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}'
        );
        expect(canonicalize(value)).to.equal(
            '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
        );
    });

    it('sorts keys by their code units, also those that look like numbers', () => {
        expect(canonicalize({ 9: 1, 10: 2, '\u20ac': 3, '\ud83d\ude00': 4, '\ufb33': 5, a: 6 })).to.equal(
            '{"10":2,"9":1,"a":6,"€":3,"😀":4,"\ufb33":5}'
        );
    });

    it('writes the same text whether or not keys are in order, and what JSON leaves out is left out', () => {
        const ordered = { a: [1, { b: undefined, c: null }], d: new Date(0), e: { f: 'g' } };
        const shuffled = { e: { f: 'g' }, d: new Date(0), a: [1, { c: null, b: undefined }] };
        const text = '{"a":[1,{"c":null}],"d":"1970-01-01T00:00:00.000Z","e":{"f":"g"}}';
        expect(canonicalize(ordered)).to.equal(text);
        expect(canonicalize(shuffled)).to.equal(text);
        expect(canonicalize({ b: [undefined, () => 1], a: () => 1 })).to.equal('{"b":[null,null]}');
        expect(canonicalize(undefined)).to.equal('null');
    });
});
