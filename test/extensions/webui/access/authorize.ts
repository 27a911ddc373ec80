/** The question of an OAuth client in a browser: the user says yes or no, and the answer arrives at the client's address. */
import { hash, randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itInBrowser } from '../../../support/browser.ts';
import { until } from '../../../support/until.ts';
import { finish, isSound, limitMs, logIn, type Rig, startRig } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const path = '/api/plugins/mcpserver/mcp';
const verifier = randomBytes(32).toString('base64url');
const initialize = (name: string) => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name, version: '1' } }
});

describe('the question of an OAuth client', { timeout: limitMs }, () => {
    const itWithBrowser = itInBrowser(it);
    let rig: Rig;
    let server: Server;
    let redirectUri: string;
    let clientId: string;
    /** What arrived at the client's address. */
    let arrived: URLSearchParams[] = [];

    before({ timeout: limitMs }, async () => {
        rig = await startRig(['webui', 'mcpserver']);
        server = createServer((request, response) => {
            const { pathname, searchParams } = new URL(request.url ?? '/', redirectUri);
            if (pathname === '/callback') {
                arrived.push(searchParams);
            }
            response.end('You may close this window.');
        });
        await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
        redirectUri = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`;
        const { data } = await rig.panel.client.post('/api/auth/oauth/clients', {
            name: 'Test agent',
            redirectUris: [redirectUri]
        });
        clientId = data.clientId;
    });
    after(async () => {
        await rig.close();
        await new Promise((resolve) => server.close(resolve));
    });

    const host = (): string => `panel.example:${rig.panel.port}`;
    const request = (more: Readonly<Record<string, string>> = {}): string =>
        `/oauth/authorize?${new URLSearchParams({
            response_type: 'code',
            client_id: clientId,
            redirect_uri: redirectUri,
            state: 'of the client',
            scope: 'mcpserver:use hosts:read hosts:write',
            code_challenge: hash('sha256', verifier, 'base64url'),
            code_challenge_method: 'S256',
            resource: `http://${host()}${path}`,
            ...more
        })}`;
    const answer = async (): Promise<URLSearchParams> => {
        const got = await until(() => arrived[0], 'the answer to arrive at the client');
        arrived = [];
        return got;
    };
    const exchange = async (code: string): Promise<{ access_token: string; scope: string }> => {
        const { status, text } = await rig.panel.client.post(
            '/api/auth/oauth/token',
            new URLSearchParams({
                grant_type: 'authorization_code',
                code,
                client_id: clientId,
                redirect_uri: redirectUri,
                code_verifier: verifier
            }).toString(),
            {
                token: null,
                headers: { host: host(), 'content-type': 'application/x-www-form-urlencoded' }
            }
        );
        expect(status, text).to.equal(200);
        return JSON.parse(text);
    };

    itWithBrowser('is asked after the login, and gives the client what the user ticked', async () => {
        const { page, faults } = await rig.page();
        await logIn(page, 'admin', undefined, request());
        await page.getByRole('heading', { name: 'May this client act for you?' }).waitFor();
        await page.getByText('Test agent').waitFor();
        await page.getByText(redirectUri).waitFor();
        await isSound(page, 'the question');
        await page.getByRole('checkbox', { name: /hosts:write/ }).uncheck();
        await page.getByRole('button', { name: 'Allow' }).click();
        const got = await answer();
        expect(got.get('state')).to.equal('of the client');
        const { access_token: token, scope } = await exchange(got.get('code') ?? '');
        expect(scope.split(' ').toSorted()).to.equal(['hosts:read', 'mcpserver:use']);
        const served = await rig.panel.client.post(path, initialize('agent'), {
            token,
            headers: { accept: 'application/json, text/event-stream' }
        });
        expect(served.status, served.text).to.equal(200);
        // The only place outside of the panel that the browser went to.
        expect(faults.foreign.map((address) => address.split('?')[0])).to.include(redirectUri);
        expect([faults.policy, faults.errors]).to.equal([[], []]);
        await page.context().close();
    });

    itWithBrowser('tells the client that the user refused, and gives it nothing', async () => {
        const { page } = await rig.open();
        const before = await rig.panel.client.get('/api/auth/tokens');
        await page.goto(request());
        await page.getByRole('button', { name: 'Refuse' }).click();
        const got = await answer();
        expect(Object.fromEntries(got)).to.include({ error: 'access_denied', state: 'of the client' });
        expect(got.has('code')).to.be.false();
        expect((await rig.panel.client.get('/api/auth/tokens')).data).to.equal(before.data);
        await page.context().close();
    });

    itWithBrowser('leads back to the client only where its address is one of its own', async () => {
        const { page } = await rig.open({ colorScheme: 'dark', viewport: { width: 360, height: 800 } });
        await page.goto(request({ response_type: 'token' }));
        await page.getByRole('alert').waitFor();
        await page.getByRole('button', { name: 'Back to the client' }).click();
        expect((await answer()).get('error')).to.equal('unsupported_response_type');
        await page.goto(request({ redirect_uri: 'http://evil.example/callback' }));
        await page.getByRole('alert').waitFor();
        expect(await page.getByRole('button', { name: 'Back to the client' }).count()).to.equal(0);
        await page.goto(request());
        await page.getByRole('button', { name: 'Allow' }).waitFor();
        await isSound(page, 'the question on a phone');
        expect(arrived).to.equal([]);
        await page.context().close();
    });

    itWithBrowser(
        'says how a client is set up, with a token of its own, and which one is connected',
        async () => {
            const watched = await rig.open();
            const { page } = watched;
            await page.getByRole('link', { name: 'Agents (MCP)' }).click();
            await page.getByText(`http://${host()}${path}`, { exact: true }).waitFor();
            const setup = page.locator('pre');
            await page.getByLabel('Client').selectOption('codex');
            await setup.getByText('bearer_token_env_var').waitFor();
            await page.getByText('Keep the token in the environment variable').waitFor();
            await page.getByLabel('Client').selectOption('claude-code');
            await setup.getByText('Bearer ${PORTICO_TOKEN}').waitFor();
            await isSound(page, 'how to connect an agent');
            await page.getByRole('button', { name: 'Make a token for it' }).click();
            const dialog = page.getByRole('dialog', { name: 'New token' });
            expect(await dialog.getByLabel('Name').inputValue()).to.equal('Claude Code');
            await dialog.getByRole('button', { name: 'Make the token' }).click();
            const token = (await dialog.locator('code').textContent()) ?? '';
            await dialog.getByRole('button', { name: 'I have kept it' }).click();
            const { mcpServers } = JSON.parse((await setup.textContent()) ?? '');
            expect(mcpServers.portico.headers).to.equal({ Authorization: `Bearer ${token}` });
            const { url, headers } = mcpServers.portico;
            const served = await rig.panel.client.post(new URL(url).pathname, initialize('editor'), {
                token: headers.Authorization.slice(7),
                headers: { accept: 'application/json, text/event-stream' }
            });
            expect(served.status, served.text).to.equal(200);
            // It reads, and changes nothing.
            const made = await rig.panel.client.call('DELETE', '/api/hosts/1', { token });
            expect(made.status, made.text).to.equal(403);
            await page.reload();
            await page.getByRole('cell', { name: 'editor', exact: true }).waitFor();
            await setup.getByText('Bearer ${PORTICO_TOKEN}').waitFor();
            expect(await page.content()).to.not.contain(token);
            await finish(watched);
        }
    );
});
