import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createLog } from '../../../../core/src/platform/log/log.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('createLog', () => {
    it('masks by key at any depth, in errors and in children', () => {
        const lines: string[] = [];
        const log = createLog({ level: 'info', write: (line) => lines.push(line) });
        log.child({ token: 't-canary' }).info('x', {
            user: { password: 'p-canary', list: [{ apiToken: 'a-canary' }] },
            error: Object.assign(new Error('m', { cause: { secret: 'c-canary' } }), {
                headers: { authorization: 'h-canary' }
            }),
            kept: 'yes'
        });
        expect(lines.join())
            .to.not.contain('canary')
            .and.to.contain('"kept":"yes"')
            .and.to.contain('[redacted]');
    });

    it('masks known values wherever they stand, also inside messages', () => {
        const lines: string[] = [];
        const log = createLog({ level: 'info', write: (line) => lines.push(line) });
        log.hide('s3cret"value');
        log.hide('short');
        log.warn('said s3cret"value aloud', { note: 'again s3cret"value and short' });
        expect(lines.join()).to.not.contain('s3cret').and.to.contain('short');
    });

    it('keeps one entry on one line whatever it holds', () => {
        const lines: string[] = [];
        createLog({ level: 'info', write: (line) => lines.push(line) }).info('a\nb\r\u001b[31m\u2028c', {
            x: '\n{"level":"fake"}'
        });
        expect(lines).to.have.length(1);
        expect(lines[0]?.trimEnd()).to.not.match(/[\n\r\u001b\u2028]/);
        expect(JSON.parse(lines[0] as string)).to.include({ level: 'info', x: '\n{"level":"fake"}' });
    });
});
