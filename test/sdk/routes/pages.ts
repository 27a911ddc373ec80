import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { pages } from '../../../sdk/src/routes/pages.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const names = ['delta', 'alpha', 'charlie', 'bravo'];
const sorted = (all: readonly string[], cursor?: string) =>
    pages.sorted(all, { limit: 2, cursor }, (name) => name);

describe('pages', () => {
    it('sorts a list by its key and gives each row once', () => {
        const first = sorted(names);
        expect(first.rows).to.equal(['alpha', 'bravo']);
        expect(first.page.total).to.equal(4);
        const second = sorted(names, first.page.next ?? '');
        expect(second).to.equal({ rows: ['charlie', 'delta'], page: { total: 4, next: null } });
    });

    it('goes on behind the last key when rows were added and removed meanwhile', () => {
        const { page } = sorted(names);
        expect(sorted(['able', 'alpha', 'charlie', 'delta'], page.next ?? '').rows).to.equal([
            'charlie',
            'delta'
        ]);
    });

    it('gives the next key of rows that a database read, while there is one more', () => {
        const { rows, page } = pages.read([{ id: 9 }, { id: 7 }, { id: 4 }], 2, ({ id }) => id);
        expect(rows).to.equal([{ id: 9 }, { id: 7 }]);
        expect(pages.afterNumber({ cursor: page.next ?? '' })).to.equal(7);
        expect(pages.read([{ id: 4 }], 2, ({ id }) => id, 3).page).to.equal({ total: 3, next: null });
    });

    it('keeps the order of a list whose order has a meaning', () => {
        const first = pages.ordered(names, { limit: 3 });
        expect(first.rows).to.equal(['delta', 'alpha', 'charlie']);
        expect(pages.ordered(names, { limit: 3, cursor: first.page.next ?? '' })).to.equal({
            rows: ['bravo'],
            page: { total: 4, next: null }
        });
    });

    it('takes any text as a key', () => {
        const key = 'a name\nwith: 名前 and \\';
        const { page } = pages.read([key, 'z'], 1, (name) => name);
        expect(pages.after({ cursor: page.next ?? '' })).to.equal(key);
    });

    it('refuses a cursor that no list gave, by 40001', () => {
        for (const read of [
            () => pages.after({ cursor: 'made up' }),
            () => pages.afterNumber({ cursor: Buffer.from('after:x').toString('base64url') }),
            () => sorted(names, ''),
            () => pages.ordered(names, { limit: 1, cursor: Buffer.from('after:-1').toString('base64url') })
        ]) {
            expect(expect(read).to.throw()).to.include({ code: 40001, reason: 'VALIDATION_FAILED' });
        }
        expect(pages.after({})).to.be.null();
    });
});
