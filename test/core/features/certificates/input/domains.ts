import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { readDomains } from '../../../../../core/src/features/certificates/input/domains.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('readDomains', () => {
    it('takes one spelling of each name', () => {
        expect(readDomains(['BÜCHER.test', '*.Example.Test', 'xn--bcher-kva.example']).domains).to.equal([
            'xn--bcher-kva.test',
            '*.example.test',
            'xn--bcher-kva.example'
        ]);
        for (const name of [
            '',
            '*',
            'a',
            '*.test',
            'a..test',
            '-a.test',
            '127.0.0.1',
            '::1',
            'a.test/b',
            'a.*.test',
            `${'a'.repeat(64)}.test`,
            'a_b.test',
            '1.2.3.4',
            'a.test\n'
        ]) {
            const { faults } = readDomains([name]);
            expect(faults.length, name).to.equal(1);
        }
    });
});
