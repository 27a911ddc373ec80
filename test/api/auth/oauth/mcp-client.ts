/** A real panel, a plugin that speaks MCP with the official server, and the official client, which finds everything by itself. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import {
    Client,
    type OAuthClientInformationMixed,
    type OAuthClientProvider,
    type OAuthDiscoveryState,
    type OAuthTokens,
    StreamableHTTPClientTransport,
    UnauthorizedError
} from '@modelcontextprotocol/client';

import { startPanel, type TestPanel } from '../../../support/panel/panel.ts';
import { createPluginFolder, type PluginFolder, pluginModule } from '../../../support/plugins/folder.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const limitMs = 60_000;
const redirectUri = 'http://127.0.0.1:3118/callback';

/** Serves MCP to the callers that the panel lets through; its one tool asks the panel in the caller's name. */
const agentDoor = pluginModule(
    `const mcp = createMcpHandler(({ authInfo }) => {
        const server = new McpServer({ name: 'portico', version: '1.0.0' });
        server.registerTool('call', { description: 'Calls a route', inputSchema: fromJsonSchema({ type: 'object', properties: { id: { type: 'string' } }, required: ['id'] }) },
            async ({ id }) => {
                const { code, data } = await ctx.api.call(authInfo.extra.actor, { id });
                return { content: [{ type: 'text', text: JSON.stringify({ code, data }) }] };
            });
        return server;
    });
    ctx.http({ methods: ['GET', 'POST', 'DELETE'], path: '/mcp', access: 'use', oauth: true, effect: 'read', raw: 'Model Context Protocol', maxBytes: 4 * 1024 * 1024, summary: 'The panel for agents',
        handler: (request, { actor }) => mcp.fetch(request, { authInfo: { token: '', clientId: '', scopes: [], extra: { actor } } }) });
    ctx.http({ methods: ['POST'], path: '/other', access: 'use', oauth: true, effect: 'read', raw: 'Another protocol', maxBytes: 1000, handler: () => new Response('other') });`,
    {
        head: `import { createMcpHandler, fromJsonSchema, McpServer } from '${import.meta.resolve('@modelcontextprotocol/server')}';`
    }
);

/** A client's memory, and a browser that a test plays. */
class Agent implements OAuthClientProvider {
    readonly redirectUrl = redirectUri;
    readonly clientMetadata = { client_name: 'Test agent', redirect_uris: [redirectUri] };
    opened: URL | null = null;
    information: OAuthClientInformationMixed | undefined;
    kept: OAuthTokens | undefined;
    #verifier = '';
    #discovered: OAuthDiscoveryState | undefined;

    clientInformation(): OAuthClientInformationMixed | undefined {
        return this.information;
    }

    saveClientInformation(information: OAuthClientInformationMixed): void {
        this.information = information;
    }

    tokens(): OAuthTokens | undefined {
        return this.kept;
    }

    saveTokens(tokens: OAuthTokens): void {
        this.kept = tokens;
    }

    saveCodeVerifier(verifier: string): void {
        this.#verifier = verifier;
    }

    codeVerifier(): string {
        return this.#verifier;
    }

    saveDiscoveryState(state: OAuthDiscoveryState): void {
        this.#discovered = state;
    }

    discoveryState(): OAuthDiscoveryState | undefined {
        return this.#discovered;
    }

    state(): string {
        return 'a state';
    }

    invalidateCredentials(): void {
        this.kept = undefined;
    }

    redirectToAuthorization(url: URL): void {
        this.opened = url;
    }
}

let folder: PluginFolder;
let panel: TestPanel;
let url: URL;

const connect = async (agent: Agent, mode: 'auto' | 'legacy' = 'auto'): Promise<Client> => {
    const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } });
    await client.connect(new StreamableHTTPClientTransport(url, { authProvider: agent }));
    return client;
};
const call = async (client: Client, id: string): Promise<{ code: number; data: unknown }> => {
    const { content } = await client.callTool({ name: 'call', arguments: { id } });
    const [first] = content;
    return JSON.parse(first?.type === 'text' ? first.text : '') as { code: number; data: unknown };
};
/** Does what the panel's page does: shows what is asked, and hands on what the user agrees to. */
const agree = async (agent: Agent, narrow: (allowed: readonly string[]) => readonly string[]) => {
    const { opened } = agent;
    expect(opened?.pathname).to.equal('/oauth/authorize');
    const asked = Object.fromEntries(opened?.searchParams ?? []);
    const shown = await panel.client.post('/api/auth/oauth/authorize/validate', asked);
    expect(shown.data?.client?.name, shown.text).to.equal('Test agent');
    expect(shown.data.resource).to.equal({ path: url.pathname, title: 'The panel for agents' });
    const allowed = shown.data.permissions as readonly { name: string; allowed: boolean }[];
    const scope = narrow(allowed.filter((each) => each.allowed).map(({ name }) => name)).join(' ');
    const { data, text } = await panel.client.post('/api/auth/oauth/authorize', { ...asked, scope });
    expect(data?.redirect, text).to.be.a.string();
    return new URL(data.redirect as string).searchParams;
};
/** From nothing to a client that is connected. */
const admitted = async (
    mode: 'auto' | 'legacy',
    narrow: (allowed: readonly string[]) => readonly string[] = (allowed) => allowed
): Promise<{ agent: Agent; client: Client }> => {
    const agent = new Agent();
    await expect(connect(agent, mode)).to.reject(UnauthorizedError);
    const answer = await agree(agent, narrow);
    await new StreamableHTTPClientTransport(url, { authProvider: agent }).finishAuth(answer);
    return { agent, client: await connect(agent, mode) };
};
const grantOf = async (): Promise<{ id: number; permissions: string[] }> => {
    const { data } = await panel.client.get('/api/auth/tokens');
    return (data as { id: number; clientId: string | null; permissions: string[] }[])
        .filter(({ clientId }) => clientId !== null)
        .at(-1) as { id: number; permissions: string[] };
};

