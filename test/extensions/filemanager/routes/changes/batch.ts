import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
    existsSync,
    lstatSync,
    mkdirSync,
    readdirSync,
    readFileSync,
    readlinkSync,
    statSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createFilesRig, type FilesRig, rootPath } from '../../rig.ts';

export const lab = Lab.script();
const { describe, it, before, beforeEach, after, afterEach } = lab;

let files: FilesRig;
let second: string;

/** Roots `main`, `second` for the same roles, and `admins` for admins alone. */
const start = async (): Promise<void> => {
    files = await createFilesRig();
    second = join(files.host.machine, 'second');
    mkdirSync(second);
    mkdirSync(join(files.host.machine, 'admins'));
    await files.host.setSettings({
        roots: [
            { name: 'main', path: rootPath, roles: ['operator'] },
            { name: 'second', path: '/second', roles: ['operator'], versions: 3 },
            { name: 'admins', path: '/admins' }
        ]
    });
};
const visible = (folder: string): string[] => readdirSync(folder).filter((name) => name !== '.portico');

describe('POST /api/plugins/filemanager/batch', () => {
    beforeEach(start);
    afterEach(() => files.close());

    it('says for each item what became of it, and does the rest all the same', async () => {
        writeFileSync(files.at('a.txt'), 'a');
        mkdirSync(files.at('folder/in'), { recursive: true });
        writeFileSync(files.at('folder/in/deep'), 'deep');
        writeFileSync(join(second, 'taken'), 'theirs');
        writeFileSync(files.at('taken'), 'mine');
        const { status, data } = await files.post('/batch', {
            action: 'move',
            items: [
                { root: 'main', path: 'a.txt' },
                { root: 'main', path: 'folder' },
                { root: 'main', path: 'none' },
                { root: 'main', path: 'taken' },
                { root: 'main', path: '../outside' },
                { root: 'unknown', path: 'x' },
                { root: 'main', path: '.portico/trash' },
                { root: 'main', path: 'folder/in/deep' }
            ],
            to: { root: 'second', path: '' }
        });
        expect([status, data.done, data.skipped, data.failed]).to.equal([200, 2, 0, 6]);
        expect(data.items.map(({ state, code, to }: Record<string, unknown>) => [state, code, to])).to.equal([
            ['done', null, 'a.txt'],
            ['done', null, 'folder'],
            ['failed', 40400, null],
            ['failed', 40900, null],
            ['failed', 40350, null],
            ['failed', 40400, null],
            ['failed', 40400, null],
            ['failed', 40955, null]
        ]);
        expect(visible(files.folder)).to.equal(['taken']);
        expect(visible(second).sort()).to.equal(['a.txt', 'folder', 'taken']);
        expect(readFileSync(join(second, 'folder/in/deep'), 'utf8')).to.equal('deep');
        expect(readFileSync(join(second, 'taken'), 'utf8')).to.equal('theirs');
        expect(await files.held()).to.equal([]);
    });

    it('asks for the role of both roots', async () => {
        writeFileSync(files.at('a'), 'a');
        writeFileSync(join(files.host.machine, 'admins/secret'), 'secret');
        const into = await files.post(
            '/batch',
            { action: 'copy', items: [{ root: 'main', path: 'a' }], to: { root: 'admins', path: '' } },
            { role: 'operator' }
        );
        expect([into.status, into.code]).to.equal([404, 40400]);
        const out = await files.post(
            '/batch',
            { action: 'copy', items: [{ root: 'admins', path: 'secret' }], to: { root: 'main', path: '' } },
            { role: 'operator' }
        );
        expect(out.data.items[0]).to.include({ state: 'failed', code: 40400 });
        expect(visible(files.folder)).to.equal(['a']);
        for (const [action, from] of [
            ['trash', 'admins'],
            ['delete', 'admins'],
            ['mode', 'admins']
        ]) {
            const { data } = await files.post(
                '/batch',
                { action, items: [{ root: from, path: 'secret' }], mode: '0777' },
                { role: 'operator' }
            );
            expect(data.items[0].code).to.equal(40400);
        }
        expect(readFileSync(join(files.host.machine, 'admins/secret'), 'utf8')).to.equal('secret');
    });

    it('names, leaves out or replaces what is there, as was asked', async () => {
        writeFileSync(files.at('a.tar.gz'), 'new');
        mkdirSync(files.at('b'));
        writeFileSync(files.at('b/new'), 'new');
        writeFileSync(join(second, 'a.tar.gz'), 'old');
        mkdirSync(join(second, 'b'));
        writeFileSync(join(second, 'b/old'), 'old');
        const items = [
            { root: 'main', path: 'a.tar.gz' },
            { root: 'main', path: 'b' }
        ];
        const send = async (onConflict: string) =>
            (
                await files.post('/batch', {
                    action: 'copy',
                    items,
                    to: { root: 'second', path: '' },
                    onConflict
                })
            ).data.items.map(({ state, to }: { state: string; to: string | null }) => [state, to]);
        expect(await send('skip')).to.equal([
            ['skipped', null],
            ['skipped', null]
        ]);
        expect(await send('rename')).to.equal([
            ['done', 'a (2).tar.gz'],
            ['done', 'b (2)']
        ]);
        expect(await send('replace')).to.equal([
            ['done', 'a.tar.gz'],
            ['done', 'b']
        ]);
        expect(readFileSync(join(second, 'a.tar.gz'), 'utf8')).to.equal('new');
        expect(visible(join(second, 'b'))).to.equal(['new']);
        const { data: trash } = await files.get('/trash', { root: 'second' });
        expect(trash.map(({ path }: { path: string }) => path)).to.equal(['b']);
        const { data: versions } = await files.get('/versions', { root: 'second', path: 'a.tar.gz' });
        expect(versions).to.have.length(1);
    });

    it('keeps links of a moved tree, and moves none that would lead elsewhere', async () => {
        mkdirSync(files.at('good/bin'), { recursive: true });
        writeFileSync(files.at('good/tool'), 'tool');
        symlinkSync('../tool', files.at('good/bin/tool'));
        mkdirSync(files.at('bad'));
        writeFileSync(files.at('bad/kept'), 'kept');
        symlinkSync('/etc/passwd', files.at('bad/link'));
        mkdirSync(files.at('climbs'));
        symlinkSync('../good', files.at('climbs/link'));
        const { data } = await files.post('/batch', {
            action: 'move',
            items: ['good', 'bad', 'climbs'].map((path) => ({ root: 'main', path })),
            to: { root: 'second', path: '' }
        });
        expect(data.items.map(({ code }: { code: number }) => code)).to.equal([null, 40956, 40956]);
        expect(readlinkSync(join(second, 'good/bin/tool'))).to.equal('../tool');
        expect(visible(second)).to.equal(['good']);
        expect(visible(files.folder).sort()).to.equal(['bad', 'climbs']);
        expect(readFileSync(files.at('bad/kept'), 'utf8')).to.equal('kept');
    });

    it('moves to another file system of the same root by a verified copy', async () => {
        mkdirSync(files.at('mounted'));
        execFileSync('mount', ['-t', 'tmpfs', 'none', files.at('mounted')]);
        try {
            writeFileSync(files.at('a'), 'a'.repeat(300_000));
            const { data } = await files.post('/batch', {
                action: 'move',
                items: [{ root: 'main', path: 'a' }],
                to: { root: 'main', path: 'mounted' }
            });
            expect(data.items[0]).to.include({ state: 'done', to: 'mounted/a' });
            expect(existsSync(files.at('a'))).to.be.false();
            expect(readFileSync(files.at('mounted/a'), 'utf8')).to.have.length(300_000);
            expect(readdirSync(files.at('mounted'))).to.equal(['a']);
        } finally {
            execFileSync('umount', [files.at('mounted')]);
        }
    });

    it('makes a task of many, and sets bits and owners without following links', async () => {
        writeFileSync(join(files.outside, 'file'), 'outside', { mode: 0o600 });
        symlinkSync(join(files.outside, 'file'), files.at('link'));
        for (let index = 0; index < 210; index += 1) {
            writeFileSync(files.at(`f${index}`), String(index));
        }
        const items = [...Array(210).keys()].map((index) => ({ root: 'main', path: `f${index}` }));
        const mode = await files.task(
            await files.post('/batch', {
                action: 'mode',
                mode: '0600',
                items: [...items, { root: 'main', path: 'link' }]
            })
        );
        expect(mode.result).to.include({ done: 210, failed: 1 });
        expect(statSync(files.at('f209')).mode & 0o7777).to.equal(0o600);
        const owner = await files.post('/batch', {
            action: 'owner',
            owner: 'nobody',
            items: [
                { root: 'main', path: 'f1' },
                { root: 'main', path: 'link' }
            ]
        });
        expect(owner.data.failed).to.equal(0);
        expect([statSync(files.at('f1')).uid, lstatSync(files.at('link')).uid]).to.equal([65534, 65534]);
        expect(statSync(join(files.outside, 'file')).uid).to.equal(0);
        expect(statSync(join(files.outside, 'file')).mode & 0o777).to.equal(0o600);
        const trash = await files.task(await files.post('/batch', { action: 'trash', items }));
        expect(trash.result).to.include({ done: 210, failed: 0 });
        expect(visible(files.folder)).to.equal(['link']);
        expect((await files.get('/trash')).data).to.have.length(210);
    });

    it('refuses what an action needs and does not get', async () => {
        const items = [{ root: 'main', path: 'a' }];
        expect((await files.post('/batch', { action: 'move', items })).code).to.equal(40001);
        expect((await files.post('/batch', { action: 'mode', items })).code).to.equal(40001);
        expect((await files.post('/batch', { action: 'owner', items })).code).to.equal(40001);
        expect((await files.post('/batch', { action: 'mode', items, mode: '4755' })).code).to.equal(40001);
        const to = { root: 'main', path: 'none' };
        expect((await files.post('/batch', { action: 'copy', items, to })).code).to.equal(40400);
    });
});

