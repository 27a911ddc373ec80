import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { Output, partAt, textOf } from '../../../../../extensions/cronjob/src/runs/output/output.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('Output', () => {
    it('gives from any offset what is kept, says what is not, and never half a character', () => {
        const output = new Output(400);
        const lines = Array.from({ length: 500 }, (_, index) => `zeile ü ${index}\n`);
        lines.forEach((line) => output.add(line));
        const all = Buffer.from(lines.join(''));
        const kept = output.kept();
        expect(kept.total).to.equal(all.length);
        expect(Buffer.byteLength(kept.head) + Buffer.byteLength(kept.tail) <= 400).to.be.true();
        for (let offset = 0; offset <= all.length; offset += 1) {
            let [at, left, text] = [offset, 0, ''];
            for (let part = partAt(kept, at); part !== null; part = partAt(kept, at)) {
                expect(part.end > at).to.be.true();
                expect(all.subarray(part.end - Buffer.byteLength(part.text), part.end).toString()).to.equal(
                    part.text
                );
                [at, left, text] = [part.end, left + part.leftOut, text + part.text];
            }
            expect(at).to.equal(all.length);
            expect(text).to.not.contain('\uFFFD');
            expect(offset + left + Buffer.byteLength(text) - all.length).to.be.between(-2, 2);
        }
        expect(textOf(kept).truncated).to.be.true();
        expect(textOf({ head: 'a', tail: 'b', total: 2 })).to.equal({ text: 'ab', truncated: false });
    });

    it('holds no more than its limit however the output comes', () => {
        for (const size of [1, 7, 1_000, 100_000]) {
            const output = new Output(10_000);
            for (let bytes = 0; bytes < 300_000; bytes += size) {
                output.add('x'.repeat(size));
            }
            const { head, tail, total } = output.kept();
            expect([head.length, tail.length, total >= 300_000]).to.equal([2_500, 7_500, true]);
        }
    });
});
