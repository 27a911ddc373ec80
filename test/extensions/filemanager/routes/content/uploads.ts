import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { untilAborted } from '../../../../../extensions/filemanager/src/files/content/bytes.ts';
import { collect } from '../../../../support/machine/held.ts';
import { until } from '../../../../support/until.ts';
import { createFilesRig, type FilesRig, rootPath } from '../../rig.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const metadata = (path: string, more = ''): Record<string, string> => ({
    'upload-metadata': `root ${base64('main')},path ${base64(path)}${more}`
});
const chunk = (offset: number, more: Record<string, string> = {}): Record<string, string> => ({
    'content-type': 'application/offset+octet-stream',
    'upload-offset': String(offset),
    ...more
});

describe('POST /api/plugins/filemanager/uploads', () => {
    let files: FilesRig;
    const begin = async (path: string, length: number, more = ''): Promise<string> => {
        const { status, headers } = await files.tus('POST', 'uploads', {
            headers: { 'upload-length': String(length), ...metadata(path, more) }
        });
        expect(status).to.equal(201);
        return (headers.get('location') ?? '').replace('/api/plugins/filemanager/', '');
    };
    const offsetOf = async (upload: string): Promise<string | null> =>
        (await files.tus('HEAD', upload)).headers.get('upload-offset');

    beforeEach(async () => {
        files = await createFilesRig({ settings: { uploadBytes: 1_000_000 } });
    });

    afterEach(async () => files.close());

    it('says what it can', async () => {
        const { status, headers } = await files.tus('OPTIONS', 'uploads');
        expect(status).to.equal(204);
        expect([
            headers.get('tus-version'),
            headers.get('tus-max-size'),
            headers.get('tus-extension')
        ]).to.equal(['1.0.0', '1000000', 'creation,creation-with-upload,termination,expiration,checksum']);
    });

    it('takes a file in parts, and shows nothing of it before the last', async () => {
        const upload = await begin('big.bin', 10);
        expect(readdirSync(files.folder)).to.equal(['.portico']);
        const first = await files.tus('PATCH', upload, { headers: chunk(0), body: 'hello' });
        expect([
            first.status,
            first.headers.get('upload-offset'),
            first.headers.get('tus-resumable')
        ]).to.equal([204, '5', '1.0.0']);
        const head = await files.tus('HEAD', upload);
        expect([
            head.status,
            head.headers.get('upload-offset'),
            head.headers.get('upload-length'),
            head.headers.get('cache-control')
        ]).to.equal([200, '5', '10', 'no-store']);
        expect(head.headers.get('upload-metadata')).to.equal(metadata('big.bin')['upload-metadata'] ?? null);
        expect((await files.tus('PATCH', upload, { headers: chunk(3), body: 'xx' })).status).to.equal(409);
        expect(
            (await files.tus('PATCH', upload, { headers: chunk(5), body: 'world' })).headers.get(
                'upload-offset'
            )
        ).to.equal('10');
        expect(readFileSync(files.at('big.bin'), 'utf8')).to.equal('helloworld');
        expect(statSync(files.at('big.bin')).mode & 0o777).to.equal(0o640);
        expect(await offsetOf(upload)).to.equal('10');
        expect(readdirSync(files.at('.portico/uploads'))).to.equal([]);
    });

    it('goes on after a new start of the plugin, also when its database never heard of the last bytes', async () => {
        const upload = await begin('resumed', 8);
        await files.tus('PATCH', upload, { headers: chunk(0), body: 'half' });
        await files.host.stop();
        await files.host.start();
        expect(await offsetOf(upload)).to.equal('4');
        expect((await files.tus('PATCH', upload, { headers: chunk(4), body: 'full' })).status).to.equal(204);
        expect(readFileSync(files.at('resumed'), 'utf8')).to.equal('halffull');
    });

    it('keeps what came before a connection broke', async () => {
        const upload = await begin('cut', 9);
        const cut = files.tus('PATCH', upload, {
            headers: chunk(0),
            body: (async function* () {
                yield Buffer.from('some');
                await until(async () => (await offsetOf(upload)) === '4', 'the first bytes');
                throw new Error('the connection broke');
            })()
        });
        await expect(cut).to.reject();
        expect(await offsetOf(upload)).to.equal('4');
        await files.tus('PATCH', upload, { headers: chunk(4), body: ' more' });
        expect(readFileSync(files.at('cut'), 'utf8')).to.equal('some more');
    });

    it('cuts an older request that hangs when its client comes back', async () => {
        const upload = await begin('twice', 6);
        const never = Promise.withResolvers<void>();
        const hanging = files.tus('PATCH', upload, {
            headers: chunk(0),
            body: (async function* () {
                yield Buffer.from('abc');
                await never.promise;
                yield Buffer.from('XXX');
            })()
        });
        while ((await offsetOf(upload)) !== '3') {
            await new Promise((resolve) => setImmediate(resolve));
        }
        expect((await files.tus('PATCH', upload, { headers: chunk(3), body: 'def' })).status).to.equal(204);
        never.resolve();
        expect([(await hanging).status, (await hanging).reason]).to.equal([423, 'UPLOAD_BUSY']);
        expect(readFileSync(files.at('twice'), 'utf8')).to.equal('abcdef');
    });

    it('keeps a chunk only with the right checksum', async () => {
        const upload = await begin('sum', 4);
        const sum = (text: string): Record<string, string> => ({
            'upload-checksum': `sha256 ${createHash('sha256').update(text).digest('base64')}`
        });
        const wrong = await files.tus('PATCH', upload, { headers: chunk(0, sum('good')), body: 'evil' });
        expect([wrong.status, wrong.reason]).to.equal([460, 'CHUNK_MISMATCH']);
        expect(await offsetOf(upload)).to.equal('0');
        expect(
            (
                await files.tus('PATCH', upload, {
                    headers: chunk(0, { 'upload-checksum': 'md4 AAAA' }),
                    body: 'good'
                })
            ).status
        ).to.equal(400);
        expect(
            (await files.tus('PATCH', upload, { headers: chunk(0, sum('good')), body: 'good' })).status
        ).to.equal(204);
        expect(readFileSync(files.at('sum'), 'utf8')).to.equal('good');
    });

    it('takes the first bytes with the creation, and an empty file without any', async () => {
        const { status, headers } = await files.tus('POST', 'uploads?root=main&path=at-once', {
            headers: { 'upload-length': '3', 'content-type': 'application/offset+octet-stream' },
            body: 'abc'
        });
        expect([status, headers.get('upload-offset')]).to.equal([201, '3']);
        expect(readFileSync(files.at('at-once'), 'utf8')).to.equal('abc');
        await begin('empty', 0);
        expect(readFileSync(files.at('empty'), 'utf8')).to.equal('');
    });

    it('replaces a file only when it is told to', async () => {
        writeFileSync(files.at('there'), 'old');
        const refused = await files.tus('POST', 'uploads', {
            headers: { 'upload-length': '3', ...metadata('there') }
        });
        expect([refused.status, refused.reason]).to.equal([409, 'CONFLICT']);
        const upload = await begin('there', 3, `,replace ${base64('true')}`);
        await files.tus('PATCH', upload, { headers: chunk(0), body: 'new' });
        expect(readFileSync(files.at('there'), 'utf8')).to.equal('new');
        const late = await begin('late', 3);
        writeFileSync(files.at('late'), 'first');
        const conflict = await files.tus('PATCH', late, { headers: chunk(0), body: 'two' });
        expect(conflict.status).to.equal(409);
        expect(readFileSync(files.at('late'), 'utf8')).to.equal('first');
        expect(await offsetOf(late)).to.equal('3');
    });

    it('belongs to no other user, and to none whose role lost the root', async () => {
        const { headers } = await files.tus('POST', 'uploads', {
            role: 'operator',
            headers: { 'upload-length': '3', ...metadata('mine') }
        });
        const upload = (headers.get('location') ?? '').replace('/api/plugins/filemanager/', '');
        expect((await files.tus('HEAD', upload, { role: 'admin' })).status).to.equal(404);
        expect(
            (await files.tus('PATCH', upload, { role: 'admin', headers: chunk(0), body: 'abc' })).status
        ).to.equal(404);
        expect((await files.tus('DELETE', upload, { role: 'admin' })).status).to.equal(404);
        expect((await files.tus('HEAD', upload, { role: 'operator' })).status).to.equal(200);
        await files.host.setSettings({ roots: [{ name: 'main', path: rootPath, roles: [] }] });
        expect(
            (await files.tus('PATCH', upload, { role: 'operator', headers: chunk(0), body: 'abc' })).status
        ).to.equal(404);
        expect(existsSync(files.at('mine'))).to.be.false();
    });

    it('refuses what is not tus 1.0, too large, or nowhere', async () => {
        const length = { 'upload-length': '3' };
        const statuses = await Promise.all([
            files.tus('POST', 'uploads', {
                headers: { ...length, ...metadata('a'), 'tus-resumable': '0.2.2' }
            }),
            files.tus('POST', 'uploads', { headers: metadata('a') }),
            files.tus('POST', 'uploads', { headers: { 'upload-length': '-1', ...metadata('a') } }),
            files.tus('POST', 'uploads', { headers: { 'upload-length': '1000001', ...metadata('a') } }),
            files.tus('POST', 'uploads', { headers: { ...length, 'upload-metadata': 'root !!!' } }),
            files.tus('POST', 'uploads', { headers: { ...length, ...metadata('../a') } }),
            files.tus('POST', 'uploads', { headers: { ...length, ...metadata('.portico/a') } }),
            files.tus('POST', 'uploads', { headers: { ...length, ...metadata('none/a') } }),
            files.tus('POST', 'uploads', { headers: { ...length, ...metadata('') } }),
            files.tus('HEAD', `uploads/${'0'.repeat(32)}`)
        ]);
        expect(statuses.map(({ status }) => status)).to.equal([
            412, 400, 400, 413, 400, 403, 404, 404, 400, 404
        ]);
        expect(statuses[0]?.headers.get('tus-version')).to.equal('1.0.0');
        const upload = await begin('a', 3);
        expect(
            (
                await files.tus('PATCH', upload, {
                    headers: { 'upload-offset': '0', 'content-type': 'text/plain' },
                    body: 'abc'
                })
            ).status
        ).to.equal(415);
        expect(
            (
                await files.tus('PATCH', upload, {
                    headers: { 'content-type': 'application/offset+octet-stream' },
                    body: 'abc'
                })
            ).status
        ).to.equal(400);
        expect((await files.tus('PATCH', upload, { headers: chunk(0), body: 'abcd' })).status).to.equal(413);
        expect(readdirSync(files.folder)).to.equal(['.portico']);
    });

    it('is given up, and expires', async () => {
        const upload = await begin('given-up', 5);
        await files.tus('PATCH', upload, { headers: chunk(0), body: 'abc' });
        expect((await files.tus('DELETE', upload)).status).to.equal(204);
        expect((await files.tus('HEAD', upload)).status).to.equal(404);
        const old = await begin('old', 5);
        const real = Date.now;
        Date.now = () => real() + 25 * 3_600_000;
        try {
            expect((await files.tus('HEAD', old)).status).to.equal(410);
            await files.host.schedules.run('expire');
        } finally {
            Date.now = real;
        }
        expect((await files.tus('HEAD', old)).status).to.equal(404);
        expect(readdirSync(files.at('.portico/uploads'))).to.equal([]);
    });
});

describe('A body that is passed on', () => {
    it('is not held in memory', async () => {
        const mebibyte = 1024 * 1024;
        const held = (): number => {
            // The second one waits until the first has freed the memory of buffers.
            collect();
            collect();
            const { heapUsed, arrayBuffers } = process.memoryUsage();
            return heapUsed + arrayBuffers;
        };
        const before = held();
        let after = 0;
        const body = async function* (): AsyncGenerator<Uint8Array> {
            for (let part = 0; part < 256; part += 1) {
                yield Buffer.allocUnsafe(mebibyte);
            }
            after = held();
        };
        let bytes = 0;
        for await (const part of untilAborted(body(), new AbortController().signal)) {
            bytes += part.byteLength;
        }
        expect(bytes).to.equal(256 * mebibyte);
        expect(after - before).to.be.below(32 * mebibyte);
    });
});