describe('The official MCP client', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        folder = createPluginFolder();
        folder.write('agents', agentDoor, {
            manifest: {
                capabilities: { api: { read: ['*'], write: ['*'] } },
                permissions: { use: { title: 'Connect an agent', roles: ['viewer', 'operator'] } }
            }
        });
        panel = await startPanel({ environment: { PORTICO_PLUGIN_DIRS: folder.path } });
        await panel.panel.settled();
        url = new URL(`http://127.0.0.1:${panel.port}/api/plugins/agents/mcp`);
        await panel.client.put('/api/settings', { 'panel.oauthRegistration': true });
    });
    after({ timeout: limitMs }, async () => {
        await panel?.close();
        folder.remove();
    });

    for (const mode of ['auto', 'legacy'] as const) {
        it(`discovers, registers, is authorized and calls (${mode})`, async () => {
            const { agent, client } = await admitted(mode);
            expect((await client.listTools()).tools.map(({ name }) => name)).to.equal(['call']);
            expect(await call(client, 'users.list')).to.include({ code: 0 });
            const { permissions } = await grantOf();
            expect(permissions).to.include(['agents:use', 'users:read']);
            expect(permissions, 'what is dangerous is not asked for unnamed').not.to.include('users:write');
            expect(agent.kept?.scope).to.equal(permissions.join(' '));
            await client.close();
        });
    }

    it('may do what the user gave it, and no more', async () => {
        const { client } = await admitted('auto', () => ['agents:use', 'hosts:read']);
        expect((await call(client, 'hosts.list')).code).to.equal(0);
        expect((await call(client, 'users.list')).code).to.equal(40300);
        const audit = await panel.client.get('/api/audit?resource=grants&limit=10');
        expect(audit.data[0]).to.include({ action: 'exchange', outcome: 'success' });
        expect(audit.data[0].actor.username).to.equal('admin');
        await client.close();
    });

    it('refreshes by itself, and is out once the grant is revoked', async () => {
        const { agent, client } = await admitted('auto');
        const first = agent.kept;
        agent.kept = { ...(first as OAuthTokens), access_token: `poa_${'x'.repeat(43)}` };
        expect((await call(client, 'hosts.list')).code).to.equal(0);
        expect(agent.kept.refresh_token).not.to.equal(first?.refresh_token);
        const { id } = await grantOf();
        expect((await panel.client.delete(`/api/auth/tokens/${id}`)).code).to.equal(0);
        agent.opened = null;
        await expect(call(client, 'hosts.list')).to.reject(UnauthorizedError);
        expect(agent.opened, 'it asks anew').not.to.be.null();
        expect((await call((await admitted('auto')).client, 'hosts.list')).code).to.equal(0);
        await client.close();
    });

    it('has a token that opens nothing else, and nothing at all without its route', async () => {
        const { agent, client } = await admitted('auto');
        const token = agent.kept?.access_token ?? '';
        for (const path of [
            '/api/hosts',
            '/api/auth/me',
            '/api/events',
            '/api/plugins',
            '/api/auth/tokens'
        ]) {
            expect((await panel.client.get(path, { token })).code, path).to.equal(40101);
        }
        expect((await panel.client.post('/api/plugins/agents/other', {}, { token })).code).to.equal(40101);
        expect((await panel.client.put('/api/plugins/agents', { enabled: false })).code).to.equal(0);
        const metadata = `/.well-known/oauth-protected-resource${url.pathname}`;
        expect((await panel.client.post(url.pathname, {}, { token })).code).to.equal(40411);
        expect((await panel.client.get(metadata, { token: null })).code).to.equal(40400);
        expect((await panel.client.put('/api/plugins/agents', { enabled: true })).code).to.equal(0);
        expect((await panel.client.get(metadata, { token: null })).status).to.equal(200);
        expect((await call(client, 'hosts.list')).code).to.equal(0);
        await client.close();
    });

    it('finds the panel by the address that panel.url gives, and no other', async () => {
        await panel.client.put('/api/settings', { 'panel.url': 'https://panel.example/' });
        const refused = await panel.client.post(url.pathname, {}, { token: null });
        expect(refused.headers['www-authenticate']).to.equal(
            `Bearer resource_metadata="https://panel.example/.well-known/oauth-protected-resource${url.pathname}"`
        );
        const server = await panel.client.get('/.well-known/oauth-authorization-server', {
            token: null,
            headers: { host: 'evil.example' }
        });
        expect(JSON.parse(server.text)).to.include({ issuer: 'https://panel.example' });
        await panel.client.put('/api/settings', { 'panel.url': null });
    });
});
