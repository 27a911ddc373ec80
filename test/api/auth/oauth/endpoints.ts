/** The authorization server, and what an attacker tries at it: everything in process, with a clock by hand. */
import { hash, randomBytes } from 'node:crypto';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { http } from '../../../../core/src/server/http/route.ts';
import { type Answer, type Entrance, openEntrance, things } from '../../../support/core/entrance.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

const panel = 'http://panel.example';
const resource = `${panel}/things/mcp`;
const redirectUri = 'http://127.0.0.1:3118/callback';

/** A protected resource, one beside it, and one that is none. */
const resources = () => [
    ...things(),
    ...['/things/mcp', '/things/mcp/below', '/things/mcpother'].map((path) =>
        http({
            methods: ['POST', 'GET'],
            path,
            id: path.slice(1).replaceAll('/', '.'),
            summary: 'Things for agents',
            access: 'hosts:read',
            oauth: true,
            effect: 'read',
            raw: 'A protocol of its own',
            maxBytes: 1000,
            handler: (_request, { actor }) => Response.json({ actor: { ...actor }, data: actor.permissions })
        })
    ),
    http({
        methods: ['POST'],
        path: '/things/plain',
        id: 'things.plain',
        summary: 'Things for those who log in',
        access: 'hosts:read',
        raw: 'A protocol of its own',
        maxBytes: 1000,
        handler: () => Response.json({ code: 0, message: 'ok', data: null })
    }),
    http({
        methods: ['POST'],
        path: '/things/mcp/strict',
        id: 'things.strict',
        summary: 'Things for those who prove themselves',
        access: 'hosts:read',
        oauth: true,
        stepUp: true,
        raw: 'A protocol of its own',
        maxBytes: 1000,
        handler: () => Response.json({ code: 0, message: 'ok', data: null })
    })
];

let at: Entrance;
let owner: string;
let clientId: string;

const host = { host: 'panel.example' };
const verifier = randomBytes(32).toString('base64url');
const challengeOf = (text: string): string => hash('sha256', text, 'base64url');
const post = (path: string, body: unknown, token?: string): Promise<Answer> =>
    at.ask('POST', path, { body, headers: host, ...(token === undefined ? {} : { token }) });
const send = (path: string, fields: Readonly<Record<string, string>> | string): Promise<Answer> =>
    at.ask('POST', path, {
        body: typeof fields === 'string' ? fields : new URLSearchParams(fields).toString(),
        headers: { ...host, 'content-type': 'application/x-www-form-urlencoded' }
    });
const request = (more: object = {}) => ({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    scope: 'hosts:read',
    state: 'xyz',
    code_challenge: challengeOf(verifier),
    code_challenge_method: 'S256',
    resource,
    ...more
});
const authorize = (more: object = {}, token = owner): Promise<Answer> =>
    post('/api/auth/oauth/authorize', request(more), token);
const codeOf = async (more: object = {}, token = owner): Promise<string> => {
    const { data, body } = await authorize(more, token);
    expect(data?.redirect, body).to.be.a.string();
    return new URL(data.redirect).searchParams.get('code') ?? '';
};
const exchange = (code: string, more: object = {}): Promise<Answer> =>
    send('/api/auth/oauth/token', {
        grant_type: 'authorization_code',
        code,
        client_id: clientId,
        redirect_uri: redirectUri,
        code_verifier: verifier,
        resource,
        ...more
    });
const refresh = (token: string, more: object = {}): Promise<Answer> =>
    send('/api/auth/oauth/token', {
        grant_type: 'refresh_token',
        refresh_token: token,
        client_id: clientId,
        ...more
    });
