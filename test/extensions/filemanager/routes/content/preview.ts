import { symlinkSync, writeFileSync } from 'node:fs';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createFilesRig, type FilesRig } from '../../rig.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

describe('GET /api/plugins/filemanager/preview', () => {
    let files: FilesRig;

    before(async () => {
        files = await createFilesRig();
    });

    after(() => files.close());

    const preview = async (name: string, content: string | Uint8Array) => {
        writeFileSync(files.at(name), content);
        return (await files.get('/preview', { root: 'main', path: name })).data;
    };

    it('tells texts by their bytes, all else by the name, and cuts no character', async () => {
        expect(await preview('a.conf', 'ä')).to.include({ kind: 'text', encoding: 'utf-8', text: 'ä' });
        expect(await preview('empty', '')).to.include({ kind: 'text', text: '' });
        expect(await preview('nul', 'a\0b')).to.include({ kind: 'binary', text: null });
        expect(await preview('latin', Buffer.from([0x61, 0xe4, 0x62]))).to.include({ kind: 'binary' });
        expect(await preview('a.png', 'x')).to.include({ kind: 'image', type: 'image/png', text: null });
        expect(await preview('a.pdf', 'x')).to.include({ kind: 'pdf' });
        expect(await preview('a.svg', '<svg/>')).to.include({ kind: 'text', text: '<svg/>' });
        const { kind, text } = await preview('large', `a${'ä'.repeat(50_000)}`);
        expect([kind, text.length, text.endsWith('ä')]).to.equal(['text', 32_768, true]);
    });

    it('asks for the permission, and follows no link', async () => {
        symlinkSync('/etc/passwd', files.at('link'));
        expect((await files.get('/preview', { root: 'main', path: 'link' })).code).to.equal(40400);
        const viewer = await files.get('/preview', { root: 'main', path: 'a.conf' }, { role: 'viewer' });
        expect(viewer.code).to.equal(40300);
        expect(await files.held()).to.equal([]);
    });
});
