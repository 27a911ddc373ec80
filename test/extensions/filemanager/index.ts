import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { WebSocket } from 'ws';

import type { Generation } from '../../../core/src/plugins/runtime/generation.ts';
import definition from '../../../extensions/filemanager/src/index.ts';
import { createPluginRig, entriesOf, type PluginRig } from '../../support/plugin-host.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

const base = '/api/plugins/filemanager';
const { portico: manifest } = JSON.parse(
    readFileSync(new URL('../../../extensions/filemanager/package.json', import.meta.url), 'utf8')
) as { portico: { permissions: object; capabilities: object } };

describe('filemanager over HTTP', () => {
    let rig: PluginRig;
    let generation: Generation;
    let folder: string;
    const run = async (): Promise<void> => {
        generation = await rig.run(definition, {
            name: 'filemanager',
            capabilities: manifest.capabilities,
            manifest: manifest as never,
            settings: {
                ...defaults(),
                roots: [{ name: 'main', path: folder, roles: ['operator', 'viewer'] }]
            }
        });
    };

    before(async () => {
        rig = await createPluginRig();
        folder = join(rig.root, 'files');
        mkdirSync(folder);
        rig.user(
            'root',
            ['read', 'content', 'write', 'terminal'].map((verb) => `filemanager:${verb}`),
            { role: 'admin' }
        );
        rig.user(
            'op',
            ['read', 'content', 'write'].map((verb) => `filemanager:${verb}`),
            { role: 'operator' }
        );
        rig.user('viewer', ['filemanager:read'], { role: 'viewer' });
        await run();
    });

    after(() => rig.close());

    it('writes, reads in ranges, and guards an edit by the ETag that it gave', async () => {
        const made = await rig.ask('op', 'PUT', `${base}/content?root=main&path=a.txt`, '0123456789', {
            'content-type': 'text/plain'
        });
        expect([made.status, made.code]).to.equal([201, 0]);
        const etag = made.headers.get('etag') ?? '';
        const part = await rig.ask('op', 'GET', `${base}/content?root=main&path=a.txt`, undefined, {
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
                await rig.ask('op', 'GET', `${base}/content?root=main&path=a.txt`, undefined, {
                    'if-none-match': etag
                })
            ).status
        ).to.equal(304);
        const edited = await rig.ask('op', 'PUT', `${base}/content?root=main&path=a.txt`, 'new', {
            'content-type': 'application/json',
            'if-match': etag
        });
        expect(edited.status).to.equal(200);
        expect(
            (
                await rig.ask('op', 'PUT', `${base}/content?root=main&path=a.txt`, 'late', {
                    'content-type': 'application/octet-stream',
                    'if-match': etag
                })
            ).code
        ).to.equal(41200);
        expect(readFileSync(join(folder, 'a.txt'), 'utf8')).to.equal('new');
        const list = await rig.ask('viewer', 'GET', `${base}/files?root=main`);
        expect(list.data).to.equal([edited.data]);
        expect(list.headers.get('x-total-count')).to.equal('1');
        const entry = entriesOf(rig).findLast(({ outcome }) => outcome === 'success');
        expect([entry?.action, entry?.resource, entry?.resourceId]).to.equal([
            'update',
            'file',
            'main:a.txt'
        ]);
    });

    it('answers a viewer who asks for content or a change with the permission that is missing', async () => {
        const asked = await Promise.all([
            rig.ask('viewer', 'GET', `${base}/content?root=main&path=a.txt`),
            rig.ask('viewer', 'PUT', `${base}/content?root=main&path=a.txt`, 'x', {
                'content-type': 'text/plain'
            }),
            rig.ask('viewer', 'DELETE', `${base}/files?root=main&path=a.txt`),
            rig.ask('viewer', 'POST', `${base}/archives`, { root: 'main', paths: ['a.txt'], to: 'a.zip' }),
            rig.ask('op', 'POST', `${base}/terminals`, {}),
            rig.ask('viewer', 'POST', `${base}/uploads`, undefined, {
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
        mkdirSync(join(rig.root, 'forbidden'), { recursive: true });
        writeFileSync(join(rig.root, 'forbidden/key'), 'the key');
        await generation.apply(
            await generation.seal({
                roots: [
                    { name: 'main', path: folder, roles: ['operator', 'viewer'] },
                    { name: 'above', path: rig.root, roles: [] }
                ]
            })
        );
        const reasons = await Promise.all([
            rig.ask('root', 'GET', `${base}/files?root=above&path=forbidden`),
            rig.ask('root', 'GET', `${base}/content?root=above&path=forbidden/key`),
            rig.ask('root', 'PUT', `${base}/content?root=above&path=forbidden/new`, 'x', {
                'content-type': 'text/plain'
            }),
            rig.ask('root', 'POST', `${base}/copy`, {
                root: 'above',
                from: 'forbidden/key',
                to: 'files/key'
            }),
            rig.ask('root', 'POST', `${base}/move`, { root: 'above', from: 'forbidden/key', to: 'files/key' })
        ]);
        expect(reasons.map(({ code }) => code)).to.equal([40400, 40400, 40400, 40400, 40400]);
        expect(
            (
                await rig.ask('root', 'POST', `${base}/copy`, {
                    root: 'above',
                    from: 'forbidden',
                    to: 'files/all'
                })
            ).code
        ).to.equal(40400);
        mkdirSync(join(rig.root, 'holder'));
        expect(
            (
                await rig.ask('root', 'POST', `${base}/move`, {
                    root: 'above',
                    from: 'forbidden',
                    to: 'files/moved'
                })
            ).code
        ).to.equal(40400);
        expect(
            (
                await rig.ask('root', 'POST', `${base}/move`, {
                    root: 'above',
                    from: 'holder',
                    to: 'forbidden/holder'
                })
            ).code
        ).to.equal(40400);
        expect((await rig.ask('root', 'DELETE', `${base}/files?root=above&path=forbidden`)).code).to.equal(
            40400
        );
        expect(
            (await rig.ask('root', 'DELETE', `${base}/files?root=above&path=forbidden&permanent=true`)).code
        ).to.equal(40400);
        expect(
            (await rig.ask('root', 'POST', `${base}/mode`, { root: 'above', path: 'forbidden', mode: 0o777 }))
                .code
        ).to.equal(40400);
        expect(readFileSync(join(rig.root, 'forbidden/key'), 'utf8')).to.equal('the key');
    });

    it('makes and unpacks an archive as tasks', async () => {
        const packed = await rig.ask('op', 'POST', `${base}/archives`, {
            root: 'main',
            paths: ['a.txt'],
            to: 'a.zip'
        });
        expect(packed.status).to.equal(202);
        expect((await ended(rig, packed.data.id as number)).state).to.equal('succeeded');
        const unpacked = await rig.ask('op', 'POST', `${base}/archives/extract`, {
            root: 'main',
            path: 'a.zip',
            to: 'out'
        });
        expect((await ended(rig, unpacked.data.id as number)).state).to.equal('succeeded');
        expect(readFileSync(join(folder, 'out/a.txt'), 'utf8')).to.equal('new');
    });

    it(
        'takes an upload in parts over a broken connection and a new generation',
        { timeout: 60_000 },
        async () => {
            const bytes = randomBytes(3_000_000);
            const tus = { 'tus-resumable': '1.0.0' };
            const encoded = Buffer.from('big.bin').toString('base64');
            const made = await rig.ask('op', 'POST', `${base}/uploads?root=main`, undefined, {
                ...tus,
                'upload-length': String(bytes.byteLength),
                'upload-metadata': `path ${encoded}`
            });
            expect([made.status, made.headers.get('tus-resumable')]).to.equal([201, '1.0.0']);
            const location = made.headers.get('location') ?? '';
            const offset = async (): Promise<number> =>
                Number((await rig.ask('op', 'HEAD', location, undefined, tus)).headers.get('upload-offset'));
            // A client that dies after a third of what it announced.
            const { port, hostname } = new URL(rig.url);
            const socket = connect(Number(port), hostname);
            socket.on('error', () => undefined);
            socket.write(
                `PATCH ${location} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer op\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\nContent-Type: application/offset+octet-stream\r\nContent-Length: ${bytes.byteLength}\r\n\r\n`
            );
            socket.write(bytes.subarray(0, 1_000_000));
            for (let tries = 0; tries < 500 && (await offset()) < 1_000_000; tries += 1) {
                await wait(10);
            }
            socket.destroy();
            expect(await offset()).to.equal(1_000_000);
            await generation.close('a new generation');
            await run();
            const at = await offset();
            expect(at).to.equal(1_000_000);
            const rest = await fetch(`${rig.url}${location}`, {
                method: 'PATCH',
                headers: {
                    ...tus,
                    authorization: 'Bearer op',
                    'upload-offset': String(at),
                    'content-type': 'application/offset+octet-stream'
                },
                body: bytes.subarray(at)
            });
            expect([rest.status, rest.headers.get('upload-offset')]).to.equal([204, '3000000']);
            expect(hash(readFileSync(join(folder, 'big.bin')))).to.equal(hash(bytes));
            expect(
                (
                    await rig.ask('op', 'GET', `${base}/content?root=main&path=big.bin`, undefined, {
                        range: 'bytes=-1'
                    })
                ).status
            ).to.equal(206);
        }
    );

    it('leaves a file as it was when a writer dies in the middle', async () => {
        const { port, hostname } = new URL(rig.url);
        const socket = connect(Number(port), hostname);
        socket.on('error', () => undefined);
        socket.write(
            `PUT ${base}/content?root=main&path=a.txt HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer op\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\nhalf`
        );
        for (
            let tries = 0;
            tries < 500 && !generation.held().some(({ kind }) => kind === 'file');
            tries += 1
        ) {
            await wait(10);
        }
        socket.destroy();
        for (
            let tries = 0;
            tries < 500 && generation.held().some(({ kind }) => kind === 'file');
            tries += 1
        ) {
            await wait(10);
        }
        expect(readFileSync(join(folder, 'a.txt'), 'utf8')).to.equal('new');
        expect(
            (await rig.ask('op', 'GET', `${base}/search?root=main&q=*`)).data.map(
                ({ path }: { path: string }) => path
            )
        ).to.equal(['a.txt', 'a.zip', 'big.bin', 'out', 'out/a.txt']);
    });

    it('opens a terminal, or says what is missing', async () => {
        const { status, code, data } = await rig.ask('root', 'POST', `${base}/terminals`, {
            columns: 80,
            rows: 24
        });
        if (status !== 200) {
            expect([code, data.reason]).to.equal([50302, 'TOOL_MISSING']);
            expect(data.install).to.be.a.string();
            return;
        }
        const socket = new WebSocket(`${rig.url.replace('http', 'ws')}${data.path as string}`);
        let shown = '';
        socket.on('message', (message: Buffer) => {
            shown += message.toString();
        });
        const closed = new Promise((resolve, reject) => socket.once('close', resolve).once('error', reject));
        await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
        socket.send(Buffer.from('echo $((20+3)) && exit 5\n'));
        await closed;
        expect(shown).to.contain('23');
        expect(shown).to.contain('"exitCode":5');
    });
});

async function ended(rig: PluginRig, id: number): Promise<{ readonly state: string }> {
    const watcher = rig.user('watcher', ['filemanager:write'], { role: 'admin' });
    for (let tries = 0; tries < 1_000; tries += 1) {
        const task = rig.tasks.get(id, watcher);
        if (!['queued', 'running'].includes(task.state)) {
            return task;
        }
        await wait(10);
    }
    throw new Error(`Task ${id} did not end`);
}

function defaults(): object {
    return {
        archiveEntries: 100_000,
        archiveBytes: 10 ** 9,
        archiveRatio: 200,
        uploadBytes: 10 ** 9,
        uploadHours: 24,
        trashDays: 30,
        terminalShell: 'bash',
        terminals: 20
    };
}

function hash(bytes: Buffer): string {
    return createHash('sha256').update(bytes).digest('hex');
}
