import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { ErrorOwner, isDeparture } from '../../../../../core/src/plugins/runtime/isolation/error-owner.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const thrownAt = (...frames: readonly string[]): Error =>
    Object.assign(new Error('x'), {
        stack: ['Error: x', ...frames.map((frame) => `    at ${frame}`)].join('\n')
    });

describe('ErrorOwner', () => {
    it('knows whose error it is by the context that the code was started in, wherever it goes from there', async () => {
        const errorOwner = new ErrorOwner();
        const [one, two] = [
            errorOwner.confine('one', '/plugins/one'),
            errorOwner.confine('two', '/plugins/two')
        ];
        const seen: (string | null)[] = [];
        const look = (): void => void seen.push(errorOwner.of(new Error('x')));
        await new Promise<void>((done) =>
            one.enter(() =>
                setTimeout(() => {
                    look();
                    two.enter(look);
                    one.leave(look);
                    void Promise.resolve().then(look).then(done);
                }, 1)
            )
        );
        expect(seen).to.equal(['one', 'two', null, 'one']);
        expect(errorOwner.of(new Error('x'))).to.be.null();
    });

    it('knows a listener that the panel called by the file at the top of the stack, and no other file', () => {
        const errorOwner = new ErrorOwner();
        errorOwner.confine('one', '/plugins/one');
        expect(
            errorOwner.of(
                thrownAt(
                    'Object.handler (file:///plugins/one/index.js:3:7)',
                    'node:events:500:5',
                    'file:///panel/core/a.ts:1:1'
                )
            )
        ).to.equal('one');
        expect(errorOwner.of(thrownAt('file:///plugins/one/src/a%20b.js?portico-fresh=2:3:7'))).to.equal(
            'one'
        );
        expect(
            errorOwner.of(thrownAt('run (file:///panel/core/a.ts:1:1)', 'file:///plugins/one/index.js:3:7'))
        ).to.be.null(); // the panel's own code threw
        expect(errorOwner.of(thrownAt('file:///plugins/one-more/index.js:3:7'))).to.be.null();
        expect([
            errorOwner.of(null),
            errorOwner.of('text'),
            errorOwner.of(thrownAt()),
            errorOwner.of(thrownAt('file://%zz:1:1'))
        ]).to.equal([null, null, null, null]);
    });

    it('tells a client that merely went away from an error', async () => {
        const aborted = await fetch('http://127.0.0.1:1', { signal: AbortSignal.abort() }).catch(
            (error: unknown) => error
        );
        expect(
            [
                aborted,
                Object.assign(new Error(), { code: 'ECONNRESET' }),
                Object.assign(new Error(), { code: 'ERR_STREAM_PREMATURE_CLOSE' })
            ].map(isDeparture)
        ).to.equal([true, true, true]);
        expect(
            [new Error('AbortError'), null, undefined, 'AbortError', { code: 'ENOENT' }].map(isDeparture)
        ).to.equal([false, false, false, false, false]);
    });
});
