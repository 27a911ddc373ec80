import { setImmediate as nextTurn } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { KeyedMutex, Mutex } from '../../../sdk/src/helpers/mutex.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('Mutex', () => {
    it('runs work one at a time in the order in which it was asked for, also after a failure', async () => {
        const mutex = new Mutex();
        const seen: string[] = [];
        const first = mutex.run(async () => {
            seen.push('first begins');
            await nextTurn();
            seen.push('first ends');
            throw new Error('broken');
        });
        const second = mutex.run(() => {
            seen.push('second');
            return 2;
        });
        expect(mutex.busy).to.be.true();
        await expect(first).to.reject('broken');
        expect(await second).to.equal(2);
        expect(seen).to.equal(['first begins', 'first ends', 'second']);
        expect(mutex.busy).to.be.false();
    });

    it('is idle when all work that was asked for has ended, whether or not it failed', async () => {
        const mutex = new Mutex();
        let ended = 0;
        const work = [1, 2].map((number) =>
            mutex.run(async () => {
                await nextTurn();
                ended = number;
                throw new Error('broken');
            })
        );
        const settled = Promise.allSettled(work);
        await mutex.idle();
        expect(ended).to.equal(2);
        await settled;
    });

    it('rejects when the work throws at once', async () => {
        await expect(
            new Mutex().run(() => {
                throw new Error('broken');
            })
        ).to.reject('broken');
    });
});

describe('KeyedMutex', () => {
    it('makes work wait for work under the same key only', async () => {
        const mutex = new KeyedMutex();
        const gate = Promise.withResolvers<void>();
        const seen: string[] = [];
        const one = mutex.run('a', async () => {
            await gate.promise;
            seen.push('a1');
        });
        const two = mutex.run('a', () => void seen.push('a2'));
        await mutex.run('b', () => void seen.push('b'));
        await mutex.idle('b');
        expect(seen).to.equal(['b']);
        gate.resolve();
        await mutex.idle();
        expect(seen).to.equal(['b', 'a1', 'a2']);
        await Promise.all([one, two]);
    });

    it('keeps work apart whatever ends and begins at the same moment', async () => {
        const mutex = new KeyedMutex();
        let inside = 0;
        let most = 0;
        const work = async (): Promise<void> => {
            inside += 1;
            most = Math.max(most, inside);
            await Promise.resolve();
            inside -= 1;
        };
        await Promise.all(
            Array.from({ length: 50 }, async (_, index) => {
                for (let round = 0; round < index; round += 1) {
                    await Promise.resolve();
                }
                await mutex.run('a', index % 2 === 0 ? work : () => undefined);
                await mutex.run('a', work);
            })
        );
        expect(most).to.equal(1);
    });
});
