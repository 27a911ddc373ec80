/** A visitor from anywhere who asks a site, and wants to be let in as another one. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { startPanel, type TestPanel } from '../support/panel/panel.ts';
import { startFastcgi, type TestResponder } from '../support/servers/fastcgi.ts';
import { received, startUpstream, type TestUpstream } from '../support/servers/upstream.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

interface Seen {
    readonly status: number;
    readonly body: string;
}

describe('a visitor of a site', () => {
    let at: TestPanel;
    let upstream: TestUpstream;
    let judge: TestUpstream;
    let php: TestResponder;
    const root = mkdtempSync(join(tmpdir(), 'portico-site-'));

    before(async () => {
        chmodSync(root, 0o755);
        mkdirSync(join(root, 'www'), { mode: 0o755 });
        writeFileSync(join(root, 'www/index.php'), '<?php', { mode: 0o644 });
        [upstream, php] = [await startUpstream('site'), await startFastcgi()];
        judge = await startUpstream('judge', (_asked, answer) => {
            answer.setHeader('x-auth-user', 'alice');
            answer.end();
            return true;
        });
        at = await startPanel();
    });

    after(async () => {
        await at.close();
        await Promise.all([upstream.close(), judge.close(), php.close()]);
        rmSync(root, { recursive: true });
    });

    const visit = (
        host: string,
        path: string,
        headers: Readonly<Record<string, string>> = {}
    ): Promise<Seen> =>
        new Promise((resolve, reject) => {
            const sent = request(
                { host: '127.0.0.1', port: at.httpPort, path, headers: { host, ...headers }, agent: false },
                (answer) => {
                    let body = '';
                    answer.setEncoding('utf8').on('data', (part: string) => {
                        body += part;
                    });
                    answer.once('end', () => resolve({ status: answer.statusCode ?? 0, body }));
                }
            );
            sent.once('error', reject);
            sent.end();
        });

    it("does not name who it is past the server that is asked for that, in any spelling that an application takes for the header's", async () => {
        const access = {
            forwardAuth: { url: `http://${judge.address}/`, copyHeaders: ['X-Auth-User', 'X-Auth-Groups'] }
        };
        for (const body of [
            { domain: 'proxied.test', upstream: upstream.address, access },
            {
                domain: 'php.test',
                type: 'php',
                php: { root: join(root, 'www'), fastcgi: php.address },
                access
            }
        ]) {
            expect((await at.client.post('/api/hosts', body)).status).to.equal(201);
        }
        for (const separators of ['--', '-_', '_-', '__']) {
            for (const [first, last] of [
                ['X', 'User'],
                ['x', 'user'],
                ['X', 'Groups']
            ]) {
                const name = `${first}${separators[0]}Auth${separators[1]}${last}`;
                for (let tries = 0; tries < 8; tries += 1) {
                    const { headers } = received((await visit('proxied.test', '/', { [name]: 'root' })).body);
                    const spelled = Object.entries(headers).filter(([header]) =>
                        /^x[-_]auth[-_]/.test(header)
                    );
                    expect(spelled, name).to.equal([['x-auth-user', 'alice']]);
                    const parameters = JSON.parse(
                        (await visit('php.test', '/', { [name]: 'root' })).body
                    ) as Record<string, string>;
                    expect([parameters['HTTP_X_AUTH_USER'], parameters['HTTP_X_AUTH_GROUPS']], name).to.equal(
                        ['alice', undefined]
                    );
                }
            }
        }
    });
});
