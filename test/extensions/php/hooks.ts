import { cpSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { BackupEntry, BackupItem, ExportItem, Outcome, RestoredItem } from '@portico/sdk';

import { itUnless } from '../../support/skip.ts';
import { PhpRig, withoutPhp } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(withoutPhp, it);

const limitMs = 60_000;
const index = `<?php echo getenv('SECRET'), ' ', ini_get('memory_limit');`;

let rig: PhpRig;
let id: number;

/** What this extension answers to a hook of the core. */
async function ask<T>(hook: string, payload: unknown): Promise<readonly T[]> {
    const [outcome] = (await Array.fromAsync(
        rig.panel.panel.hooks.host.collect(hook, async () => payload, { only: ['php'] })
    )) as Outcome<readonly T[]>[];
    if (outcome?.ok !== true) {
        throw new Error(JSON.stringify(outcome));
    }
    return outcome.result;
}

const only = async () => {
    const { data } = await rig.get('/sites');
    expect(data.length).to.equal(1);
    return data[0];
};

describe('Sites in backups and exports', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (withoutPhp === undefined) {
            rig = await PhpRig.start();
        }
    });

    after({ timeout: limitMs }, async () => {
        await rig?.close();
    });

    real('come back from a backup after they were destroyed, and answer as before', async () => {
        id = await rig.create('shop', { env: { SECRET: 'whisper' } });
        rig.write('shop', 'public/index.php', index);
        rig.write('shop', 'public/up/a.txt', 'a picture');
        await rig.put(`/sites/${id}/settings`, { values: { memory_limit: '77M' } });
        await rig.put(`/sites/${id}/pool`, { maxChildren: 3 });
        const { name, folder } = await only();
        symlinkSync('a.txt', join(folder, 'public/up/b.txt'));
        expect((await ask<BackupEntry>('backup.list', {})).map((each) => each.name)).to.equal([name]);
        expect(await ask<BackupItem>('backup.collect', { folder: rig.top, only: [] })).to.equal([]);
        const lent = join(rig.top, 'lent');
        mkdirSync(lent);
        const items = await ask<BackupItem>('backup.collect', { folder: lent });
        expect(items.map(({ path }) => path)).to.equal([folder]);
        cpSync(folder, join(lent, name), { recursive: true, verbatimSymlinks: true });

        await rig.delete(`/sites/${id}?deleteFiles=true`);
        expect((await rig.get('/sites')).data).to.equal([]);
        for (let round = 0; round < 2; round += 1) {
            const restored = await ask<RestoredItem>('backup.restore', {
                folder: lent,
                version: '1.0.0',
                items: items.map((item) => ({ ...item, path: join(lent, name) }))
            });
            expect(restored).to.equal([{ item: name, ok: true }]);
        }
        expect((await rig.page('shop.test')).text).to.equal('whisper 77M');
        expect((await rig.page('shop.test', '/up/b.txt')).text).to.equal('a picture');
        const site = await only();
        expect(site).to.include({ name, state: 'running' });
        expect((await rig.get(`/sites/${site.id}/pool`)).data.maxChildren).to.equal(3);
        expect((await rig.get(`/sites/${site.id}/files-owner`)).data).to.equal([]);
        const [refused] = await ask<RestoredItem>('backup.restore', {
            folder: lent,
            version: '1.0.0',
            items: [{ name: 'another', title: 'x', path: join(lent, name) }]
        });
        expect(refused?.ok).to.be.false();
    });

    real('are in a sealed export, and are made of it once, however often it comes', async () => {
        const [given] = await ask<ExportItem>('export.collect', { maxBytes: 1_000_000 });
        expect([given?.name, given?.leftOut]).to.equal([
            'sites',
            ['the files of sites', 'the databases of sites']
        ]);
        const before = await only();
        await rig.delete(`/sites/${before.id}?deleteFiles=true`);
        const extra = await rig.create('extra');
        for (let round = 0; round < 2; round += 1) {
            expect(
                await ask<RestoredItem>('import.restore', {
                    version: '1.0.0',
                    mode: 'replace',
                    items: [given]
                })
            ).to.equal([{ item: 'sites', ok: true }]);
        }
        const site = await only();
        expect(site).to.include({ name: before.name, domain: 'shop.test', state: 'running' });
        expect(site.id).to.not.equal(extra);
        rig.write('shop', 'public/index.php', index);
        expect((await rig.page('shop.test')).text).to.equal('whisper 77M');
        rmSync(join(rig.top, 'www', rig.name('extra')), { recursive: true });
        const bad = { name: 'sites', data: { sites: [{ name: '../x' }] } };
        const [refused] = await ask<RestoredItem>('import.restore', {
            version: '1.0.0',
            mode: 'merge',
            items: [bad]
        });
        expect(refused?.message).to.contain('cannot be read');
    });
});
