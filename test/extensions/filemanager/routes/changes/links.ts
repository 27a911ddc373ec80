import {
    linkSync,
    lstatSync,
    mkdirSync,
    readlinkSync,
    statSync,
    symlinkSync,
    truncateSync,
    writeFileSync
} from 'node:fs';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createFilesRig, type FilesRig } from '../../rig.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

let files: FilesRig;

before(async () => {
    files = await createFilesRig();
    mkdirSync(files.at('site/shared'), { recursive: true });
    mkdirSync(files.at('site/releases/1'), { recursive: true });
    writeFileSync(files.at('site/shared/config'), 'twelve bytes');
    symlinkSync('/etc', files.at('site/away'));
});
after(() => files.close());

describe('POST /api/plugins/filemanager/links', () => {
    const link = async (path: string, target: string, kind = 'symbolic', role = 'admin') =>
        files.post('/links', { root: 'main', path, target, kind }, { role });

    it('makes a symbolic link to what is below the root, and a second name of a file', async () => {
        const made = await link('site/releases/1/config', '../../shared/./config');
        expect([made.status, made.data.type, made.data.path]).to.equal([
            201,
            'link',
            'site/releases/1/config'
        ]);
        expect(readlinkSync(files.at('site/releases/1/config'))).to.equal('../../shared/./config');
        expect((await link('current', 'site/releases/1')).status).to.equal(201);
        const hard = await link('site/second', 'site/shared/config', 'hard');
        expect([hard.status, hard.data.type]).to.equal([201, 'file']);
        expect(statSync(files.at('site/second')).ino).to.equal(statSync(files.at('site/shared/config')).ino);
        const { data } = await files.get('/entry', { root: 'main', path: 'site/second' });
        expect(data).to.include({ target: null, links: 2, size: 12 });
        const shown = await files.get('/entry', { root: 'main', path: 'current' });
        expect(shown.data).to.include({ type: 'link', target: 'site/releases/1' });
        expect(shown.headers['etag']).to.equal(`"${shown.data.version}"`);
    });

    it('refuses what would lead out of the root, over another link, to nothing, or to a taken name', async () => {
        const refused: readonly (readonly [target: string, kind: string, code: number])[] = [
            ['/etc/passwd', 'symbolic', 40956],
            ['../../outside', 'symbolic', 40956],
            ['../site/../../outside', 'symbolic', 40956],
            ['away', 'symbolic', 40956],
            ['away/passwd', 'symbolic', 40956],
            ['away/../shared', 'symbolic', 40956],
            ['none', 'symbolic', 40400],
            ['../.portico', 'symbolic', 40400],
            ['../outside', 'hard', 40350],
            ['site/none', 'hard', 40400],
            ['site/away', 'hard', 40950],
            ['site/shared', 'hard', 40950],
            ['site/away/passwd', 'hard', 40400],
            ['shared/config', 'soft', 40001]
        ];
        for (const [target, kind, code] of refused) {
            expect((await link('site/new', target, kind)).code, `${kind} ${target}`).to.equal(code);
        }
        expect(lstatSync(files.at('site/new'), { throwIfNoEntry: false })).to.be.undefined();
        expect((await link('site/shared', 'shared')).code).to.equal(40900);
        expect((await link('site/new', 'shared', 'symbolic', 'viewer')).code).to.equal(40300);
    });
});

describe('POST /api/plugins/filemanager/size', () => {
    it('counts each file once, whatever its names, and what it takes on the disk', async () => {
        mkdirSync(files.at('much/below'), { recursive: true });
        writeFileSync(files.at('much/file'), Buffer.alloc(10_000, 'x'));
        linkSync(files.at('much/file'), files.at('much/below/again'));
        writeFileSync(files.at('much/holes'), '');
        truncateSync(files.at('much/holes'), 50_000_000);
        symlinkSync('/etc/passwd', files.at('much/link'));
        const { status, data } = await files.post(
            '/size',
            { root: 'main', path: 'much' },
            { role: 'viewer' }
        );
        expect(status).to.equal(200);
        expect(data).to.include({ bytes: 50_010_000, files: 3, folders: 1 });
        expect(Number(data.allocated)).to.be.between(9_999, 1_000_000);
        expect(data.largest.map(({ path, size }: { path: string; size: number }) => [path, size])).to.equal([
            ['much/holes', 50_000_000],
            ['much/file', 10_000]
        ]);
        const one = await files.post('/size', { root: 'main', path: 'much/file' });
        expect(one.data).to.include({ bytes: 10_000, files: 1, folders: 0 });
        expect((await files.post('/size', { root: 'main', path: 'none' })).code).to.equal(40400);
    });
});
