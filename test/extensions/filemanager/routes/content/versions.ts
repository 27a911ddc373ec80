import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createFilesRig, type FilesRig, rootPath } from '../../rig.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

let files: FilesRig;
const open = async (root: Readonly<Record<string, unknown>>): Promise<void> => {
    files = await createFilesRig();
    await set(root);
};
const set = async (root: Readonly<Record<string, unknown>>): Promise<void> => {
    await files.host.setSettings({
        roots: [
            { name: 'main', path: rootPath, roles: ['operator', 'viewer'], ...root },
            { name: 'second', path: '/second', roles: [] }
        ]
    });
};
const blobs = (): string[] => readdirSync(files.at('.portico/versions'));
const upload = (path: string, body: string) =>
    files.tus('POST', `uploads?root=main&path=${path}`, {
        headers: {
            'upload-length': String(body.length),
            'content-type': 'application/offset+octet-stream',
            'upload-metadata': `replace ${Buffer.from('true').toString('base64')}`
        },
        body
    });
interface Version {
    readonly id: number;
    readonly size: number;
    readonly by: string;
    readonly checksum: string;
}
const versionsOf = async (path: string): Promise<readonly Version[]> =>
    (await files.get('/versions', { root: 'main', path })).data;

describe('versions', () => {
    beforeEach(() => open({ versions: 3 }));
    afterEach(() => files.close());

    it('keeps what every route replaces, the same content once, and no more than the root says', async () => {
        await files.put('a', 'one');
        expect(existsSync(files.at('.portico/versions'))).to.be.false();
        await files.put('a', 'two', { role: 'operator' });
        expect((await upload('a', 'one')).status).to.equal(201);
        writeFileSync(files.at('b'), 'three');
        await files.post('/copy', { root: 'main', from: 'b', to: 'a', onConflict: 'replace' });
        const versions = await versionsOf('a');
        expect(versions.map(({ size, by }) => [size, by])).to.equal([
            [3, 'admin'],
            [3, 'admin'],
            [3, 'operator']
        ]);
        expect(blobs()).to.have.length(2);
        const sum = createHash('sha256').update('one').digest('hex');
        expect(versions[0]?.checksum).to.equal(sum);
        await files.put('a', 'four');
        expect((await versionsOf('a')).map(({ id }) => id)).to.not.include(versions[2]?.id);
        expect(blobs()).to.have.length(3);
        expect(statSync(files.at('.portico/versions', blobs()[0] ?? '')).mode & 0o077).to.equal(0);
        expect((await files.get('/files', { root: 'main', path: '.portico/versions' })).code).to.equal(40400);
    });

    it('gives and restores a version, and keeps what it replaces', async () => {
        await files.put('a', 'one');
        execFileSync('chown', ['nobody', files.at('a')]);
        execFileSync('chmod', ['0604', files.at('a')]);
        await files.put('a', 'two');
        const [version] = await versionsOf('a');
        const read = await files.as('operator').get(`/versions/${version?.id}`);
        expect([read.status, read.text]).to.equal([200, 'one']);
        expect((await files.as('viewer').get(`/versions/${version?.id}`)).code).to.equal(40300);
        expect((await files.as('guests').get(`/versions/${version?.id}`)).code).to.equal(40400);
        const restored = await files.post(`/versions/${version?.id}/restore`, {});
        expect([restored.status, readFileSync(files.at('a'), 'utf8')]).to.equal([200, 'one']);
        expect([statSync(files.at('a')).uid, statSync(files.at('a')).mode & 0o7777]).to.equal([65534, 0o604]);
        expect(await versionsOf('a')).to.have.length(2);
    });

    it('lets versions follow a moved file, and removes them with one that is removed for good', async () => {
        mkdirSync(files.at('folder'));
        await files.put('folder/a', 'one');
        await files.put('folder/a', 'two');
        await files.put('folderish', 'one');
        await files.put('folderish', 'two');
        await files.post('/move', { root: 'main', from: 'folder', to: 'other' });
        expect(await versionsOf('other/a')).to.have.length(1);
        expect(await versionsOf('folderish')).to.have.length(1);
        await files.remove('/files', { root: 'main', path: 'other' });
        expect(blobs()).to.have.length(1);
        await files.remove('/trash', { root: 'main' });
        expect(await versionsOf('other/a')).to.equal([]);
        expect(blobs()).to.have.length(1);
        await files.remove('/files', { root: 'main', path: 'folderish', permanent: 'true' });
        expect(blobs()).to.equal([]);
    });

    it('removes at the start what a crash left without a row', async () => {
        await files.put('a', 'one');
        await files.put('a', 'two');
        writeFileSync(files.at('.portico/versions/new-left'), 'half');
        await files.host.stop();
        await files.cleanUp();
        expect(blobs()).to.have.length(1);
    });
});

