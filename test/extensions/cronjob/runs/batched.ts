import { setImmediate as turn } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { Mutex } from '@portico/sdk';

import { Batched } from '../../../../extensions/cronjob/src/runs/batched.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('Batched', () => {
    it('works at once on what comes alone, and together on what comes while it works', async () => {
        const worked: string[] = [];
        const { promise: first, resolve: goOn } = Promise.withResolvers<void>();
        const batched = new Batched<string>(new Mutex(), async (items) => {
            worked.push(items.join(' '));
            await (worked.length === 1 ? first : undefined);
        });
        const alone = batched.add('a');
        await turn();
        expect(worked).to.equal(['a']);
        const others = ['b', 'c', 'd'].map((item) => batched.add(item));
        goOn();
        await Promise.all([alone, ...others]);
        expect(worked).to.equal(['a', 'b c d']);
    });

    it('gathers nothing more after its end', async () => {
        const worked: string[] = [];
        const batched = new Batched<string>(new Mutex(), async (items) => void worked.push(items.join(' ')));
        await batched.add('a');
        const paused = batched.add('b');
        batched.close();
        await Promise.all([paused, batched.add('c')]);
        expect(worked).to.equal(['a', 'b c']);
        await batched.add('d');
        expect(worked).to.equal(['a', 'b c', 'd']);
    });

    it('works on each alone where it fails for all of them, and tells only the one that fails', async () => {
        const mutex = new Mutex();
        const worked: string[] = [];
        const batched = new Batched<string>(mutex, async (items) => {
            if (items.includes('bad')) {
                throw new Error(`no: ${items.join(' ')}`);
            }
            worked.push(items.join(' '));
        });
        const { promise: busy, resolve: goOn } = Promise.withResolvers<void>();
        void mutex.run(() => busy);
        const all = ['a', 'bad', 'b'].map((item) => batched.add(item));
        goOn();
        const results = await Promise.allSettled(all);
        expect(results.map(({ status }) => status)).to.equal(['fulfilled', 'rejected', 'fulfilled']);
        expect(String((results[1] as PromiseRejectedResult).reason)).to.equal('Error: no: bad');
        expect(worked).to.equal(['a', 'b']);
    });
});
