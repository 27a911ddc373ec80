import { expect } from '@hapi/code';
import Lab from '@hapi/lab';
import { matchPattern } from '@portico/sdk';

export const lab = Lab.script();
const { describe, it } = lab;

describe('matchPattern', () => {
    it('finds a match as a regular expression does', () => {
        expect(matchPattern('^[a-z]+$', 'main')).to.be.true();
        expect(matchPattern('^[a-z]+$', 'Main')).to.be.false();
        expect(matchPattern('^[a-z]+$', 'Main', 'i')).to.be.true();
        expect(matchPattern('^.$', '🙂')).to.be.false();
        expect(matchPattern('^.$', '🙂', 'u')).to.be.true();
    });

    it('says that it cannot compare with what is no pattern, or takes too long', () => {
        expect(matchPattern('(', 'a')).to.be.null();
        expect(matchPattern('a', 'a', 'x')).to.be.null();
        expect(matchPattern('^(a+)+b$', 'a'.repeat(60))).to.be.null();
    });
});