describe('a read-only root', () => {
    beforeEach(() => open({ versions: 3 }));
    afterEach(() => files.close());

    it('refuses every change by every route, and stays as it is', async () => {
        mkdirSync(join(files.host.machine, 'second'));
        writeFileSync(join(files.host.machine, 'second/x'), 'x');
        await files.put('a', 'one');
        await files.put('a', 'two');
        await files.put('gone', 'gone');
        await files.remove('/files', { root: 'main', path: 'gone' });
        await files.task(await files.post('/archives', { root: 'main', paths: ['a'], to: 'a.zip' }));
        const [version] = await versionsOf('a');
        const [item] = (await files.get('/trash')).data;
        const begun = await files.tus('POST', 'uploads?root=main&path=up', {
            headers: { 'upload-length': '5' }
        });
        const id = (begun.headers.get('location') ?? '').split('/').at(-1) ?? '';
        await set({ versions: 3, readOnly: true });
        const before = execFileSync('ls', ['-lAR', '--full-time', files.folder], { encoding: 'utf8' });
        const root = 'main';
        const one = [{ root, path: 'a' }];
        const answers = [
            await files.put('a', 'x'),
            await files.put('new', 'x'),
            await files.post('/folders', { root, path: 'f' }),
            await files.post('/links', { root, path: 'l', target: 'a', kind: 'hard' }),
            await files.post('/mode', { root, path: 'a', mode: '0777' }),
            await files.post('/owner', { root, path: 'a', owner: 'nobody' }),
            await files.post('/move', { root, from: 'a', to: 'b' }),
            await files.post('/move', { root, from: 'a', toRoot: 'second', to: 'b' }),
            await files.post('/move', { root: 'second', from: 'x', toRoot: root, to: 'b' }),
            await files.post('/copy', { root, from: 'a', to: 'b' }),
            await files.post('/copy', { root: 'second', from: 'x', toRoot: root, to: 'b' }),
            await files.remove('/files', { root, path: 'a' }),
            await files.remove('/files', { root, path: 'a', permanent: 'true' }),
            await files.post('/trash', { id: item.id }),
            await files.remove('/trash', { root }),
            await files.remove('/trash', { id: String(item.id) }),
            await files.post('/archives', { root, paths: ['a'], to: 'b.zip' }),
            await files.post('/archives/extract', { root, path: 'a.zip', to: 'out' }),
            await files.post(`/versions/${version?.id}/restore`, {}),
            await files.post('/batch', { action: 'copy', items: one, to: { root, path: '' } })
        ];
        expect(answers.map(({ code }) => code)).to.equal(answers.map(() => 40352));
        for (const action of ['trash', 'delete', 'mode', 'owner']) {
            const { data } = await files.post('/batch', {
                action,
                items: one,
                mode: '0777',
                owner: 'nobody'
            });
            expect(data.items[0].code).to.equal(40352);
        }
        expect((await upload('b', 'x')).reason).to.equal('READ_ONLY');
        const patch = await files.tus('PATCH', `uploads/${id}`, {
            headers: { 'upload-offset': '0', 'content-type': 'application/offset+octet-stream' },
            body: 'hello'
        });
        expect(patch.reason).to.equal('READ_ONLY');
        expect((await files.tus('DELETE', `uploads/${id}`)).reason).to.equal('READ_ONLY');
        expect((await files.remove('/trash', {})).status).to.equal(200);
        expect(execFileSync('ls', ['-lAR', '--full-time', files.folder], { encoding: 'utf8' })).to.equal(
            before
        );
        expect((await files.read('a')).data).to.equal('two');
        expect((await files.post('/copy', { root, from: 'a', toRoot: 'second', to: 'b' })).status).to.equal(
            201
        );
        expect((await files.get('/entry', { root, path: 'a' })).data.writable).to.be.false();
    });
});

