/** Plans of the panel's own routes: what a plan says is what the call then does, and the plan itself leaves nothing behind. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { createPluginFolder, type PluginFolder, pluginModule } from '../../support/plugins/folder.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const limitMs = 60_000;
const planner = pluginModule(`
    const any = { payload: joi.object().unknown() };
    for (const member of ['plan', 'call']) {
        ctx.route({ method: 'POST', path: '/' + member, access: 'read', effect: 'read', validate: any, handler: ({ actor, payload }) => ctx.api[member](actor, payload) });
    }
`);
const lists = [
    '/api/users',
    '/api/users/roles',
    '/api/settings/channels',
    '/api/dns-providers',
    '/api/hosts',
    '/api/auth/sessions'
];

let folder: PluginFolder;
let panel: TestPanel;

const ask = async (member: 'plan' | 'call', call: object, token?: string) =>
    (await panel.client.post(`/api/plugins/planner/${member}`, call, token === undefined ? {} : { token }))
        .data;

/** Everything that a plan must leave alone, and the length of the audit log. */
async function everything(): Promise<string> {
    const answers = await Promise.all([...lists, '/api/audit?limit=1'].map((path) => panel.client.get(path)));
    return JSON.stringify(answers.map(({ data }) => data)).replace(/"lastSeenAt":"[^"]*"/g, '');
}

describe('ctx.api.plan', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        folder = createPluginFolder();
        folder.write('planner', planner, {
            manifest: { capabilities: { api: { read: ['*'], write: ['*'] } } }
        });
        panel = await startPanel({ environment: { PORTICO_PLUGIN_DIRS: folder.path } });
        await panel.panel.settled();
    });
    after({ timeout: limitMs }, async () => {
        await panel?.close();
        folder.remove();
    });

    it('is what the call then does, for creations, updates and removals, and changes nothing', async () => {
        const channel = { name: 'night', type: 'webhook', url: 'https://hooks.example/x', events: ['*'] };
        const provider = {
            name: 'zone',
            type: 'rfc2136',
            credentials: {
                nameserver: '127.0.0.1:53',
                keyName: 'k',
                keySecret: 'c2VjcmV0LW9mLXRlc3Q=',
                algorithm: 'hmac-sha256'
            }
        };
        const calls: readonly Readonly<Record<string, unknown>>[] = [
            { id: 'channels.create', payload: channel },
            { id: 'channels.update', params: { id: 1 }, payload: { name: 'day' } },
            { id: 'dnsProviders.create', payload: provider },
            { id: 'dnsProviders.update', params: { id: 1 }, payload: { name: 'other zone' } },
            { id: 'dnsProviders.remove', params: { id: 1 } },
            { id: 'channels.remove', params: { id: 1 } }
        ];
        for (const call of calls) {
            const state = await everything();
            const plan = await ask('plan', call);
            expect(await everything(), String(call['id'])).to.equal(state);
            expect(plan.validated, JSON.stringify(plan)).to.equal({ code: 0, message: 'ok' });
            expect(JSON.stringify(plan)).not.to.match(/c2VjcmV0|whsec_|hooks\.example\/x/);
            const { code, data, message } = await ask(
                'call',
                plan.etag === null ? call : { ...call, ifMatch: plan.etag }
            );
            expect(code, message).to.equal(0);
            const bare = (value: unknown): unknown => {
                const {
                    createdAt: _c,
                    updatedAt: _u,
                    secret: _s,
                    url: _url,
                    ...rest
                } = (value ?? {}) as Record<string, unknown>;
                return rest;
            };
            expect({ ...(bare(data) as object), ...(bare(plan.after) as object) }).to.equal(
                bare(data) as object
            );
            if (plan.undo?.payload !== undefined) {
                expect((await ask('call', plan.undo)).code).to.equal(0);
            }
        }
    });

    it('is refused as the call would be: by a rule of the domain, a version, a permission, a session that is not fresh', async () => {
        await panel.client.post('/api/settings/channels', {
            name: 'a',
            type: 'webhook',
            url: 'https://hooks.example/x',
            events: ['*']
        });
        const { data: made } = await panel.client.post('/api/users', {
            username: 'ann',
            password: 'walks along the quay',
            role: 'viewer'
        });
        const operator = await panel.tokenOf('operator');
        const calls: readonly (readonly [call: Readonly<Record<string, unknown>>, token?: string])[] = [
            [{ id: 'users.remove', params: { id: 1 } }],
            [{ id: 'users.remove', params: { id: 999 } }],
            [{ id: 'users.update', params: { id: made.id }, payload: { username: 'ADMIN' } }],
            [{ id: 'users.update', params: { id: made.id }, payload: { disabled: true }, ifMatch: '77' }],
            [
                {
                    id: 'users.create',
                    payload: { username: 'x', password: 'walks along the quay', role: 'viewer' }
                }
            ],
            [{ id: 'users.update', params: { id: made.id }, payload: { disabled: true } }, operator],
            [{ id: 'users.update', params: { id: made.id }, payload: { colour: 'red' } }],
            [{ id: 'channels.remove', params: { id: 999 } }],
            [{ id: 'roles.create', payload: { name: 'r', permissions: ['hosts:read'] } }]
        ];
        for (const [call, token] of calls) {
            const state = await everything();
            const { validated } = await ask('plan', call, token);
            expect(await everything(), JSON.stringify(call)).to.equal(state);
            const { code, message } = await ask('call', call, token);
            expect([validated.code, validated.message], JSON.stringify(call)).to.equal([code, message]);
            expect(code as number).to.be.above(40000);
        }
    });

    it('of an account that it would disable ends nothing: sessions and tokens go on', async () => {
        const token = await panel.tokenOf('operator', 'olga');
        const { data: users } = await panel.client.get('/api/users?q=olga');
        const { validated, changes } = await ask('plan', {
            id: 'users.update',
            params: { id: users[0].id },
            payload: { disabled: true }
        });
        expect(validated.code).to.equal(0);
        expect(changes.map(({ path }: { path: string }) => path)).to.include('disabled');
        expect((await panel.client.get('/api/auth/me', { token })).code).to.equal(0);
    });

    it('of a host asks the route that tries it', async () => {
        const payload = { domain: 'planned.example', upstream: 'http://127.0.0.1:9' };
        const fine = await ask('plan', { id: 'hosts.create', payload });
        expect([fine.validated, fine.after.domain, fine.undo.id]).to.equal([
            { code: 0, message: 'ok' },
            'planned.example',
            'hosts.remove'
        ]);
        expect((await panel.client.post('/api/hosts', payload)).status).to.equal(201);
        expect((await ask('plan', { id: 'hosts.create', payload })).validated.code).to.equal(40900);
        expect((await panel.client.get('/api/hosts')).data.length).to.equal(1);
    });
});
