import { execFileSync } from 'node:child_process';
import {
    chmodSync,
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

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createFilesRig, type FilesRig } from '../rig.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

let files: FilesRig;
const start = async (): Promise<void> => {
    files = await createFilesRig();
};
const names = (...folder: string[]): string[] =>
    readdirSync(files.at(...folder))
        .filter((name) => name !== '.portico')
        .sort();

describe('POST /api/plugins/filemanager/move', () => {
    beforeEach(start);
    afterEach(async () => files.close());

    it('moves files, folders and links, only to a free name', async () => {
        mkdirSync(files.at('a/b'), { recursive: true });
        writeFileSync(files.at('a/b/file'), 'content');
        symlinkSync('/etc/passwd', files.at('link'));
        expect((await files.post('/move', { root: 'main', from: 'a/b', to: 'c' })).data).to.include({
            path: 'c',
            type: 'folder'
        });
        expect((await files.post('/move', { root: 'main', from: 'link', to: 'a/link' })).data.type).to.equal(
            'link'
        );
        expect(readlinkSync(files.at('a/link'))).to.equal('/etc/passwd');
        writeFileSync(files.at('taken'), 'mine');
        const taken = await files.post('/move', { root: 'main', from: 'c/file', to: 'taken' });
        expect([taken.code, taken.reason, taken.data]).to.equal([40900, 'CONFLICT', { field: 'to' }]);
        expect(readFileSync(files.at('taken'), 'utf8')).to.equal('mine');
        expect(readFileSync(files.at('c/file'), 'utf8')).to.equal('content');
    });

    it('refuses the root, what is not there, and a folder into itself', async () => {
        mkdirSync(files.at('a'));
        expect((await files.post('/move', { root: 'main', from: '', to: 'x' })).code).to.equal(40001);
        expect((await files.post('/move', { root: 'main', from: 'none', to: 'x' })).code).to.equal(40400);
        expect((await files.post('/move', { root: 'main', from: 'a', to: 'a/b' })).reason).to.equal(
            'INSIDE_ITSELF'
        );
        expect((await files.post('/move', { root: 'main', from: 'a', to: 'none/b' })).code).to.equal(40400);
        expect((await files.post('/move', { root: 'main', from: 'a', to: '../b' })).reason).to.equal(
            'OUTSIDE_ROOT'
        );
        expect(
            (await files.post('/move', { root: 'main', from: 'a', to: '.portico/trash/x' })).code
        ).to.equal(40400);
        expect(names()).to.equal(['a']);
    });
});

describe('POST /api/plugins/filemanager/copy', () => {
    beforeEach(start);
    afterEach(async () => files.close());

    it('copies a small tree at once, without links, with bits', async () => {
        mkdirSync(files.at('site/css'), { recursive: true });
        writeFileSync(files.at('site/css/a.css'), 'a{}');
        chmodSync(files.at('site/css/a.css'), 0o604);
        chmodSync(files.at('site/css'), 0o555);
        symlinkSync(files.outside, files.at('site/door'));
        const { status, data } = await files.post('/copy', { root: 'main', from: 'site', to: 'copy' });
        expect([status, data.path, data.type]).to.equal([201, 'copy', 'folder']);
        expect(names('copy')).to.equal(['css']);
        expect(readFileSync(files.at('copy/css/a.css'), 'utf8')).to.equal('a{}');
        expect([
            statSync(files.at('copy/css/a.css')).mode & 0o777,
            statSync(files.at('copy/css')).mode & 0o777
        ]).to.equal([0o604, 0o555]);
        expect((await files.post('/copy', { root: 'main', from: 'site', to: 'copy' })).code).to.equal(40900);
        expect((await files.post('/copy', { root: 'main', from: 'site', to: 'site/in' })).reason).to.equal(
            'INSIDE_ITSELF'
        );
        expect((await files.post('/copy', { root: 'main', from: 'site/door', to: 'door' })).reason).to.equal(
            'WRONG_TYPE'
        );
        expect(names()).to.equal(['copy', 'site']);
    });

    it('makes a task of a large tree, and leaves nothing of one that was cancelled', async () => {
        mkdirSync(files.at('many'));
        Array.from({ length: 700 }, (_, index) =>
            writeFileSync(files.at('many', `file${index}`), `${index}`)
        );
        const answer = await files.post('/copy', { root: 'main', from: 'many', to: 'all' });
        expect(answer.status).to.equal(202);
        const task = await files.task(answer);
        expect(task).to.include({ state: 'succeeded', kind: 'filemanager.copy' });
        expect(task.result).to.include({ entries: 701, skipped: 0, path: 'all' });
        expect(names('all')).to.have.length(700);
        const cut = await files.post('/copy', { root: 'main', from: 'many', to: 'cut' });
        expect((await files.cancel(cut)).state).to.equal('cancelled');
        expect(names()).to.equal(['all', 'many']);
    });
});

