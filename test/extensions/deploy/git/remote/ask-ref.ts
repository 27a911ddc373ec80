import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { askRef } from '../../../../../extensions/deploy/src/git/remote/ask-ref.ts';
import { git, GitServer } from '../../support/git-server.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const signal = new AbortController().signal;
const credentials = { kind: 'token', username: 'ada', token: 'hers' } as const;
let top: string;
let server: GitServer;
let other: Server;
let said: readonly [type: string, body: string];

const ask = (ref: string, who: typeof credentials | null = null) =>
    askRef(fetch, { address: { url: server.url('app') }, credentials: who }, ref, signal);
/** Asks a server that answers as the test says. */
const askOther = (...answer: typeof said) => {
    said = answer;
    const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}/app.git`;
    return askRef(fetch, { address: { url }, credentials: null }, 'refs/heads/main', signal);
};

describe('askRef', { timeout: 30_000 }, () => {
    before(async () => {
        top = mkdtempSync(join(tmpdir(), 'portico-ask-ref-'));
        server = new GitServer(top);
        await server.start();
        other = createServer((_request, response) => {
            response.writeHead(200, { 'content-type': said[0] }).end(said[1]);
        });
        await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    });

    after(async () => {
        await server.close();
        await new Promise((resolve) => other.close(resolve));
        rmSync(top, { recursive: true });
    });

    it('tells the commits of branches and tags, as git does, and asks once', async () => {
        const first = server.create('app', { a: 'one' });
        const second = server.commit('app', { a: 'two' }, 'Two', 'main-two');
        const work = server.work('app');
        git(work, 'tag', '--annotate', '--message', 'A version', 'v1', first);
        git(work, 'push', '--quiet', 'origin', 'v1');
        server.asked.length = 0;
        expect(await ask('refs/heads/main')).to.equal(first);
        expect(server.asked).to.have.length(1);
        expect(await ask('refs/heads/main-two')).to.equal(second);
        expect(await ask('refs/tags/v1')).to.equal(first);
        expect(await ask('refs/heads/mai')).to.be.null();
    });

    it('shows a token where there is one, and takes no refusal for an answer', async () => {
        server.passwords.set('app', 'ada:hers');
        await expect(ask('refs/heads/main')).to.reject(/401/);
        expect(await ask('refs/heads/main', credentials)).to.match(/^[0-9a-f]{40}$/);
    });

    it('leaves to git what is no answer of the second version', async () => {
        const type = 'application/x-git-upload-pack-result';
        const commit = 'a'.repeat(40);
        const line = `003d${commit} refs/heads/main\n`;
        expect(await askOther(type, `${line}0000`)).to.equal(commit);
        await expect(askOther('text/html', `${line}0000`)).to.reject();
        await expect(askOther(type, line.slice(0, -5))).to.reject();
        await expect(askOther(type, '0002')).to.reject();
        await expect(askOther(type, 'zzzz')).to.reject();
        await expect(askOther(type, '0010not a commit0000')).to.reject();
        await expect(askOther(type, '')).to.reject();
        await expect(askOther(type, 'x'.repeat(2 ** 20 + 1))).to.reject();
    });
});
