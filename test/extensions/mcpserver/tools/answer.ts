import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { bytesOf, cut, done, type ToolAnswer } from '../../../../extensions/mcpserver/src/tools/answer.ts';
import { covers } from '../../../../extensions/mcpserver/src/tools/catalogue.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('cut', () => {
    const most = 4_096;

    it('leaves what fits as it is', () => {
        const answer = done([1, 2, 3]);
        expect(cut(answer, most)).to.shallow.equal(answer);
    });

    it('cuts a list, and the longest list of an object, at a whole item', () => {
        const items = Array.from({ length: 500 }, (_, id) => ({ id, text: 'ä'.repeat(20) }));
        for (const data of [items, { short: [1], items, text: 'kept' }]) {
            const { truncated, ...short } = cut(done(data), most);
            expect(bytesOf(short))
                .to.be.at.most(most)
                .and.to.be.above(most - 200);
            const left = Array.isArray(short.data) ? short.data : (short.data as { items: unknown[] }).items;
            expect(left).to.equal(items.slice(0, left.length));
            expect(truncated).to.equal({ items: left.length, of: 500 });
        }
    });

    it('takes away the cursor of a page that is cut, which would skip what is missing', () => {
        const page = { ...done(Array.from({ length: 500 }, (_, id) => ({ id }))), next: 'behind' };
        expect(cut(page, 65_536).next).to.equal('behind');
        expect(cut(page, most).next).to.be.null();
    });

    it('leaves out what an approval shows before anything else, and keeps which one it is', () => {
        const text = 'x'.repeat(10_000);
        const approval = {
            id: 7,
            state: 'executed',
            arguments: { payload: { text } },
            plan: { after: text }
        };
        const answer = { ...done([1, 2]), approval } as unknown as ToolAnswer; // its other fields are not read
        expect(cut(answer, most)).to.equal({
            ...done([1, 2]),
            approval: { id: 7, state: 'executed' },
            truncated: { items: 0, of: 1 }
        });
    });

    it('says that nothing is left of what has no items', () => {
        for (const data of [
            'x'.repeat(10_000),
            { text: 'x'.repeat(10_000) },
            { text: 'x'.repeat(10_000), items: [1] }
        ]) {
            expect(cut(done(data), most)).to.include({ data: null, truncated: { items: 0, of: 1 } });
        }
    });
});

describe('covers', () => {
    it('takes a star for any text, and all else as it is', () => {
        const yes: readonly (readonly [string, string])[] = [
            ['*', 'hosts.list'],
            ['hosts.*', 'hosts.list'],
            ['*.list', 'hosts.list'],
            ['h*s.l*t', 'hosts.list'],
            ['hosts.list', 'hosts.list'],
            ['a*a', 'aa']
        ];
        const no: readonly (readonly [string, string])[] = [
            ['hosts', 'hosts.list'],
            ['hosts.*', 'hosts'],
            ['hosts.li.t', 'hosts.list'],
            ['*.lis', 'hosts.list'],
            ['a*a', 'a'],
            ['ab*ba', 'aba'],
            ['', 'hosts.list']
        ];
        yes.forEach(([pattern, id]) => expect(covers(pattern, id), `${pattern} ${id}`).to.be.true());
        no.forEach(([pattern, id]) => expect(covers(pattern, id), `${pattern} ${id}`).to.be.false());
    });
});