describe('POST /api/plugins/filemanager/mode', () => {
    beforeEach(start);
    afterEach(async () => files.close());

    it('sets bits from a number or an octal text, and lends no rights of another account', async () => {
        writeFileSync(files.at('file'), '');
        mkdirSync(files.at('shared'));
        chmodSync(files.at('shared'), 0o2750);
        expect((await files.post('/mode', { root: 'main', path: 'file', mode: 0o600 })).data.mode).to.equal(
            0o600
        );
        expect((await files.post('/mode', { root: 'main', path: 'file', mode: '0755' })).data.mode).to.equal(
            0o755
        );
        expect((await files.post('/mode', { root: 'main', path: 'shared', mode: '770' })).data.mode).to.equal(
            0o2770
        );
        for (const mode of [0o4755, '4755', '2755', '8', '', 'rwx', -1, 1.5]) {
            expect((await files.post('/mode', { root: 'main', path: 'file', mode })).code).to.equal(40001);
        }
        expect(statSync(files.at('file')).mode & 0o7777).to.equal(0o755);
    });

    it('never reaches through a link', async () => {
        writeFileSync(`${files.outside}/target`, '');
        chmodSync(`${files.outside}/target`, 0o600);
        symlinkSync(`${files.outside}/target`, files.at('link'));
        expect((await files.post('/mode', { root: 'main', path: 'link', mode: 0o777 })).reason).to.equal(
            'WRONG_TYPE'
        );
        expect(statSync(`${files.outside}/target`).mode & 0o777).to.equal(0o600);
    });
});

describe('DELETE /api/plugins/filemanager/files', () => {
    beforeEach(start);
    afterEach(async () => files.close());

    it('moves to a trash that no other user can look into, and back', async () => {
        mkdirSync(files.at('docs/deep'), { recursive: true });
        writeFileSync(files.at('docs/deep/a'), 'a');
        symlinkSync('/etc/passwd', files.at('link'));
        expect(
            (await files.remove('/files', { root: 'main', path: 'docs/deep/a' }, { user: 'ann' })).data
        ).to.be.null();
        await files.remove('/files', { root: 'main', path: 'docs' });
        await files.remove('/files', { root: 'main', path: 'link' });
        expect(names()).to.equal([]);
        expect(statSync(files.at('.portico')).mode & 0o777).to.equal(0o700);
        const { data } = await files.get('/trash', { root: 'main' }, { role: 'viewer' });
        expect(
            data.map(({ path, type, root }: { path: string; type: string; root: string }) => [
                root,
                path,
                type
            ])
        ).to.equal([
            ['main', 'link', 'link'],
            ['main', 'docs', 'folder'],
            ['main', 'docs/deep/a', 'file']
        ]);
        expect(data[2].deletedBy).to.equal('ann');
        expect((await files.post('/trash', { id: data[2].id })).data).to.include({
            path: 'docs/deep/a',
            size: 1
        });
        expect(readFileSync(files.at('docs/deep/a'), 'utf8')).to.equal('a');
        expect((await files.post('/trash', { id: data[1].id })).reason).to.equal('CONFLICT');
        expect((await files.post('/trash', { id: data[1].id, to: 'docs2' })).status).to.equal(200);
        expect((await files.post('/trash', { id: data[1].id })).code).to.equal(40400);
        expect(
            (await files.get('/files', { root: 'main', path: '' })).data.map(
                ({ name }: { name: string }) => name
            )
        ).to.equal(['docs', 'docs2']);
        await files.remove('/trash', { root: 'main' });
        expect((await files.get('/trash')).data).to.equal([]);
        expect(readdirSync(files.at('.portico/trash'))).to.equal([]);
        expect(existsSync('/etc/passwd')).to.be.true();
    });

    it('shows and gives the trash of a root to no other user', async () => {
        writeFileSync(files.at('a'), '');
        await files.remove('/files', { root: 'main', path: 'a' });
        const { id } = (await files.get('/trash')).data[0] as { id: number };
        expect((await files.get('/trash', {}, { role: 'guests' })).data).to.equal([]);
        expect((await files.get('/trash', { root: 'main' }, { role: 'guests' })).code).to.equal(40400);
        expect((await files.post('/trash', { id }, { role: 'guests' })).code).to.equal(40400);
        expect((await files.remove('/trash', { id: String(id) }, { role: 'guests' })).code).to.equal(40400);
    });

    it('removes for good without following links, and a large folder as a task', async () => {
        writeFileSync(`${files.outside}/kept`, 'kept');
        mkdirSync(files.at('large'));
        symlinkSync(files.outside, files.at('large/door'));
        Array.from({ length: 600 }, (_, index) => writeFileSync(files.at('large', `file${index}`), ''));
        const answer = await files.remove('/files', { root: 'main', path: 'large', permanent: 'true' });
        expect((await files.task(answer)).state).to.equal('succeeded');
        symlinkSync(files.outside, files.at('door'));
        expect(
            (await files.remove('/files', { root: 'main', path: 'door', permanent: 'true' })).data
        ).to.be.null();
        expect(names()).to.equal([]);
        expect(readdirSync(files.outside)).to.equal(['kept']);
    });

    it('refuses a stale version, the root, and a private folder that another account prepared', async () => {
        const { data } = await files.put('a', 'one');
        await files.put('a', 'two');
        expect(
            (await files.remove('/files', { root: 'main', path: 'a' }, { ifMatch: data.version })).code
        ).to.equal(41200);
        expect((await files.remove('/files', { root: 'main', path: '' })).code).to.equal(40001);
        mkdirSync(files.at('.portico'), { mode: 0o755 });
        expect((await files.remove('/files', { root: 'main', path: 'a' })).reason).to.equal(
            'PRIVATE_FOLDER_UNSAFE'
        );
        execFileSync('rmdir', [files.at('.portico')]);
        symlinkSync(files.outside, files.at('.portico'));
        expect((await files.remove('/files', { root: 'main', path: 'a' })).reason).to.equal(
            'PRIVATE_FOLDER_UNSAFE'
        );
        expect(readFileSync(files.at('a'), 'utf8')).to.equal('two');
        expect(readdirSync(files.outside)).to.equal([]);
        expect((await files.get('/trash')).data).to.equal([]);
    });

    it('says that another file system is in the way, and moves nothing', async () => {
        mkdirSync(files.at('mounted'));
        execFileSync('mount', ['-t', 'tmpfs', 'none', files.at('mounted')]);
        try {
            writeFileSync(files.at('mounted/a'), 'a');
            expect((await files.remove('/files', { root: 'main', path: 'mounted/a' })).reason).to.equal(
                'OTHER_DEVICE'
            );
            expect((await files.post('/move', { root: 'main', from: 'mounted/a', to: 'a' })).reason).to.equal(
                'OTHER_DEVICE'
            );
            expect((await files.put('mounted/b', 'b')).status).to.equal(201);
            expect((await files.post('/copy', { root: 'main', from: 'mounted/a', to: 'a' })).status).to.equal(
                201
            );
            expect(names('mounted')).to.equal(['a', 'b']);
            expect((await files.get('/trash')).data).to.equal([]);
        } finally {
            execFileSync('umount', [files.at('mounted')]);
        }
    });

    it('keeps the trash as long as the settings say, and forgets what a crash left only as a row', async () => {
        await files.put('old', 'old');
        await files.put('lost', 'lost');
        await files.remove('/files', { root: 'main', path: 'old' });
        await files.remove('/files', { root: 'main', path: 'lost' });
        const [lost] = readdirSync(files.at('.portico/trash')).filter(
            (key) => readFileSync(files.at('.portico/trash', key), 'utf8') === 'lost'
        );
        execFileSync('rm', [files.at('.portico/trash', lost ?? '')]);
        await files.host.stop();
        await files.cleanUp();
        await files.host.start();
        expect((await files.get('/trash')).data.map(({ path }: { path: string }) => path)).to.equal(['old']);
        await files.host.setSettings({ trashDays: 1 });
        const later = Date.now() + 2 * 86_400_000;
        const real = Date.now;
        Date.now = () => later;
        try {
            await files.host.schedules.run('expire');
        } finally {
            Date.now = real;
        }
        expect((await files.get('/trash')).data).to.equal([]);
        expect(readdirSync(files.at('.portico/trash'))).to.equal([]);
    });
});