describe('quotas', () => {
    beforeEach(() => open({ quotaBytes: 100_000, versions: 2 }));
    afterEach(() => files.close());

    const used = async (): Promise<number> => (await files.get('/roots')).data[0].usedBytes;

    it('refuses what would pass it: before it begins where the size is known, else it is undone', async () => {
        expect((await files.put('a', 'a'.repeat(60_000))).status).to.equal(201);
        expect(await used()).to.equal(60_000);
        const over = await files.put('b', 'b'.repeat(60_000));
        expect([over.status, over.reason]).to.equal([507, 'QUOTA_EXCEEDED']);
        const stream = await files.put(
            'b',
            (async function* () {
                for (let index = 0; index < 6; index += 1) {
                    yield Buffer.alloc(10_000);
                }
            })()
        );
        expect(stream.code).to.equal(50750);
        expect((await files.post('/copy', { root: 'main', from: 'a', to: 'b' })).code).to.equal(50750);
        const batch = await files.post('/batch', {
            action: 'copy',
            items: [{ root: 'main', path: 'a' }],
            to: { root: 'main', path: '' },
            onConflict: 'rename'
        });
        expect(batch.data.items[0].code).to.equal(50750);
        expect((await upload('b', 'b'.repeat(60_000))).reason).to.equal('QUOTA_EXCEEDED');
        // The old content stays as a version, and does not fit beside the new one.
        expect((await files.put('a', 'c'.repeat(50_000))).code).to.equal(50750);
        expect(readFileSync(files.at('a'), 'utf8')).to.equal('a'.repeat(60_000));
        expect(readdirSync(files.folder).filter((name) => name !== '.portico')).to.equal(['a']);
        expect(await used()).to.equal(60_000);
    });

    it('unpacks and packs nothing that would pass it', async () => {
        writeFileSync(join(files.outside, 'zeros'), Buffer.alloc(150_000));
        execFileSync('tar', ['-czf', files.at('bomb.tar.gz'), '-C', files.outside, 'zeros']);
        const unpacked = await files.task(
            await files.post('/archives/extract', { root: 'main', path: 'bomb.tar.gz', to: 'out' })
        );
        expect(unpacked.error).to.include({ code: 50750 });
        await files.put('big', Buffer.alloc(60_000));
        const packed = await files.task(
            await files.post('/archives', { root: 'main', paths: ['big'], to: 'big.tar' })
        );
        expect(packed.error).to.include({ code: 50750 });
        expect(readdirSync(files.folder).sort()).to.equal(['big', 'bomb.tar.gz']);
    });

    it('counts the trash, versions and announced uploads, and gives room back', async () => {
        await files.put('a', 'a'.repeat(40_000));
        await files.put('a', 'b'.repeat(40_000));
        expect(await used()).to.equal(80_000);
        await files.remove('/files', { root: 'main', path: 'a' });
        expect((await files.put('c', 'c'.repeat(30_000))).code).to.equal(50750);
        await files.remove('/trash', { root: 'main' });
        const begun = await files.tus('POST', 'uploads?root=main&path=up', {
            headers: { 'upload-length': '90000' }
        });
        expect(begun.status).to.equal(201);
        expect((await files.put('c', 'c'.repeat(30_000))).code).to.equal(50750);
        const id = (begun.headers.get('location') ?? '').split('/').at(-1) ?? '';
        expect((await files.tus('DELETE', `uploads/${id}`)).status).to.equal(204);
        expect((await files.put('c', 'c'.repeat(30_000))).status).to.equal(201);
    });

    it('lets no race of writes pass it', async () => {
        const writes = await Promise.all(
            [...Array(12).keys()].map((index) =>
                index % 3 === 0
                    ? upload(`f${index}`, 'x'.repeat(30_000))
                    : files.put(`f${index}`, 'x'.repeat(30_000))
            )
        );
        const won = writes.filter(({ status }) => status === 201);
        expect(won).to.have.length(3);
        const present = readdirSync(files.folder).filter((name) => name.startsWith('f'));
        expect(present).to.have.length(3);
        expect(await used()).to.equal(90_000);
    });
});
