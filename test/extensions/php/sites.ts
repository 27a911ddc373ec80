import { statSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../support/skip.ts';
import { hasAccount, PhpRig, withoutPhp } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(withoutPhp, it);

const limitMs = 60_000;
let rig: PhpRig;

describe('A site of PHP', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (withoutPhp === undefined) {
            rig = await PhpRig.start();
        }
    });

    after({ timeout: limitMs }, async () => {
        await rig?.close();
    });

    real('is made in one call, serves through the engine, and is gone with its account', async () => {
        const versions = await rig.get('/versions');
        expect(versions.data[0], versions.text).to.include({
            release: '8.2',
            fpm: 'php-fpm8.2',
            cli: 'php8.2',
            status: 'security'
        });
        const id = await rig.create('one', { template: 'php' });
        const { data: site } = await rig.get(`/sites/${id}`);
        expect(site).to.include({ state: 'running', domain: 'one.test', release: '8.2', root: 'public' });
        expect((await rig.page('one.test')).text).to.contain('PHP 8.2 works');

        const folder = join(rig.top, 'www', site.name);
        const modeOf = (path: string): string => (statSync(join(folder, path)).mode & 0o7777).toString(8);
        expect(['.', 'public', 'private', 'private/sessions', 'logs'].map(modeOf)).to.equal([
            '2750',
            '2750',
            '700',
            '700',
            '700'
        ]);
        expect((statSync(site.socket).mode & 0o777).toString(8)).to.equal('660');

        expect((await rig.delete(`/sites/${id}?deleteFiles=true`)).status).to.equal(200);
        expect(hasAccount(site.user)).to.be.false();
        expect((await rig.get('/sites')).data).to.equal([]);
    });
});