describe('GET /api/plugins/filemanager/search', () => {
    beforeEach(start);
    afterEach(async () => files.close());

    it('finds names by a part or a pattern, never through a link or in its own folders', async () => {
        mkdirSync(files.at('a/b'), { recursive: true });
        ['a/Report.PDF', 'a/b/report-2.pdf', 'a/b/other.txt'].forEach((path) =>
            writeFileSync(files.at(path), '')
        );
        writeFileSync(`${files.outside}/report-outside.pdf`, '');
        symlinkSync(files.outside, files.at('a/door'));
        await files.put('report-gone.pdf', '');
        await files.remove('/files', { root: 'main', path: 'report-gone.pdf' });
        const found = async (q: string, path = ''): Promise<string[]> =>
            (await files.get('/search', { root: 'main', path, q }, { role: 'viewer' })).data.map(
                (one: { path: string }) => one.path
            );
        expect(await found('report')).to.equal(['a/Report.PDF', 'a/b/report-2.pdf']);
        expect(await found('report', 'a/b')).to.equal(['a/b/report-2.pdf']);
        expect(await found('*.pdf')).to.equal(['a/Report.PDF', 'a/b/report-2.pdf']);
        expect(await found('report-?.pdf')).to.equal(['a/b/report-2.pdf']);
        expect(
            (await files.get('/search', { root: 'main', q: 'report', limit: '1' })).headers['x-truncated']
        ).to.equal('results');
        expect(lstatSync(files.at('a/door')).isSymbolicLink()).to.be.true();
    });

    it('takes no longer for a pattern that is made to be slow', async () => {
        writeFileSync(files.at('a'.repeat(200)), '');
        const began = process.cpuUsage();
        expect((await files.get('/search', { root: 'main', q: `${'*a'.repeat(100)}*b` })).data).to.equal([]);
        expect(process.cpuUsage(began).user).to.be.below(1e6);
    });
});