describe('move and copy between roots', () => {
    beforeEach(start);
    afterEach(() => files.close());

    it('copies, verifies and removes, and refuses a folder into itself by way of another root', async () => {
        mkdirSync(files.at('a'));
        writeFileSync(files.at('a/file'), 'content');
        const moved = await files.post('/move', { root: 'main', from: 'a', toRoot: 'second', to: 'b' });
        expect([moved.status, moved.data.path]).to.equal([200, 'b']);
        expect(existsSync(files.at('a'))).to.be.false();
        const copied = await files.post('/copy', { root: 'second', from: 'b', toRoot: 'main', to: 'c' });
        expect([copied.status, readFileSync(files.at('c/file'), 'utf8')]).to.equal([201, 'content']);
        await files.host.setSettings({
            roots: [
                { name: 'main', path: rootPath },
                { name: 'inner', path: `${rootPath}/c` }
            ]
        });
        for (const way of ['/move', '/copy']) {
            const into = await files.post(way, { root: 'main', from: 'c', toRoot: 'inner', to: 'x' });
            expect(into.reason).to.equal('INSIDE_ITSELF');
            const same = await files.post(way, {
                root: 'main',
                from: 'c/file',
                toRoot: 'inner',
                to: 'file',
                onConflict: 'replace'
            });
            expect(same.reason).to.equal('INSIDE_ITSELF');
        }
        expect(readFileSync(files.at('c/file'), 'utf8')).to.equal('content');
    });

    it('leaves what is taken alone with skip, and takes the next name with rename', async () => {
        writeFileSync(files.at('a.txt'), 'a');
        writeFileSync(files.at('b.txt'), 'b');
        const skipped = await files.post('/move', {
            root: 'main',
            from: 'a.txt',
            to: 'b.txt',
            onConflict: 'skip'
        });
        expect([skipped.status, skipped.data.path, readFileSync(files.at('b.txt'), 'utf8')]).to.equal([
            200,
            'b.txt',
            'b'
        ]);
        const renamed = await files.post('/move', {
            root: 'main',
            from: 'a.txt',
            to: 'b.txt',
            onConflict: 'rename'
        });
        expect(renamed.data.path).to.equal('b (2).txt');
        expect(visible(files.folder).sort()).to.equal(['b (2).txt', 'b.txt']);
    });
});

