import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { openSshd } from '../../../support/servers/storage/sshd.ts';
import { itUnless } from '../../../support/skip.ts';
import { DeployRig, withoutSandbox } from '../support/rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(withoutSandbox, it);

const limitMs = 120_000;
const token = 'token-of-ada-4711';
const big = 'what the pointer stands for\n'.repeat(5_000);
let rig: DeployRig;
/** What the server gives for an object, by its id. */
const objects = new Map<string, string>();

/** The pointer that git-lfs commits in the place of a file (git-lfs `docs/spec.md`). */
function pointerOf(content: string): string {
    const oid = createHash('sha256').update(content).digest('hex');
    objects.set(oid, content);
    return `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${Buffer.byteLength(content)}\n`;
}

/** A server of Git LFS beside the repository: the batch API, and objects for the same login. */
function answer(request: IncomingMessage, response: ServerResponse): boolean {
    const path = request.url ?? '';
    if (!path.includes('/info/lfs') && !path.startsWith('/objects/')) {
        return false;
    }
    if (request.headers.authorization !== `Basic ${Buffer.from(`ada:${token}`).toString('base64')}`) {
        response.writeHead(401).end();
        return true;
    }
    if (path.startsWith('/objects/')) {
        response.end(objects.get(path.slice('/objects/'.length)));
        return true;
    }
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.once('end', () => {
        const asked = JSON.parse(Buffer.concat(chunks).toString()) as {
            objects: { oid: string; size: number }[];
        };
        const found = asked.objects.map(({ oid, size }) =>
            objects.has(oid)
                ? {
                      oid,
                      size,
                      actions: { download: { href: `http://127.0.0.1:${rig.git.port}/objects/${oid}` } }
                  }
                : { oid, size, error: { code: 404, message: 'Object does not exist' } }
        );
        response.writeHead(200, { 'content-type': 'application/vnd.git-lfs+json' });
        response.end(JSON.stringify({ transfer: 'basic', objects: found }));
    });
    return true;
}

describe('Files of Git LFS', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (withoutSandbox === undefined) {
            rig = await DeployRig.start();
            rig.git.intercept = answer;
        }
    });

    after({ timeout: limitMs }, async () => {
        await rig?.close();
    });

    real('are in the release as their pointers say, and a release without them is none', async () => {
        rig.git.create('large', {
            'index.html': 'x',
            'media/big.txt': pointerOf(big),
            'plain.txt': 'version https://git-lfs.github.com/spec/v1\nno pointer\n'
        });
        rig.git.passwords.set('large', `ada:${token}`);
        const connection = await rig.post('/connections', {
            ...{ name: 'forge', kind: 'token', host: `127.0.0.1:${rig.git.port}`, username: 'ada', token }
        });
        const source = { url: rig.git.url('large'), connection: connection.data.id };
        const id = await rig.project({ name: 'large', source, host: { domain: 'large.test' } });
        await rig.serve(id);
        expect((await rig.page('large.test', '/media/big.txt')).text).to.contain('git-lfs.github.com');
        await rig.put(`/projects/${id}`, { source: { ...source, lfs: true } });
        const deployment = await rig.serve(id);
        expect((await rig.page('large.test', '/media/big.txt')).text).to.equal(big);
        expect((await rig.page('large.test', '/plain.txt')).text).to.contain('no pointer');
        expect(await rig.log(deployment.id))
            .to.contain('Fetched 1 files of Git LFS')
            .and.to.not.contain(token);

        const [oid = ''] = [...objects.keys()];
        objects.set(oid, `${big.slice(0, -2)}!\n`);
        const forged = await rig.deploy(id);
        expect(forged.reason).to.equal('FETCH_FAILED');
        expect(await rig.log(forged.id)).to.contain('something else for media/big.txt');
        objects.delete(oid);
        const gone = await rig.deploy(id);
        expect(await rig.log(gone.id)).to.contain('Object does not exist');
        expect((await rig.page('large.test', '/media/big.txt')).text).to.equal(big);
    });

    real('are fetched over ssh with what the git server lets in for them', async () => {
        const folder = join(rig.top, 'ssh');
        mkdirSync(folder);
        const sshd = await openSshd(folder);
        try {
            const basic = Buffer.from(`ada:${token}`).toString('base64');
            const href = `http://127.0.0.1:${rig.git.port}/keyed.git/info/lfs`;
            const says = (text: string): void => writeFileSync(join(folder, 'says'), text);
            const program = join(folder, 'git-lfs-authenticate');
            // The command of a forge: it answers for the repository and the operation that it was asked for.
            writeFileSync(program, `#!/bin/sh\necho "$@" >>${folder}/asked\ncat ${folder}/says\n`, {
                mode: 0o755
            });
            const key = (made: string): string =>
                `command="PATH=${folder}:$PATH; eval $SSH_ORIGINAL_COMMAND" ${made}\n`;
            rig.git.create('keyed', { 'index.html': 'x', 'big.txt': pointerOf(`${big}over ssh`) });
            const host = `127.0.0.1:${sshd.port}`;
            const connection = await rig.post('/connections', { name: 'ssh', kind: 'key', host });
            appendFileSync(join(folder, 'authorized'), key(connection.data.publicKey as string));
            const path = `${rig.git.top}/keyed.git`;
            const url = `ssh://root@${host}${path}`;
            const source = { url, connection: connection.data.id, lfs: true };
            const id = await rig.project({ name: 'keyed', source, host: { domain: 'keyed.test' } });

            says(JSON.stringify({ href, header: { Authorization: `Basic ${basic}` }, expires_in: 600 }));
            const deployment = await rig.serve(id);
            expect((await rig.page('keyed.test', '/big.txt')).text).to.equal(`${big}over ssh`);
            expect(readFileSync(join(folder, 'asked'), 'utf8')).to.equal(`${path} download\n`);
            expect(await rig.log(deployment.id)).to.not.contain(basic);

            says('no server of Git LFS here');
            const unread = await rig.deploy(id);
            expect(unread.reason).to.equal('FETCH_FAILED');
            expect(await rig.log(unread.id)).to.contain('git-lfs-authenticate cannot be read');
            says(JSON.stringify({ href: 'http://1.1.1.1/keyed.git/info/lfs', header: {} }));
            const plain = await rig.deploy(id);
            expect(plain.reason).to.equal('FETCH_FAILED');
            expect(await rig.log(plain.id)).to.contain('Without TLS');
            expect((await rig.page('keyed.test', '/big.txt')).text).to.equal(`${big}over ssh`);
        } finally {
            await sshd.close();
        }
    });
});
