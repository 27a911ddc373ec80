import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { until } from '../../../../support/until.ts';
import { type Answer, createFilesRig, type FilesRig, rootPath } from '../../rig.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

const content = randomBytes(300_000);
const sha256 = createHash('sha256').update(content).digest('hex');

/** A real server, which the name `files.test` leads to. */
function serve(): Promise<Server> {
    const server = createServer((request, answer) => {
        const { pathname } = new URL(request.url ?? '/', 'http://files.test');
        const [, kind = '', rest = ''] = pathname.split('/');
        if (kind === 'file') {
            answer.writeHead(200, { 'content-length': content.length }).end(content);
        } else if (kind === 'chunked') {
            answer.writeHead(200).end(content);
        } else if (kind === 'cut') {
            answer.writeHead(200, { 'content-length': content.length });
            answer.write(content.subarray(0, 1_000), () => answer.destroy());
        } else if (kind === 'endless') {
            answer.writeHead(200).write('x'.repeat(1_000));
        } else if (kind === 'hops') {
            const left = Number(rest);
            answer.writeHead(302, { location: left === 0 ? '/file' : `/hops/${left - 1}` }).end();
        } else if (kind === 'away') {
            answer.writeHead(302, { location: decodeURIComponent(rest) }).end();
        } else {
            answer.writeHead(404).end('none');
        }
    });
    return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

describe('POST /api/plugins/filemanager/fetch', () => {
    let files: FilesRig;
    let server: Server;

    before(async () => {
        server = await serve();
        files = await createFilesRig({ settings: { fetchBytes: 1_000_000 } });
        files.host.network.answer('files.test', (request) => {
            const { pathname } = new URL(request.url);
            const { port } = server.address() as AddressInfo;
            return fetch(`http://127.0.0.1:${port}${pathname}`, {
                redirect: 'manual',
                signal: request.signal
            });
        });
    });

    after(async () => {
        await files.close();
        server.closeAllConnections();
        server.close();
    });

    const ask = (address: string, path: string, more: object = {}): Promise<Answer> =>
        files.post('/fetch', { root: 'main', path, url: `https://files.test${address}`, ...more });
    const failure = async (address: string, path: string, more: object = {}) => {
        const { state, error } = await files.task(await ask(address, path, more));
        return [state, (error as { readonly reason?: string } | null)?.reason];
    };
    const remains = (): string[] => readdirSync(files.folder).filter((name) => name.startsWith('.portico-'));

    it('brings a file whole, of the owner and with the bits of a new one, and says its checksum', async () => {
        const task = await files.task(
            await ask('/file?key=secret', 'a.bin', { sha256: sha256.toUpperCase() })
        );
        expect(task.result).to.equal({ root: 'main', path: 'a.bin', bytes: content.length, sha256 });
        expect(readFileSync(files.at('a.bin')).equals(content)).to.be.true();
        expect(statSync(files.at('a.bin')).mode & 0o777).to.equal(0o640);
        const entry = files.host.audit.findLast(({ resourceId }) => resourceId === 'main:a.bin');
        expect([entry?.action, entry?.after]).to.equal(['create', { from: 'https://files.test/file' }]);
        expect(JSON.stringify([entry, task])).not.to.include('secret');
        const sent = files.host.network.requests.at(-1);
        expect([sent?.headers.get('authorization'), sent?.headers.get('cookie')]).to.equal([null, null]);
        expect((await files.task(await ask('/chunked', 'b.bin'))).result).to.include({ sha256 });
        expect((await files.task(await ask('/hops/4', 'c.bin'))).result).to.include({ sha256 });
    });

    it('keeps nothing of an answer that is cut, too large, another file, or none', async () => {
        expect(await failure('/cut', 'x')).to.equal(['failed', 'FETCH_FAILED']);
        expect(await failure('/gone', 'x')).to.equal(['failed', 'FETCH_FAILED']);
        expect(await failure('/hops/5', 'x')).to.equal(['failed', 'FETCH_FAILED']);
        expect(await failure('/file', 'x', { sha256: '0'.repeat(64) })).to.equal([
            'failed',
            'CHECKSUM_MISMATCH'
        ]);
        await files.host.setSettings({ fetchBytes: 1_000 });
        expect(await failure('/file', 'x')).to.equal(['failed', 'FETCH_FAILED']);
        expect(await failure('/chunked', 'x')).to.equal(['failed', 'FETCH_FAILED']);
        await files.host.setSettings({ fetchBytes: 1_000_000 });
        expect([existsSync(files.at('x')), remains()]).to.equal([false, []]);
        expect(await files.held()).to.equal([]);
    });

    it('takes no other scheme, no user in the address, and follows no redirect to one', async () => {
        const refused = ['file:///etc/passwd', 'ftp://files.test/a', 'https://me:pw@files.test/file', 'no'];
        for (const url of refused) {
            expect((await files.post('/fetch', { root: 'main', path: 'x', url })).code).to.equal(40001);
        }
        for (const to of ['file:///etc/passwd', 'https://me:pw@files.test/file', 'data:,x']) {
            expect(await failure(`/away/${encodeURIComponent(to)}`, 'x')).to.equal([
                'failed',
                'FETCH_FAILED'
            ]);
        }
        expect(existsSync(files.at('x'))).to.be.false();
    });

    it('ends when it is cancelled, and leaves nothing', async () => {
        const asked = await ask('/endless', 'endless');
        await until(() => remains().length === 1, 'the first bytes');
        expect((await files.cancel(asked)).state).to.equal('cancelled');
        await until(() => remains().length === 0, 'the end of the temporary file');
        expect(existsSync(files.at('endless'))).to.be.false();
        expect(await files.held()).to.equal([]);
    });

    it('replaces a file only when that is wished, and nothing that is no file', async () => {
        writeFileSync(files.at('old'), 'old');
        symlinkSync('/etc/passwd', files.at('link'));
        expect((await ask('/file', 'old')).code).to.equal(40900);
        expect((await ask('/file', 'link', { replace: true })).code).to.equal(40400);
        expect((await ask('/file', 'no-folder/a')).code).to.equal(40400);
        expect((await ask('/file', '../a')).code).to.equal(40350);
        expect((await ask('/file', '.portico/a')).code).to.equal(40400);
        expect(readFileSync(files.at('old'), 'utf8')).to.equal('old');
        expect((await files.task(await ask('/file', 'old', { replace: true }))).result).to.include({
            sha256
        });
    });

    it('asks for the permission, and holds the quota and a read-only root', async () => {
        const payload = { root: 'main', path: 'q', url: 'https://files.test/file' };
        expect((await files.post('/fetch', payload, { role: 'viewer' })).code).to.equal(40300);
        expect((await files.post('/fetch', payload, { role: 'guests' })).code).to.equal(40400);
        const root = { name: 'main', path: rootPath, roles: [] };
        await files.host.setSettings({ roots: [{ ...root, quotaBytes: 1_100_000 }] });
        expect(await failure('/chunked', 'q')).to.equal(['failed', 'QUOTA_EXCEEDED']);
        expect(await failure('/file', 'q')).to.equal(['failed', 'QUOTA_EXCEEDED']);
        await files.host.setSettings({ roots: [{ ...root, readOnly: true }] });
        expect((await ask('/file', 'q')).code).to.equal(40352);
        expect([existsSync(files.at('q')), remains()]).to.equal([false, []]);
    });
});