const json = ({ body }: Answer) => JSON.parse(body) as Record<string, string>;
const document = ({ body }: Answer) => JSON.parse(body) as object;
const errorOf = (answer: Answer) => [answer.status, json(answer)['error']];
const pairOf = async (more: object = {}, token = owner) => {
    const answer = await exchange(await codeOf(more, token));
    expect(answer.status, answer.body).to.equal(200);
    return json(answer) as { access_token: string; refresh_token: string; scope: string };
};
const use = (token: string, path = '/things/mcp'): Promise<Answer> =>
    at.ask('POST', path, { token, headers: host });
const grants = async (token = owner) =>
    (
        (await at.ask('GET', '/api/auth/tokens', { token })).data as { id: number; clientId: string | null }[]
    ).filter((each) => each.clientId !== null);
const rowsOf = (table: string): unknown[] => at.store.db.prepare(`select * from ${table}`).all();

describe('OAuth', () => {
    beforeEach(async () => {
        at = await openEntrance({ routes: resources() });
        await at.add('owner', 'admin');
        owner = await at.tokenOf('owner');
        const made = await post(
            '/api/auth/oauth/clients',
            { name: 'Agent', redirectUris: [redirectUri] },
            owner
        );
        clientId = made.data.clientId as string;
    });
    afterEach(() => at.remove());

    it('lets a client in: found, authorized, exchanged, used, refreshed, revoked', async () => {
        const refused = await at.ask('POST', '/things/mcp', { headers: host });
        const metadata = `${panel}/.well-known/oauth-protected-resource/things/mcp`;
        expect([refused.code, refused.headers['www-authenticate']]).to.equal([
            40100,
            `Bearer resource_metadata="${metadata}"`
        ]);
        const found = document(await at.ask('GET', new URL(metadata).pathname, { headers: host }));
        expect(found).to.include({
            resource,
            authorization_servers: [panel],
            resource_name: 'Things for agents'
        });
        const { scopes_supported: scopes } = found as { readonly scopes_supported: readonly string[] };
        expect(scopes).to.include(['hosts:read', 'hosts:write']);
        expect(scopes).not.to.include('hosts:unsafe');
        const server = document(
            await at.ask('GET', '/.well-known/oauth-authorization-server', { headers: host })
        );
        expect(server).to.include({
            issuer: panel,
            authorization_endpoint: `${panel}/oauth/authorize`,
            token_endpoint: `${panel}/api/auth/oauth/token`,
            code_challenge_methods_supported: ['S256']
        });
        expect(server).not.to.include('registration_endpoint');

        const shown = await post('/api/auth/oauth/authorize/validate', request(), owner);
        expect(shown.data).to.equal({
            client: { id: clientId, name: 'Agent' },
            redirectUri,
            resource: { path: '/things/mcp', title: 'Things for agents' },
            permissions: [{ name: 'hosts:read', title: 'See hosts', dangerous: false, allowed: true }]
        });
        expect(await grants()).to.equal([]);
        const { data } = await authorize();
        const back = new URL(data.redirect);
        expect(data.redirect.startsWith(`${redirectUri}?code=poc_`)).to.be.true();
        expect([back.searchParams.get('state'), back.searchParams.get('iss')]).to.equal(['xyz', panel]);
        const answer = await exchange(back.searchParams.get('code') ?? '');
        expect(answer.headers['cache-control']).to.equal('no-store');
        const pair = json(answer);
        expect(document(answer)).to.include({ token_type: 'Bearer', expires_in: 3600, scope: 'hosts:read' });

        const used = await use(pair['access_token'] ?? '');
        const { actor } = JSON.parse(used.body) as { actor: Record<string, unknown> };
        expect(actor).to.include({
            kind: 'token',
            username: 'owner',
            permissions: ['hosts:read'],
            fresh: false
        });
        const [grant] = await grants();
        expect(grant).to.include({
            name: 'Agent',
            clientId,
            resource: '/things/mcp',
            permissions: ['hosts:read']
        });
        expect(actor['tokenId']).to.equal(grant?.id);

        at.clock.time += 3600_000;
        const late = await use(pair['access_token'] ?? '');
        expect([late.code, late.headers['www-authenticate']]).to.equal([
            40102,
            `Bearer error="invalid_token", resource_metadata="${metadata}"`
        ]);
        const next = json(await refresh(pair['refresh_token'] ?? ''));
        expect((await use(next['access_token'] ?? '')).status).to.equal(200);
        owner = await at.tokenOf('owner');
        expect(await grants()).to.have.length(1);
        const ended = await send('/api/auth/oauth/revoke', {
            token: next['access_token'] ?? '',
            client_id: clientId
        });
        expect(ended.status).to.equal(200);
        expect((await use(next['access_token'] ?? '')).code).to.equal(40103);
        expect(errorOf(await refresh(next['refresh_token'] ?? ''))).to.equal([400, 'invalid_grant']);
        expect(await grants()).to.equal([]);
        const recorded = at.recorded.filter(({ resource: kind }) => kind === 'grants');
        expect(recorded.map(({ action, actor: who }) => [action, who.username])).to.equal([
            ['create', 'owner'],
            ['exchange', 'owner'],
            ['refresh', 'owner'],
            ['delete', 'owner']
        ]);
        const stored = JSON.stringify([...rowsOf('auth_oauth_tokens'), ...rowsOf('auth_tokens')]);
        expect(stored).not.to.match(/po[acr]_/);
        expect(JSON.stringify([at.recorded, at.refused])).not.to.match(/po[acr]_/);
    });

    it('takes a code once: its second use ends what the first one gave', async () => {
        const code = await codeOf();
        const pair = json(await exchange(code));
        expect(errorOf(await exchange(code))).to.equal([400, 'invalid_grant']);
        expect((await use(pair['access_token'] ?? '')).code).to.equal(40103);
        expect(errorOf(await refresh(pair['refresh_token'] ?? ''))).to.equal([400, 'invalid_grant']);
        expect(at.recorded.at(-1)).to.include({ action: 'revoke', code: 40103 });
        const both = await codeOf();
        const answers = await Promise.all([exchange(both), exchange(both)]);
        expect(answers.map(({ status }) => status).sort()).to.equal([200, 400]);
        const won = answers.find(({ status }) => status === 200) as Answer;
        expect((await use(json(won)['access_token'] ?? '')).code).to.equal(40103);
    });

    it('takes a code for 60 s, from its client, with its proof, redirect URI and resource; a wrong use ends it', async () => {
        const late = await codeOf();
        at.clock.time += 60_000;
        expect(errorOf(await exchange(late))).to.equal([400, 'invalid_grant']);
        const other = await post(
            '/api/auth/oauth/clients',
            { name: 'Other', redirectUris: [redirectUri] },
            owner
        );
        for (const wrong of [
            { code_verifier: randomBytes(32).toString('base64url') },
            { code_verifier: challengeOf(verifier) },
            { code_verifier: 'short' },
            { redirect_uri: 'http://127.0.0.1:3119/callback' },
            { client_id: other.data.clientId as string },
            { resource: `${panel}/things/mcpother` }
        ]) {
            const code = await codeOf();
            expect(errorOf(await exchange(code, wrong)), JSON.stringify(wrong)).to.equal([
                400,
                'invalid_grant'
            ]);
            expect(errorOf(await exchange(code)), JSON.stringify(wrong)).to.equal([400, 'invalid_grant']);
        }
        const code = await codeOf();
        for (const [wrong, error] of [
            [{ code_verifier: '' }, 'invalid_request'],
            [{ client_id: '' }, 'invalid_request'],
            [{ client_id: 'pc_unknown' }, 'invalid_client'],
            [{ resource: 'http://evil.example/things/mcp' }, 'invalid_target'],
            [{ grant_type: 'password' }, 'unsupported_grant_type']
        ] as const) {
            const answer = await exchange(code, wrong);
            expect(errorOf(answer)[1], JSON.stringify(wrong)).to.equal(error);
            expect(answer.status).to.equal(error === 'invalid_client' ? 401 : 400);
        }
        expect((await exchange(code, { redirect_uri: redirectUri })).status).to.equal(200);
    });

    it("wants PKCE by S256 and a resource of its own, and never sends a browser to a redirect URI that is not the client's", async () => {
        for (const [wrong, path, error] of [
            [{ response_type: 'token' }, 'response_type', 'unsupported_response_type'],
            [{ code_challenge: undefined }, 'code_challenge', 'invalid_request'],
            [{ code_challenge: verifier.slice(1) }, 'code_challenge', 'invalid_request'],
            [{ code_challenge_method: 'plain' }, 'code_challenge_method', 'invalid_request'],
            [{ code_challenge_method: undefined }, 'code_challenge_method', 'invalid_request'],
            [{ resource: undefined }, 'resource', 'invalid_target'],
            [{ resource: `${panel}/api/hosts` }, 'resource', 'invalid_target'],
            [{ resource: `${panel}/things/plain` }, 'resource', 'invalid_target'],
            [{ resource: panel }, 'resource', 'invalid_target'],
            [{ resource: 'https://evil.example/things/mcp' }, 'resource', 'invalid_target'],
            [{ resource: 'http://panel.example.evil.example/things/mcp' }, 'resource', 'invalid_target'],
            [{ scope: '' }, 'scope', 'invalid_scope'],
            [{ scope: '*' }, 'scope', 'invalid_scope'],
            [{ scope: 'hosts:*' }, 'scope', 'invalid_scope'],
            [{ scope: 'hosts:read nothing:read' }, 'scope', 'invalid_scope']
        ] as const) {
            const answer = await authorize(wrong);
            expect([answer.code, answer.data.errors[0].path], JSON.stringify(wrong)).to.equal([40001, path]);
            const back = new URL(answer.data.redirect as string);
            expect([back.origin, back.searchParams.get('error'), back.searchParams.get('state')]).to.equal([
                'http://127.0.0.1:3118',
                error,
                'xyz'
            ]);
        }
        for (const wrong of [
            { client_id: 'pc_unknown' },
            { redirect_uri: 'https://evil.example/callback' },
            { redirect_uri: `${redirectUri}/` },
            { redirect_uri: 'http://127.0.0.1:3118@evil.example/callback' }
        ]) {
            const answer = await authorize(wrong);
            expect([answer.code, answer.data.redirect], JSON.stringify(wrong)).to.equal([40001, undefined]);
        }
        expect(await grants()).to.equal([]);
        expect((await authorize({ redirect_uri: 'http://127.0.0.1:50000/callback' })).code).to.equal(0);
    });

    it('is for the session of a user who proved oneself lately, with permissions that the user has', async () => {
        await at.add('reader', 'viewer');
        const reader = await at.tokenOf('reader');
        const own = await post(
            '/api/auth/oauth/clients',
            { name: 'Own', redirectUris: [redirectUri] },
            reader
        );
        const mine = { client_id: own.data.clientId as string };
        const more = await authorize({ ...mine, scope: 'hosts:read hosts:write' }, reader);
        expect([more.code, more.data.permission]).to.equal([40300, 'hosts:write']);
        const shown = await post(
            '/api/auth/oauth/authorize/validate',
            request({ ...mine, scope: 'hosts:read hosts:write' }),
            reader
        );
        expect(shown.data.permissions.map(({ allowed }: { allowed: boolean }) => allowed)).to.equal([
            true,
            false
        ]);
        expect((await authorize({}, reader)).data.errors[0].path).to.equal('client_id');
        expect((await authorize(mine, reader)).code).to.equal(0);
        const { data } = await post(
            '/api/auth/tokens',
            { name: 'robot', permissions: ['hosts:read'] },
            owner
        );
        expect((await authorize({}, data.token as string)).code).to.equal(40300);
        at.clock.time += 16 * 60_000;
        expect((await authorize()).code).to.equal(40301);
        expect((await post('/api/auth/oauth/authorize', request())).code).to.equal(40100);
        owner = await at.tokenOf('owner');
        const denied = await authorize({ deny: true });
        expect(new URL(denied.data.redirect).searchParams.get('error')).to.equal('access_denied');
        expect(await grants()).to.equal([]);
    });

    it('gives tokens that are good below their resource alone, and never fresh', async () => {
        const { access_token: token } = await pairOf({ scope: 'hosts:read hosts:write users:write' });
        expect((await use(token)).status).to.equal(200);
        expect((await use(token, '/things/mcp/below')).status).to.equal(200);
        expect((await use(token, '/things/mcp/strict')).code).to.equal(40301);
        for (const path of ['/things/mcpother', '/things/plain', '/api/things', '/things/mcp/../plain']) {
            expect((await use(token, path)).code, path).to.equal(40101);
        }
        for (const [method, path] of [
            ['GET', '/api/auth/me'],
            ['GET', '/api/things'],
            ['GET', '/api/auth/tokens'],
            ['POST', '/api/auth/tickets'],
            ['POST', '/api/auth/oauth/authorize'],
            ['POST', '/api/auth/oauth/clients'],
            ['GET', '/api/users']
        ] as const) {
            const answer = await at.ask(method, path, { token, ...(method === 'POST' ? { body: {} } : {}) });
            expect(answer.code, path).to.equal(40101);
        }
        const pair = await pairOf();
        for (const wrong of [
            pair.refresh_token,
            `${pair.access_token}x`,
            pair.access_token.slice(0, -1),
            'poa_'
        ]) {
            expect((await use(wrong)).code).to.equal(40101);
        }
        expect((await at.ask('POST', '/api/auth/refresh', { token: pair.refresh_token })).code).to.equal(
            40101
        );
        const { access_token: less } = await pairOf({ scope: 'users:read' });
        const lacking = await use(less);
        expect(lacking.code).to.equal(40300);
        expect(lacking.headers['www-authenticate']).to.equal(
            `Bearer error="insufficient_scope", scope="hosts:read", resource_metadata="${panel}/.well-known/oauth-protected-resource/things/mcp"`
        );
        expect((await use(owner)).headers['www-authenticate']).to.be.undefined();
    });

    it('ends at the next call with what it stands on: the permission, the user, the client, the grant', async () => {
        const id = await at.add('second', 'operator');
        const second = await at.tokenOf('second');
        const own = await post(
            '/api/auth/oauth/clients',
            { name: 'Own', redirectUris: [redirectUri] },
            second
        );
        const mine = { client_id: own.data.clientId as string };
        const given = async () =>
            json(await exchange(await codeOf({ ...mine, scope: 'hosts:read hosts:write' }, second), mine));
        const first = await given();
        await at.ask('PUT', `/api/users/${id}`, { token: owner, body: { role: 'viewer' } });
        expect((await use(first['access_token'] ?? '')).data).to.equal(['hosts:read']);
        await at.ask('PUT', `/api/users/${id}`, { token: owner, body: { disabled: true } });
        expect((await use(first['access_token'] ?? '')).code).to.equal(40103);
        expect(errorOf(await refresh(first['refresh_token'] ?? '', mine))).to.equal([401, 'invalid_client']);

        const pair = await pairOf();
        const [grant] = await grants();
        expect((await at.ask('DELETE', `/api/auth/tokens/${grant?.id}`, { token: owner })).code).to.equal(0);
        expect((await use(pair.access_token)).code).to.equal(40103);
        const another = await pairOf();
        await at.store.db.write((tx) => at.auth.apiTokens.forgetArea(tx, 'hosts'));
        expect((await use(another.access_token)).code).to.equal(40300);
        const last = await pairOf();
        expect(
            (await at.ask('DELETE', `/api/auth/oauth/clients/${clientId}`, { token: owner })).code
        ).to.equal(0);
        expect((await use(last.access_token)).code).to.equal(40103);
        expect(errorOf(await refresh(last.refresh_token))).to.equal([401, 'invalid_client']);
    });

    it('rotates refresh tokens: a lost answer gets the same pair for 30 s, also after a restart; an old one ends the grant', async () => {
        const first = await pairOf();
        const [one, two] = await Promise.all([refresh(first.refresh_token), refresh(first.refresh_token)]);
        expect([one.status, json(two)]).to.equal([200, json(one)]);
        at.clock.time += 29_999;
        await at.restart();
        const again = json(await refresh(first.refresh_token));
        expect(again['access_token']).to.equal(json(one)['access_token']);
        expect(String(again['expires_in'])).to.equal('3570');
        expect((await use(again['access_token'] ?? '')).status).to.equal(200);
        at.clock.time += 1;
        expect(errorOf(await refresh(first.refresh_token))).to.equal([400, 'invalid_grant']);
        expect((await use(again['access_token'] ?? '')).code).to.equal(40103);
        expect(errorOf(await refresh(again['refresh_token'] ?? ''))).to.equal([400, 'invalid_grant']);

        const pair = await pairOf();
        const second = json(await refresh(pair.refresh_token));
        const third = json(await refresh(second['refresh_token'] ?? ''));
        expect(errorOf(await refresh(pair.refresh_token)), 'its successor is spent').to.equal([
            400,
            'invalid_grant'
        ]);
        expect((await use(third['access_token'] ?? '')).code).to.equal(40103);
    });

    it('refreshes neither for another client or resource, nor to more than was granted, nor after two weeks', async () => {
        const pair = await pairOf();
        const other = await post(
            '/api/auth/oauth/clients',
            { name: 'Other', redirectUris: [redirectUri] },
            owner
        );
        expect(
            errorOf(await refresh(pair.refresh_token, { client_id: other.data.clientId as string }))[1]
        ).to.equal('invalid_grant');
        expect(
            errorOf(await refresh(pair.refresh_token, { resource: `${panel}/things/mcpother` }))[1]
        ).to.equal('invalid_target');
        expect(errorOf(await refresh(pair.refresh_token, { scope: 'hosts:read hosts:write' }))[1]).to.equal(
            'invalid_scope'
        );
        expect(errorOf(await refresh(pair.access_token))[1]).to.equal('invalid_grant');
        expect((await refresh(pair.refresh_token, { resource, scope: 'hosts:read' })).status).to.equal(200);
        const last = await pairOf();
        at.clock.time += 14 * 24 * 3600_000;
        expect(errorOf(await refresh(last.refresh_token))[1]).to.equal('invalid_grant');
        owner = await at.tokenOf('owner');
        expect(await grants()).to.equal([]);
    });

    it('reads forms as RFC 6749 says, and revokes as RFC 7009 says', async () => {
        expect(
            errorOf(await send('/api/auth/oauth/token', 'grant_type=refresh_token&grant_type=x'))
        ).to.equal([400, 'invalid_request']);
        const asJson = await post('/api/auth/oauth/token', { grant_type: 'refresh_token' });
        expect(errorOf(asJson)).to.equal([400, 'invalid_request']);
        expect((await send('/api/auth/oauth/token', 'x'.repeat(20_000))).code).to.equal(41300);
        const revoke = (fields: Record<string, string>) => send('/api/auth/oauth/revoke', fields);
        expect(errorOf(await revoke({ client_id: clientId }))).to.equal([400, 'invalid_request']);
        expect((await revoke({ token: 'por_unknown', client_id: clientId })).status).to.equal(200);
        const pair = await pairOf();
        expect(errorOf(await revoke({ token: pair.refresh_token, client_id: 'pc_other' }))).to.equal([
            400,
            'invalid_grant'
        ]);
        expect((await use(pair.access_token)).status).to.equal(200);
        expect((await revoke({ token: pair.refresh_token, client_id: clientId })).status).to.equal(200);
        expect((await use(pair.access_token)).code).to.equal(40103);
    });

    it('lets clients register themselves only where the setting allows it, so often and so many', async () => {
        const body = {
            client_name: 'Self',
            redirect_uris: [redirectUri],
            logo_uri: 'https://x.example/logo'
        };
        expect((await post('/api/auth/oauth/register', body)).code).to.equal(40400);
        at.settings['panel.oauthRegistration'] = true;
        const server = json(
            await at.ask('GET', '/.well-known/oauth-authorization-server', { headers: host })
        );
        expect(server['registration_endpoint']).to.equal(`${panel}/api/auth/oauth/register`);
        const made = await post('/api/auth/oauth/register', body);
        expect(made.status).to.equal(201);
        clientId = json(made)['client_id'] ?? '';
        await at.add('reader', 'viewer');
        expect((await pairOf({}, await at.tokenOf('reader'))).scope).to.equal('hosts:read');
        for (const [wrong, error] of [
            [{ redirect_uris: ['https://ok.example/cb', 'http://evil.example/cb'] }, 'invalid_redirect_uri'],
            [{ redirect_uris: ['javascript:alert(1)'] }, 'invalid_redirect_uri'],
            [{ redirect_uris: [] }, 'invalid_redirect_uri'],
            [{ redirect_uris: undefined }, 'invalid_redirect_uri'],
            [{ token_endpoint_auth_method: 'client_secret_basic' }, 'invalid_client_metadata'],
            [{ grant_types: ['client_credentials'] }, 'invalid_client_metadata'],
            [{ client_name: 7 }, 'invalid_client_metadata']
        ] as const) {
            expect(
                errorOf(await post('/api/auth/oauth/register', { ...body, ...wrong })),
                JSON.stringify(wrong)
            ).to.equal([400, error]);
        }
        expect(errorOf(await post('/api/auth/oauth/register', '{'))).to.equal([
            400,
            'invalid_client_metadata'
        ]);
        const listed = await at.ask('GET', '/api/auth/oauth/clients', { token: owner });
        expect(
            listed.data.map(({ selfRegistered }: { selfRegistered: boolean }) => selfRegistered).sort()
        ).to.equal([false, true]);
        let answer = made;
        for (let count = 0; answer.status !== 429 && count < 30; count += 1) {
            answer = await post('/api/auth/oauth/register', body);
        }
        expect([answer.code, Number(answer.headers['retry-after'])]).to.equal([42900, 60]);
        at.clock.time += 25 * 3600_000;
        expect((await post('/api/auth/oauth/register', body)).status).to.equal(201);
        const rows = rowsOf('auth_oauth_clients') as { id: string }[];
        expect(rows, 'those that were not used have gone').to.have.length(3);
    });

    it('shows a client to its maker alone', async () => {
        await at.add('reader', 'viewer');
        const reader = await at.tokenOf('reader');
        const path = `/api/auth/oauth/clients/${clientId}`;
        expect((await at.ask('GET', path, { token: owner })).data).to.include({
            name: 'Agent',
            redirectUris: [redirectUri]
        });
        expect((await at.ask('GET', path, { token: reader })).code).to.equal(40400);
        expect((await at.ask('DELETE', path, { token: reader })).code).to.equal(40400);
        expect((await at.ask('GET', '/api/auth/oauth/clients', { token: reader })).data).to.equal([]);
        const wrong = await post(
            '/api/auth/oauth/clients',
            { name: 'x', redirectUris: [redirectUri, 'javascript:alert(1)'] },
            owner
        );
        expect(wrong.data.errors[0].path).to.equal('redirectUris.1');
    });
});
