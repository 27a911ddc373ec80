import { execFileSync } from 'node:child_process';
import {
    chmodSync,
    existsSync,
    lstatSync,
    mkdirSync,
    readdirSync,
    readFileSync,
    statfsSync,
    statSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { until } from '../../../support/until.ts';
import { createFilesRig, type FilesRig, rootPath } from '../rig.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

describe('GET /api/plugins/filemanager/files', () => {
    let files: FilesRig;

    before(async () => {
        files = await createFilesRig();
    });

    after(async () => files.close());

    it('names the roots that the role reaches, and says of the others nothing', async () => {
        const { data: roots } = await files.get('/roots');
        const { bsize, blocks } = statfsSync(files.folder);
        expect(roots).to.equal([
            {
                name: 'main',
                path: rootPath,
                available: true,
                readOnly: false,
                quotaBytes: null,
                usedBytes: null,
                space: { total: bsize * blocks, available: roots[0].space.available }
            }
        ]);
        expect(Number(roots[0].space.available)).to.be.between(0, bsize * blocks);
        expect((await files.get('/roots', {}, { role: 'viewer' })).data).to.have.length(1);
        expect((await files.get('/roots', {}, { role: 'guests' })).data).to.equal([]);
        const refused = await files.get('/files', { root: 'main', path: '' }, { role: 'guests' });
        const unknown = await files.get('/files', { root: 'none', path: '' }, { role: 'guests' });
        expect([refused.code, refused.reason]).to.equal([40400, 'NOT_FOUND']);
        expect(refused).to.equal(unknown);
    });

    it('lists names of any kind with type, size, bits, owner and version', async () => {
        const names = [
            'plain.txt',
            'new\nline',
            '-rf',
            ' leading',
            'ümläut',
            '"quoted" & <b>',
            '\\back',
            'percent%2e%2e'
        ];
        mkdirSync(files.at('list'));
        names.forEach((name) => writeFileSync(files.at('list', name), 'four'));
        mkdirSync(files.at('list', 'folder'));
        symlinkSync('/etc/passwd', files.at('list', 'link'));
        execFileSync('mkfifo', [files.at('list', 'pipe')]);
        chmodSync(files.at('list', 'plain.txt'), 0o604);
        const { data, headers } = await files.get(
            '/files',
            { root: 'main', path: 'list' },
            { role: 'viewer' }
        );
        expect(data.map(({ name }: { name: string }) => name)).to.equal(
            [...names, 'folder', 'link', 'pipe'].sort()
        );
        expect(headers['x-total-count']).to.equal('11');
        const plain = data.find(({ name }: { name: string }) => name === 'plain.txt');
        expect(plain).to.include({
            path: 'list/plain.txt',
            type: 'file',
            size: 4,
            mode: 0o604,
            owner: 'root',
            group: 'root'
        });
        expect(plain.modifiedAt).to.equal(
            new Date(Math.floor(statSync(files.at('list', 'plain.txt')).mtimeMs)).toISOString()
        );
        expect(
            Object.fromEntries(data.map(({ name, type }: { name: string; type: string }) => [name, type]))
        ).to.include({ folder: 'folder', link: 'link', pipe: 'other' });
        for (const name of names) {
            expect((await files.read(`list/${name}`)).data).to.equal('four');
        }
    });

    it('pages in the order of names, and stays right while rows are added', async () => {
        mkdirSync(files.at('pages'));
        ['a', 'b', 'c', 'd', 'e'].forEach((name) => writeFileSync(files.at('pages', name), ''));
        const first = await files.get('/files', { root: 'main', path: 'pages', limit: '2' });
        expect(first.data.map(({ name }: { name: string }) => name)).to.equal(['a', 'b']);
        writeFileSync(files.at('pages', 'aa'), '');
        const next = new URL(
            /<([^>]*)>; rel="next"/.exec(first.headers['link'] ?? '')?.[1] ?? '',
            'http://panel'
        );
        const cursor = next.searchParams.get('cursor') ?? '';
        const second = await files.get('/files', { root: 'main', path: 'pages', limit: '10', cursor });
        expect(second.data.map(({ name }: { name: string }) => name)).to.equal(['c', 'd', 'e']);
        expect(second.headers['link']).to.be.undefined();
    });

    it('shows the number of an unknown owner', async () => {
        writeFileSync(files.at('stranger'), '');
        execFileSync('chown', ['54321:54322', files.at('stranger')]);
        const { data } = await files.get('/files', { root: 'main', path: '' });
        expect(data.find(({ name }: { name: string }) => name === 'stranger')).to.include({
            owner: '54321',
            group: '54322'
        });
    });
});

describe('PUT /api/plugins/filemanager/content', () => {
    let files: FilesRig;
    /** What the plugin answered to uploads, also when their client was gone by then. */
    const refusals: { readonly code: number; readonly reason: string }[] = [];

    before(async () => {
        files = await createFilesRig({
            boundary: () => ({
                runtime: (sides, inThread) => {
                    const guest = inThread(sides);
                    const upload: typeof guest.upload = async (input) => {
                        try {
                            return await guest.upload(input);
                        } catch (error) {
                            refusals.push(error as (typeof refusals)[number]);
                            throw error;
                        }
                    };
                    return { ...guest, upload };
                },
                close: async () => undefined
            })
        });
    });

    after(async () => files.close());

    it('makes a file, answers what the list shows, and leaves nothing else', async () => {
        const made = await files.put('new.txt', 'hello\nworld');
        expect(made.status).to.equal(201);
        expect(made.headers['location']).to.equal('/api/plugins/filemanager/content?root=main&path=new.txt');
        const listed = (await files.get('/files', { root: 'main', path: '' })).data;
        expect(listed).to.equal([made.data]);
        expect(made.headers['etag']).to.equal(`"${made.data.version}"`);
        expect(readFileSync(files.at('new.txt'), 'utf8')).to.equal('hello\nworld');
        expect(statSync(files.at('new.txt')).mode & 0o777).to.equal(0o640);
        expect(readdirSync(files.folder)).to.equal(['new.txt']);
    });

    it('keeps bits and owner of what it replaces, but no borrowed rights', async () => {
        writeFileSync(files.at('script'), 'old');
        execFileSync('chown', ['1234:4321', files.at('script')]);
        chmodSync(files.at('script'), 0o4755);
        expect((await files.put('script', 'new')).status).to.equal(200);
        const { mode, uid, gid } = statSync(files.at('script'));
        expect([mode & 0o7777, uid, gid]).to.equal([0o755, 1234, 4321]);
    });

    it('gives a new file to the owner of its folder', async () => {
        mkdirSync(files.at('site'));
        execFileSync('chown', ['1234:4321', files.at('site')]);
        await files.put('site/index.html', '<p>');
        expect(statSync(files.at('site', 'index.html'))).to.include({ uid: 1234, gid: 4321 });
        await files.post('/folders', { root: 'main', path: 'site/css' });
        expect(statSync(files.at('site', 'css'))).to.include({ uid: 1234, gid: 4321 });
    });

    it('refuses an edit of what has changed, and changes nothing', async () => {
        const { data } = await files.put('edit.txt', 'one');
        expect((await files.put('edit.txt', 'two', { ifMatch: data.version })).status).to.equal(200);
        const stale = await files.put('edit.txt', 'three', { ifMatch: data.version });
        expect([stale.code, stale.reason]).to.equal([41200, 'VERSION_STALE']);
        expect((await files.read('edit.txt')).headers['etag']).to.equal(`"${stale.data.version}"`);
        expect((await files.put('edit.txt', 'x', { headers: { 'if-none-match': '*' } })).code).to.equal(
            41200
        );
        expect((await files.put('never.txt', 'x', { ifMatch: 'any' })).code).to.equal(41200);
        expect(readFileSync(files.at('edit.txt'), 'utf8')).to.equal('two');
        expect(existsSync(files.at('never.txt'))).to.be.false();
    });

    it('lets one of many edits of the same version win', async () => {
        const { data } = await files.put('raced.txt', 'start');
        const answers = await Promise.all(
            Array.from({ length: 10 }, (_, index) =>
                files.put('raced.txt', `writer ${index}`, { ifMatch: data.version })
            )
        );
        expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
        expect(answers.filter(({ code }) => code === 41200)).to.have.length(9);
        expect(readFileSync(files.at('raced.txt'), 'utf8')).to.equal(
            `writer ${answers.findIndex(({ status }) => status === 200)}`
        );
        expect(readdirSync(files.folder).filter((name) => name.startsWith('.portico'))).to.equal([]);
    });

    it('changes nothing when the body ends early', async () => {
        await files.put('whole.txt', 'whole');
        refusals.length = 0;
        const cutBody = async function* (breaks: boolean): AsyncGenerator<Uint8Array> {
            yield Buffer.from('sho');
            await until(
                () => readdirSync(files.folder).some((name) => name.startsWith('.portico-')),
                'the first bytes'
            );
            if (breaks) {
                throw new Error('the connection broke');
            }
        };
        await expect(files.put('whole.txt', cutBody(false), { length: 100 })).to.reject();
        await until(() => refusals.length === 1, 'the end of the short body');
        await expect(files.put('whole.txt', cutBody(true))).to.reject();
        await until(() => refusals.length === 2, 'the end of the broken body');
        expect(refusals.map(({ code, reason }) => [code, reason])).to.equal([
            [40050, 'PARTIAL_BODY'],
            [40050, 'PARTIAL_BODY']
        ]);
        expect(readFileSync(files.at('whole.txt'), 'utf8')).to.equal('whole');
        expect(readdirSync(files.folder).filter((name) => name.startsWith('.portico'))).to.equal([]);
    });

    it('writes no folder, no link, no pipe and nothing without a folder', async () => {
        mkdirSync(files.at('folder'));
        symlinkSync(`${files.outside}/target`, files.at('link'));
        execFileSync('mkfifo', [files.at('pipe')]);
        expect((await files.put('folder', 'x')).reason).to.equal('WRONG_TYPE');
        expect((await files.put('link', 'x')).reason).to.equal('NOT_FOUND');
        expect((await files.put('pipe', 'x')).reason).to.equal('WRONG_TYPE');
        expect((await files.put('no/where', 'x')).reason).to.equal('NOT_FOUND');
        expect(readdirSync(files.outside)).to.equal([]);
        expect(lstatSync(files.at('link')).isSymbolicLink()).to.be.true();
    });

    it('removes at the next start what a killed panel had half written', async () => {
        const never = Promise.withResolvers<void>();
        const cut = files.put(
            'half.txt',
            (async function* () {
                yield Buffer.from('half');
                await never.promise;
                yield Buffer.from('end');
            })()
        );
        await until(
            () => readdirSync(files.folder).some((name) => name.startsWith('.portico-')),
            'the first bytes'
        );
        // The journal as a kill leaves it: the request can no longer clean up, neither its row nor its file.
        files.host.faults.fail('db.write');
        files.host.faults.fail('files');
        never.resolve();
        expect((await cut).status).to.be.above(499);
        await files.host.stop();
        expect(readdirSync(files.folder).filter((name) => name.startsWith('.portico-'))).to.have.length(1);
        writeFileSync(files.at('.portico-of-nobody'), '');
        await files.cleanUp();
        expect(readdirSync(files.folder).filter((name) => name.startsWith('.portico'))).to.equal([
            '.portico-of-nobody'
        ]);
        await files.host.start();
    });
});

describe('GET /api/plugins/filemanager/content', () => {
    let files: FilesRig;

    before(async () => {
        files = await createFilesRig();
    });

    after(async () => files.close());

    it('gives a file in ranges, with its version and type', async () => {
        writeFileSync(files.at('digits.txt'), '0123456789');
        const whole = await files.read('digits.txt');
        expect(whole).to.include({ status: 200, data: '0123456789' });
        expect(whole.headers).to.include({
            'content-type': 'text/plain; charset=utf-8',
            'content-length': '10'
        });
        const { version } = (await files.get('/files', { root: 'main', path: '' })).data[0];
        expect(whole.headers['etag']).to.equal(`"${version}"`);
        expect((await files.read('digits.txt', 'bytes=3-5')).data).to.equal('345');
        expect((await files.read('digits.txt', 'bytes=8-')).data).to.equal('89');
        writeFileSync(files.at('empty'), '');
        expect((await files.read('empty')).data).to.equal('');
        expect(await files.held()).to.equal([]);
    });

    it('gives no folder, no link, no pipe, nothing that is not there, and none of its own folders', async () => {
        mkdirSync(files.at('folder'));
        writeFileSync(`${files.outside}/secret`, 'secret');
        symlinkSync(`${files.outside}/secret`, files.at('link'));
        symlinkSync(files.outside, files.at('door'));
        execFileSync('mkfifo', [files.at('pipe')]);
        mkdirSync(files.at('.portico'), { mode: 0o700 });
        writeFileSync(files.at('.portico', 'hidden'), 'hidden');
        const reasons = await Promise.all(
            [
                'folder',
                'link',
                'door/secret',
                'pipe',
                'none',
                '.portico/hidden',
                'folder/../digits.txt',
                '/../outside/secret',
                'a\0b'
            ].map(async (path) => (await files.read(path)).reason)
        );
        expect(reasons).to.equal([
            'WRONG_TYPE',
            'NOT_FOUND',
            'NOT_FOUND',
            'WRONG_TYPE',
            'NOT_FOUND',
            'NOT_FOUND',
            'OUTSIDE_ROOT',
            'OUTSIDE_ROOT',
            'VALIDATION_FAILED'
        ]);
        expect(await files.held()).to.equal([]);
    });
});