describe('owner, bits and checksums', () => {
    before(start);
    after(() => files.close());

    it('sets bits and owners below a folder, never set-id bits, never through a link', async () => {
        mkdirSync(files.at('tree/in'), { recursive: true });
        writeFileSync(files.at('tree/in/file'), 'x', { mode: 0o600 });
        writeFileSync(join(files.outside, 'file'), 'outside', { mode: 0o600 });
        symlinkSync(files.outside, files.at('tree/link'));
        const mode = await files.post('/mode', { root: 'main', path: 'tree', mode: '0640', recursive: true });
        expect(mode.status).to.equal(200);
        expect(statSync(files.at('tree/in')).mode & 0o7777).to.equal(0o750);
        expect(statSync(files.at('tree/in/file')).mode & 0o7777).to.equal(0o640);
        const each = { root: 'main', path: 'tree', mode: '0604', folderMode: '0711', recursive: true };
        expect((await files.post('/mode', each)).status).to.equal(200);
        const bits = ['tree', 'tree/in', 'tree/in/file'].map(
            (path) => statSync(files.at(path)).mode & 0o7777
        );
        expect(bits).to.equal([0o711, 0o711, 0o604]);
        const own = await files.post('/owner', {
            root: 'main',
            path: 'tree',
            owner: 'nobody',
            group: 'daemon',
            recursive: true
        });
        expect([own.status, own.data.owner, own.data.group]).to.equal([200, 'nobody', 'daemon']);
        expect([
            statSync(files.at('tree/in/file')).uid,
            lstatSync(files.at('tree/link')).uid,
            statSync(files.outside).uid,
            statSync(join(files.outside, 'file')).uid
        ]).to.equal([65534, 65534, 0, 0]);
        expect(statSync(join(files.outside, 'file')).mode & 0o777).to.equal(0o600);
        for (const bad of ['2755', '4755', 0o6755]) {
            const refused = await files.post('/mode', {
                root: 'main',
                path: 'tree',
                mode: bad,
                recursive: true
            });
            expect(refused.code).to.equal(40001);
        }
        execFileSync('chmod', ['4755', files.at('tree/in/file')]);
        await files.post('/owner', { root: 'main', path: 'tree/in/file', owner: 0 });
        expect(statSync(files.at('tree/in/file')).mode & 0o6000).to.equal(0);
    });

    it('refuses names that the machine does not have', async () => {
        for (const owner of ['no-such-account', '-h', 'a b', '../x']) {
            const { code } = await files.post('/owner', { root: 'main', path: 'tree', owner });
            expect(code).to.equal(40001);
        }
        expect((await files.post('/owner', { root: 'main', path: 'tree' })).code).to.equal(40001);
    });

    it('makes checksums, and follows no link', async () => {
        writeFileSync(files.at('sum'), 'x'.repeat(3_000_000));
        const sha256 = createHash('sha256')
            .update(readFileSync(files.at('sum')))
            .digest('hex');
        const { status, data } = await files.post('/checksums', { root: 'main', paths: ['sum'] });
        expect([status, data]).to.equal([200, [{ path: 'sum', checksum: sha256 }]]);
        const md5 = createHash('md5')
            .update(readFileSync(files.at('sum')))
            .digest('hex');
        const other = await files.post('/checksums', { root: 'main', paths: ['sum'], algorithm: 'md5' });
        expect(other.data[0].checksum).to.equal(md5);
        symlinkSync('/etc/passwd', files.at('passwd'));
        expect((await files.post('/checksums', { root: 'main', paths: ['passwd'] })).code).to.equal(40400);
        const viewer = await files.post('/checksums', { root: 'main', paths: ['sum'] }, { role: 'viewer' });
        expect(viewer.code).to.equal(40300);
    });
});
