/** What only a real panel shows: which addresses a download reaches, and what a link gives when its maker's account changes. */
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import * as tus from 'tus-js-client';

import { startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { until } from '../../support/until.ts';
import { base } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const limitMs = 60_000;

describe('filemanager in a panel', { timeout: limitMs }, () => {
    let panel: TestPanel;
    let root: string;
    let server: Server;
    let asked: string[];

    before({ timeout: limitMs }, async () => {
        root = mkdtempSync(join(tmpdir(), 'portico-files-'));
        writeFileSync(join(root, 'a.txt'), 'shared');
        asked = [];
        server = createServer((request, answer) => {
            asked.push(request.url ?? '');
            if (request.url === '/away') {
                answer.writeHead(302, { location: 'http://169.254.169.254/latest/meta-data' }).end();
            } else {
                answer.end('from this machine');
            }
        });
        await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
        panel = await startPanel({
            environment: {
                PORTICO_PLUGIN_DIRS: fileURLToPath(new URL('../../../extensions', import.meta.url))
            }
        });
        await until(
            async () => (await panel.client.get('/api/plugins/filemanager')).data?.state === 'running',
            'the plugin to run'
        );
        const set = await panel.client.put('/api/plugins/filemanager', {
            settings: { roots: [{ name: 'main', path: root, roles: [] }], shares: true }
        });
        expect(set.code).to.equal(0);
    });

    after({ timeout: limitMs }, async () => {
        await panel?.close();
        server?.close();
        rmSync(root, { recursive: true, force: true });
    });

    const fetched = async (
        url: string
    ): Promise<{ state: string; error: { reason: string; message: string } }> => {
        const { status, data } = await panel.client.post(`${base}/fetch`, { root: 'main', path: 'got', url });
        expect(status).to.equal(202);
        return until(async () => {
            const task = (await panel.client.get(`/api/tasks/${data.id}`)).data;
            return ['queued', 'running'].includes(task.state) ? null : task;
        }, 'the task to end');
    };

    it('downloads from no address of the machine or its networks, also by a name or a redirect, unless that is granted', async () => {
        const { port } = server.address() as AddressInfo;
        const inside = [
            `http://127.0.0.1:${port}/`,
            `http://localhost:${port}/`,
            `http://[::ffff:127.0.0.1]:${port}/`,
            `http://2130706433:${port}/`,
            `http://0.0.0.0:${port}/`,
            `http://127.0.0.1:${panel.port}/api/auth/me`,
            'http://169.254.169.254/latest/meta-data',
            'http://10.0.0.1/'
        ];
        for (const url of inside) {
            const { state, error } = await fetched(url);
            expect([url, state, error.reason]).to.equal([url, 'failed', 'FETCH_FAILED']);
        }
        expect([asked, readdirSync(root)]).to.equal([[], ['a.txt']]);

        const granted = (await panel.client.get('/api/plugins/filemanager')).data.capabilities.granted;
        const more = { ...granted, network: ['*', '127.0.0.1'] };
        expect((await panel.client.put('/api/plugins/filemanager', { grants: more })).code).to.equal(0);
        const { state, error } = await fetched(`http://127.0.0.1:${port}/away`);
        expect([state, error.reason]).to.equal(['failed', 'FETCH_FAILED']);
        expect((await fetched(`http://127.0.0.1:${port}/file`)).state).to.equal('succeeded');
        expect([asked, readFileSync(join(root, 'got'), 'utf8')]).to.equal([
            ['/away', '/file'],
            'from this machine'
        ]);
    });

    it('gives by a link what its maker may read now, and nothing of the account that ended', async () => {
        const token = await panel.tokenOf('admin', 'sharer');
        const made = await panel.client.call('POST', `${base}/shares`, {
            token,
            body: { root: 'main', path: 'a.txt' }
        });
        expect(made.status).to.equal(201);
        const follow = () => panel.client.call('GET', made.data.url as string, { token: null });
        const first = await follow();
        expect([first.status, first.text]).to.equal([200, 'shared']);
        const secret = (made.data.url as string).split('/').at(-1) ?? '';
        expect(panel.lines.join('\n')).not.to.include(secret);

        const users = (await panel.client.get('/api/users')).data as { id: number; username: string }[];
        const id = users.find(({ username }) => username === 'sharer')?.id;
        const change = async (body: object): Promise<unknown> =>
            (await panel.client.put(`/api/users/${id}`, body)).code;
        expect(await change({ disabled: true })).to.equal(0);
        expect((await follow()).code).to.equal(40450);
        expect(await change({ disabled: false })).to.equal(0);
        expect(await change({ role: 'operator' })).to.equal(0);
        expect((await follow()).code).to.equal(40450);
        const [download, ...others] = (await panel.client.get('/api/audit?action=download&limit=10')).data;
        expect([download.resource, download.resourceId, others]).to.equal([
            'filemanager.share',
            'main:a.txt',
            []
        ]);
    });

    it('takes files from the official client of tus, goes on with one that was broken, and refuses a wrong checksum', async () => {
        const content = Buffer.alloc(3_000_000, 'portico');
        const chunkSize = 1_000_000;
        const token = await panel.tokenOf('admin', 'sender');
        const offsets: number[] = [];
        const asked: string[] = [];
        const options = (path: string): tus.UploadOptions => ({
            endpoint: `http://127.0.0.1:${panel.port}${base}/uploads`,
            headers: { authorization: `Bearer ${token}` },
            metadata: { root: 'main', path },
            chunkSize,
            retryDelays: [0],
            onAfterResponse: (request, answer) => {
                asked.push(`${request.getMethod()} ${answer.getStatus()}`);
            }
        });
        const send = (more: tus.UploadOptions): Promise<tus.Upload> =>
            new Promise((resolve, reject) => {
                const upload = new tus.Upload(content, {
                    ...more,
                    onSuccess: () => resolve(upload),
                    onError: reject,
                    onChunkComplete: (_size, accepted) => {
                        offsets.push(accepted);
                        if (more.uploadUrl === undefined && offsets.length === 1) {
                            void upload.abort().then(() => resolve(upload));
                        }
                    }
                });
                upload.start();
            });
        const { url } = await send(options('tus.bin'));
        expect([offsets, existsSync(join(root, 'tus.bin'))]).to.equal([[chunkSize], false]);
        await send({ ...options('tus.bin'), uploadUrl: url });
        expect(offsets).to.equal([chunkSize, 2 * chunkSize, 3 * chunkSize]);
        expect(asked).to.equal(['POST 201', 'PATCH 204', 'HEAD 200', 'PATCH 204', 'PATCH 204']);
        expect(readFileSync(join(root, 'tus.bin')).equals(content)).to.be.true();

        asked.length = 0;
        let isWrong = true;
        const sum = createHash('sha256').update(content).digest('base64');
        await send({
            ...options('summed.bin'),
            uploadUrl: null,
            chunkSize: Infinity,
            onBeforeRequest: (request) => {
                if (request.getMethod() === 'PATCH') {
                    const wrong = createHash('sha256').update('other').digest('base64');
                    request.setHeader('Upload-Checksum', `sha256 ${isWrong ? wrong : sum}`);
                    isWrong = false;
                }
            },
            onShouldRetry: ({ originalResponse }) => originalResponse?.getStatus() === 460
        });
        expect(asked).to.equal(['POST 201', 'PATCH 460', 'HEAD 200', 'PATCH 204']);
        expect(readFileSync(join(root, 'summed.bin')).equals(content)).to.be.true();
    });
});
