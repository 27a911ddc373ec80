import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { Body, TestAnswer } from '@portico/testing';

import { until } from '../../support/until.ts';
import { base, createFilesRig, type FilesRig, rootPath } from './rig.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers of every shape
type Asked = TestAnswer<any>;

describe('filemanager over HTTP', () => {
    let files: FilesRig;
    let folder: string;

    before(async () => {
        files = await createFilesRig({ forbidden: ['/forbidden'] });
        folder = files.folder;
    });

    after(() => files.close());

    const ask = (as: string, method: string, path: string, body?: Body, headers = {}): Promise<Asked> =>
        files.as(as).ask(method, path, body, { headers });

    it('writes, reads in ranges, and guards an edit by the ETag that it gave', async () => {
        const made = await ask('operator', 'PUT', `${base}/content?root=main&path=a.txt`, '0123456789', {
            'content-type': 'text/plain'
        });
        expect([made.status, made.code]).to.equal([201, 0]);
        const etag = made.headers.get('etag') ?? '';
        const part = await ask('operator', 'GET', `${base}/content?root=main&path=a.txt`, undefined, {
            range: 'bytes=2-4'
        });
        expect([
            part.status,
            part.text,
            part.headers.get('content-range'),
            part.headers.get('etag')
        ]).to.equal([206, '234', 'bytes 2-4/10', etag]);
        expect(
            (
                await ask('operator', 'GET', `${base}/content?root=main&path=a.txt`, undefined, {
                    'if-none-match': etag
                })
            ).status
        ).to.equal(304);
        const edited = await ask('operator', 'PUT', `${base}/content?root=main&path=a.txt`, 'new', {
            'content-type': 'application/json',
            'if-match': etag
        });
        expect(edited.status).to.equal(200);
        expect(
            (
                await ask('operator', 'PUT', `${base}/content?root=main&path=a.txt`, 'late', {
                    'content-type': 'application/octet-stream',
                    'if-match': etag
                })
            ).code
        ).to.equal(41200);
        expect(readFileSync(join(folder, 'a.txt'), 'utf8')).to.equal('new');
        const list = await ask('viewer', 'GET', `${base}/files?root=main`);
        expect(list.data).to.equal([edited.data]);
        expect(list.headers.get('x-total-count')).to.equal('1');
        const entry = files.host.audit.findLast(({ outcome }) => outcome === 'success');
        expect([entry?.action, entry?.resource, entry?.resourceId]).to.equal([
            'update',
            'file',
            'main:a.txt'
        ]);
    });

    it('answers a viewer who asks for content or a change with the permission that is missing', async () => {
        const asked = await Promise.all([
            ask('viewer', 'GET', `${base}/content?root=main&path=a.txt`),
            ask('viewer', 'PUT', `${base}/content?root=main&path=a.txt`, 'x', {
                'content-type': 'text/plain'
            }),
            ask('viewer', 'DELETE', `${base}/files?root=main&path=a.txt`),
            ask('viewer', 'POST', `${base}/archives`, { root: 'main', paths: ['a.txt'], to: 'a.zip' }),
            ask('operator', 'POST', `${base}/terminals`, {}),
            ask('viewer', 'POST', `${base}/uploads`, undefined, {
                'tus-resumable': '1.0.0',
                'upload-length': '1'
            })
        ]);
        expect(asked.map(({ code, data }) => [code, data.permission])).to.equal(
            ['content', 'write', 'write', 'write', 'terminal', 'write'].map((verb) => [
                40300,
                `filemanager:${verb}`
            ])
        );
        expect(readFileSync(join(folder, 'a.txt'), 'utf8')).to.equal('new');
    });

    it('never enters what no grant opens, also from a root above it', async () => {
        mkdirSync(join(files.host.machine, 'forbidden'), { recursive: true });
        writeFileSync(join(files.host.machine, 'forbidden/key'), 'the key');
        await files.host.setSettings({
            roots: [
                { name: 'main', path: rootPath, roles: ['operator', 'viewer'] },
                { name: 'above', path: '/', roles: [] }
            ]
        });
        const reasons = await Promise.all([
            ask('admin', 'GET', `${base}/files?root=above&path=forbidden`),
            ask('admin', 'GET', `${base}/content?root=above&path=forbidden/key`),
            ask('admin', 'PUT', `${base}/content?root=above&path=forbidden/new`, 'x', {
                'content-type': 'text/plain'
            }),
            ask('admin', 'POST', `${base}/copy`, {
                root: 'above',
                from: 'forbidden/key',
                to: 'root/key'
            }),
            ask('admin', 'POST', `${base}/move`, { root: 'above', from: 'forbidden/key', to: 'root/key' })
        ]);
        expect(reasons.map(({ code }) => code)).to.equal([40400, 40400, 40400, 40400, 40400]);
        expect(
            (
                await ask('admin', 'POST', `${base}/copy`, {
                    root: 'above',
                    from: 'forbidden',
                    to: 'root/all'
                })
            ).code
        ).to.equal(40400);
        mkdirSync(join(files.host.machine, 'holder'));
        expect(
            (
                await ask('admin', 'POST', `${base}/move`, {
                    root: 'above',
                    from: 'forbidden',
                    to: 'root/moved'
                })
            ).code
        ).to.equal(40400);
        expect(
            (
                await ask('admin', 'POST', `${base}/move`, {
                    root: 'above',
                    from: 'holder',
                    to: 'forbidden/holder'
                })
            ).code
        ).to.equal(40400);
        expect((await ask('admin', 'DELETE', `${base}/files?root=above&path=forbidden`)).code).to.equal(
            40400
        );
        expect(
            (await ask('admin', 'DELETE', `${base}/files?root=above&path=forbidden&permanent=true`)).code
        ).to.equal(40400);
        expect(
            (await ask('admin', 'POST', `${base}/mode`, { root: 'above', path: 'forbidden', mode: 0o777 }))
                .code
        ).to.equal(40400);
        expect(readFileSync(join(files.host.machine, 'forbidden/key'), 'utf8')).to.equal('the key');
    });

    it('makes and unpacks an archive as tasks', async () => {
        const packed = await ask('operator', 'POST', `${base}/archives`, {
            root: 'main',
            paths: ['a.txt'],
            to: 'a.zip'
        });
        expect(packed.status).to.equal(202);
        expect((await files.host.tasks.wait(packed.data.id as number)).state).to.equal('succeeded');
        const unpacked = await ask('operator', 'POST', `${base}/archives/extract`, {
            root: 'main',
            path: 'a.zip',
            to: 'out'
        });
        expect((await files.host.tasks.wait(unpacked.data.id as number)).state).to.equal('succeeded');
        expect(readFileSync(join(folder, 'out/a.txt'), 'utf8')).to.equal('new');
    });

    it(
        'takes an upload in parts over a broken connection and a new generation',
        { timeout: 60_000 },
        async () => {
            const bytes = randomBytes(3_000_000);
            const tus = { 'tus-resumable': '1.0.0' };
            const encoded = Buffer.from('big.bin').toString('base64');
            const made = await ask('operator', 'POST', `${base}/uploads?root=main`, undefined, {
                ...tus,
                'upload-length': String(bytes.byteLength),
                'upload-metadata': `path ${encoded}`
            });
            expect([made.status, made.headers.get('tus-resumable')]).to.equal([201, '1.0.0']);
            const location = made.headers.get('location') ?? '';
            const offset = async (): Promise<number> =>
                Number(
                    (await ask('operator', 'HEAD', location, undefined, tus)).headers.get('upload-offset')
                );
            // A client that dies after a third of what it announced.
            const part = { ...tus, 'content-type': 'application/offset+octet-stream' };
            const dying = ask(
                'operator',
                'PATCH',
                location,
                dyingAfter(bytes.subarray(0, 1_000_000), offset),
                {
                    ...part,
                    'upload-offset': '0',
                    'content-length': String(bytes.byteLength)
                }
            );
            await expect(dying).to.reject();
            expect(await offset()).to.equal(1_000_000);
            await files.host.restart();
            const at = await offset();
            expect(at).to.equal(1_000_000);
            const rest = await ask('operator', 'PATCH', location, bytes.subarray(at), {
                ...part,
                'upload-offset': String(at)
            });
            expect([rest.status, rest.headers.get('upload-offset')]).to.equal([204, '3000000']);
            expect(hash(readFileSync(join(folder, 'big.bin')))).to.equal(hash(bytes));
            expect(
                (
                    await ask('operator', 'GET', `${base}/content?root=main&path=big.bin`, undefined, {
                        range: 'bytes=-1'
                    })
                ).status
            ).to.equal(206);
        }
    );

    it('leaves a file as it was when a writer dies in the middle', async () => {
        const isOpen = (): boolean => files.host.held().some(({ kind }) => kind === 'file');
        const dying = (async function* () {
            yield Buffer.from('half');
            await until(isOpen, 'the file to be open');
            throw new Error('the writer dies');
        })();
        await expect(
            ask('operator', 'PUT', `${base}/content?root=main&path=a.txt`, ReadableStream.from(dying), {
                'content-type': 'text/plain',
                'content-length': '1000'
            })
        ).to.reject();
        await until(() => !isOpen(), 'the file to be closed');
        expect(readFileSync(join(folder, 'a.txt'), 'utf8')).to.equal('new');
        expect(
            (await ask('operator', 'GET', `${base}/search?root=main&q=*`)).data.map(
                ({ path }: { path: string }) => path
            )
        ).to.equal(['a.txt', 'a.zip', 'big.bin', 'out', 'out/a.txt']);
    });

    it('opens a terminal, or says what is missing', async () => {
        const { status, code, data } = await ask('admin', 'POST', `${base}/terminals`, {
            columns: 80,
            rows: 24
        });
        if (status !== 200) {
            expect([code, data.reason]).to.equal([50302, 'TOOL_MISSING']);
            expect(data.install).to.be.a.string();
            return;
        }
        const socket = await files.as('admin').socket(data.path as string);
        socket.send(Buffer.from('echo $((20+3)) && exit 5\n'));
        const shown = Buffer.concat(
            (await Array.fromAsync(socket)).map((each) => Buffer.from(each))
        ).toString();
        expect(shown).to.contain('23');
        expect(shown).to.contain('"exitCode":5');
    });
});

/** A body that breaks once the upload has come as far as these bytes. */
function dyingAfter(bytes: Uint8Array, offset: () => Promise<number>): ReadableStream<Uint8Array> {
    return ReadableStream.from(
        (async function* () {
            yield bytes;
            await until(async () => (await offset()) >= bytes.byteLength, 'the first bytes');
            throw new Error('the client dies');
        })()
    );
}

function hash(bytes: Buffer): string {
    return createHash('sha256').update(bytes).digest('hex');
}
