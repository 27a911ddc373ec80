import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { definePlugin, type FailureError, type Files } from '@portico/sdk';

import { createPluginRig, type PluginRig } from '../../../../support/plugins/host.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

let rig: PluginRig;
let folder: string;
let files: Files;
let umask: number;

const modeOf = (name: string): number => statSync(join(folder, name)).mode & 0o7777;

const codeOf = (work: Promise<unknown>): Promise<number> =>
    work.then(
        () => 0,
        (error: FailureError) => error.code
    );

beforeEach(async () => {
    umask = process.umask(0o077); // that of the panel
    rig = await createPluginRig();
    folder = join(rig.root, 'root');
    mkdirSync(folder);
    await rig.run(
        definePlugin({
            setup(ctx) {
                files = ctx.files(folder);
            }
        }),
        { capabilities: { files: ['*'] } }
    );
});
afterEach(async () => {
    await rig.close();
    process.umask(umask);
});

describe('what ctx.files makes, under the umask of the panel', () => {
    it('has exactly the mode that was asked for', async () => {
        await files.createFolder('open/inner', { mode: 0o2755, parents: true });
        await (await files.open('open/file', 'wx', 0o664)).close();
        await (await files.open('written', 'w')).close();
        await files.createFolder('folder');
        expect([modeOf('open'), modeOf('open/inner'), modeOf('open/file')]).to.equal([0o2755, 0o2755, 0o664]);
        expect([modeOf('written'), modeOf('folder')]).to.equal([0o640, 0o750]);
    });

    it('may be the root itself, where it is granted and its parent is there', async () => {
        const make = (name: string, grants: string[]): Promise<number> =>
            rig
                .run(
                    definePlugin({
                        setup(ctx) {
                            files = ctx.files(join(rig.root, name));
                        }
                    }),
                    { capabilities: { files: grants } }
                )
                .then(() => codeOf(files.createFolder('', { mode: 0o711, parents: true })));
        const granted = [join(rig.root, 'new')];
        expect([await make('new', granted), statSync(join(rig.root, 'new')).mode & 0o7777]).to.equal([
            0, 0o711
        ]);
        expect(await codeOf(files.createFolder('', { mode: 0o700, parents: true }))).to.equal(0);
        expect(statSync(join(rig.root, 'new')).mode & 0o7777).to.equal(0o711);
        expect(await codeOf(files.createFolder(''))).to.equal(40400);
        expect(await make('other', granted)).to.equal(50305);
        expect(await make('none/new', [join(rig.root, 'none/new')])).to.equal(40400);
        symlinkSync('root', join(rig.root, 'link'));
        expect(await make('link', [join(rig.root, 'link')])).to.not.equal(0);
    });

    it('keeps the mode of a file that was there', async () => {
        writeFileSync(join(folder, 'kept'), 'old', { mode: 0o600 });
        const handle = await files.open('kept', 'w', 0o666);
        await handle.writeFile('new');
        await handle.close();
        const more = await files.open('kept', 'a', 0o666);
        await more.writeFile('er');
        await more.close();
        expect(modeOf('kept')).to.equal(0o600);
        expect(readFileSync(join(folder, 'kept'), 'utf8')).to.equal('newer');
    });

    it('is kept by a folder that is there already, with its parents or without', async () => {
        await files.createFolder('there/inner', { mode: 0o700, parents: true });
        await files.createFolder('there/inner', { mode: 0o755, parents: true });
        expect(modeOf('there/inner')).to.equal(0o700);
        writeFileSync(join(folder, 'file'), '');
        symlinkSync(join(folder, 'there'), join(folder, 'link'));
        for (const [name, options] of [
            ['there/inner', {}],
            ['file', { parents: true }],
            ['link', { parents: true }]
        ] as const) {
            expect(await codeOf(files.createFolder(name, options)), name).to.equal(40900);
        }
        expect(await codeOf(files.createFolder('link/x', { parents: true }))).to.equal(40400);
    });

    it('is nothing behind a link', async () => {
        symlinkSync(join(rig.root, 'elsewhere'), join(folder, 'link'));
        await expect(files.open('link', 'w')).to.reject();
        expect(() => statSync(join(rig.root, 'elsewhere'))).to.throw(/ENOENT/);
    });
});
