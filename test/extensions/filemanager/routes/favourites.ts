import { mkdirSync, rmSync, writeFileSync } from 'node:fs';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createFilesRig, type FilesRig, rootPath } from '../rig.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

describe('GET, POST and DELETE /api/plugins/filemanager/favourites', () => {
    let files: FilesRig;

    before(async () => {
        files = await createFilesRig();
        mkdirSync(files.at('sites'));
        writeFileSync(files.at('sites/a.conf'), '');
    });

    after(() => files.close());

    const titles = async (role: string): Promise<unknown[]> =>
        (await files.get('/favourites', {}, { role })).data.map(
            ({ title, path, missing }: { title: string; path: string; missing: boolean }) => [
                title,
                path,
                missing
            ]
        );

    it("are a user's own, also of one who may change nothing", async () => {
        const made = await files.post('/favourites', { root: 'main', path: '/sites/' }, { role: 'viewer' });
        expect([made.status, made.data]).to.equal([
            201,
            {
                id: made.data.id,
                title: 'sites',
                root: 'main',
                path: 'sites',
                type: 'folder',
                missing: false
            }
        ]);
        await files.post(
            '/favourites',
            { root: 'main', path: 'sites/a.conf', title: 'A' },
            { role: 'viewer' }
        );
        expect(await titles('viewer')).to.equal([
            ['A', 'sites/a.conf', false],
            ['sites', 'sites', false]
        ]);
        expect(await titles('operator')).to.equal([]);
        const theirs = await files.remove(`/favourites/${made.data.id}`, {}, { role: 'operator' });
        expect(theirs.code).to.equal(40400);
        expect((await files.remove(`/favourites/${made.data.id}`, {}, { role: 'viewer' })).code).to.equal(0);
        expect(await titles('viewer')).to.equal([['A', 'sites/a.conf', false]]);
    });

    it('take a place once, and none that is not there or not reached', async () => {
        const mark = async (path: string, role = 'operator') =>
            (await files.post('/favourites', { root: 'main', path }, { role })).code;
        expect([await mark('sites'), await mark('sites'), await mark('none')]).to.equal([0, 40900, 40400]);
        expect([await mark('../etc'), await mark('.portico'), await mark('', 'guests')]).to.equal([
            40350, 40400, 40400
        ]);
    });

    it('say what is missing, and nothing of a root that is no longer reached', async () => {
        rmSync(files.at('sites/a.conf'));
        expect(await titles('viewer')).to.equal([['A', 'sites/a.conf', true]]);
        await files.host.restart();
        await files.host.setSettings({ roots: [{ name: 'main', path: rootPath, roles: [] }] });
        writeFileSync(files.at('sites/a.conf'), '');
        expect((await files.get('/favourites', {}, { role: 'operator' })).data).to.equal([
            { id: 3, title: 'sites', root: 'main', path: 'sites', type: null, missing: true }
        ]);
    });
});
