/** Mandates: what a plugin may do in a person's absence ends with the person, and is never more than the person gave. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { Answer } from '../support/panel/client.ts';
import { startPanel, type TestPanel } from '../support/panel/panel.ts';
import { createPluginFolder, type PluginFolder, pluginModule } from '../support/plugins/folder.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const limitMs = 60_000;
const body = `validate: { payload: joi.object().unknown() }`;
/** Gives, uses and misuses mandates as its client says. */
const holder = pluginModule(`
    const kept = [];
    const told = async (work) => { try { return { value: await work() }; } catch (error) { return { code: error.code, message: error.message }; } };
    const give = async ({ actor, payload: { expiresIn, ...mandate } }) =>
        ctx.mandates.give(actor, { ...mandate, ...(expiresIn === undefined ? {} : { expiresAt: new Date(Date.now() + expiresIn) }) });
    ctx.route({ method: 'POST', path: '/give', id: 'give', access: 'use', stepUp: true, ${body}, handler: give });
    ctx.route({ method: 'POST', path: '/give-quietly', access: 'use', ${body}, handler: give });
    ctx.route({ method: 'POST', path: '/use', access: 'read', effect: 'read', ${body}, handler: async ({ payload: { id, call } }) =>
        told(() => ctx.mandates.use(id, async (actor) => { kept.push(actor); return ctx.api.call(actor, call); })) });
    ctx.route({ method: 'POST', path: '/kept', access: 'read', effect: 'read', ${body}, handler: ({ payload }) => told(() => ctx.api.call(kept.at(-1), payload)) });
    ctx.route({ method: 'POST', path: '/own', access: 'read', effect: 'read', ${body}, handler: ({ actor, payload }) => told(() => ctx.api.call(actor, payload)) });
    ctx.route({ method: 'POST', path: '/end', access: 'use', ${body}, handler: async ({ payload }) => { await ctx.mandates.end(payload.id); return null; } });
    ctx.route({ method: 'POST', path: '/who', access: 'read', effect: 'read', ${body}, handler: async ({ payload }) => told(() => ctx.mandates.use(payload.id, async (actor) => ({
        kind: actor.kind, username: actor.username, tokenId: actor.tokenId, routes: (await ctx.api.routes({ for: actor })).map(({ id }) => id) }))) });
    ctx.route({ method: 'POST', path: '/elsewhere', access: 'read', effect: 'read', ${body}, handler: async ({ payload }) => told(() => ctx.mandates.use(payload.id, async (actor) => [
        await told(() => ctx.hosts.create({ domain: 'by.mandate.example', upstream: 'http://127.0.0.1:9' }, actor)),
        await told(() => ctx.tickets.issue(actor, { permission: 'read' })),
        await told(() => ctx.plugins.partner.who({}, { actor })),
        await told(() => ctx.mandates.give(actor, { title: 'more', routes: ['users.list'] })),
        await told(() => ctx.api.call({ ...actor }, { id: 'users.list' })),
        await told(() => ctx.audit({ action: 'note', resource: 'mandate', actor }))
    ])) });
    ctx.route({ method: 'POST', path: '/during', access: 'read', effect: 'read', ${body}, handler: async ({ actor, payload: { id } }) => told(() => ctx.mandates.use(id, async (giver) => {
        const before = (await ctx.api.call(giver, { id: 'users.list' })).code;
        await ctx.mandates.end(id);
        return [before, await told(() => ctx.api.call(giver, { id: 'users.list' }))];
    })) });
`);
const capabilities = { api: { read: ['*'], write: ['*'] }, hosts: 'write' };

let folder: PluginFolder;
let panel: TestPanel;

const api = '/api/plugins/holder';
const ask = (path: string, payload: unknown, token?: string): Promise<Answer> =>
    panel.client.post(`${api}${path}`, payload, token === undefined ? {} : { token });
const give = async (routes: readonly string[], more: object = {}, token?: string): Promise<number> => {
    const answer = await ask('/give', { title: 'At night', routes, ...more }, token);
    expect(answer.code, answer.text).to.equal(0);
    return answer.data.id as number;
};
const use = async (id: number, call: object = { id: 'users.list' }) => (await ask('/use', { id, call })).data;

describe('ctx.mandates', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        folder = createPluginFolder();
        folder.write(
            'partner',
            pluginModule('return { who: async (_input, { actor }) => ({ username: actor?.username }) };')
        );
        folder.write(
            'holder',
            holder.replace('definePlugin({ ', 'definePlugin({ optional: { partner: contract() }, '),
            {
                manifest: {
                    capabilities,
                    optional: { partner: '*' },
                    permissions: { use: { title: 'Use it', roles: ['operator'] } }
                }
            }
        );
        folder.write('other', holder, {
            manifest: { capabilities, permissions: { use: { title: 'Use it', roles: ['operator'] } } }
        });
        panel = await startPanel({ environment: { PORTICO_PLUGIN_DIRS: folder.path } });
        await panel.panel.settled();
    });
    after({ timeout: limitMs }, async () => {
        await panel?.close();
        folder.remove();
    });

    it('call the routes that were given, as the giver via the plugin by the mandate', async () => {
        const id = await give(['users.list', 'channels.create']);
        const { value } = await use(id);
        expect([value.status, value.data.length, value.total]).to.equal([200, 1, 1]);
        const created = await use(id, {
            id: 'channels.create',
            payload: { name: 'night', type: 'webhook', url: 'https://hooks.example/x', events: ['*'] }
        });
        const who = (await ask('/who', { id })).data.value;
        expect([who.kind, who.username, who.tokenId]).to.equal(['mandate', 'admin', id]);
        expect(who.routes.sort()).to.equal(
            who.routes.filter((each: string) => ['channels.create', 'users.list'].includes(each))
        );
        const audit = (await panel.client.get('/api/audit?limit=50')).data as readonly {
            readonly action: string;
            readonly resource: string;
            readonly resourceId: number;
            readonly actor: object;
        }[];
        expect(
            audit.find(({ resource, action }) => resource === 'mandates' && action === 'create')
        ).to.include({
            resourceId: id,
            actor: { id: 1, username: 'admin', tokenId: null, plugin: 'holder' }
        });
        expect(created.value.status, JSON.stringify(created)).to.equal(201);
        expect(
            audit.find(({ resource, action }) => /channel/.test(resource) && action === 'create')?.actor
        ).to.equal({
            id: 1,
            username: 'admin',
            tokenId: null,
            mandateId: id,
            plugin: 'holder'
        });
        expect((await panel.client.get('/api/audit/verify')).data.holds).to.be.true();
    });

    it('are listed among the tokens of the giver, and nowhere else, and end there', async () => {
        const id = await give(['users.list'], { title: 'Count users', expiresIn: 3_600_000 });
        const [mine, theirs] = await Promise.all([
            panel.client.get('/api/auth/tokens'),
            panel.tokenOf('operator').then((token) => panel.client.get('/api/auth/tokens', { token }))
        ]);
        const listed = mine.data.find((each: { id: number }) => each.id === id);
        expect(listed).to.include({ name: 'Count users', plugin: 'holder', routes: ['users.list'] });
        expect(Date.parse(listed.expiresAt)).to.be.above(Date.now());
        expect(theirs.data).to.equal([]);
        expect((await use(id)).value.code).to.equal(0);
        const stranger = await panel.tokenOf('admin');
        expect((await panel.client.delete(`/api/auth/tokens/${id}`, { token: stranger })).code).to.equal(
            40400
        );
        expect((await panel.client.delete(`/api/auth/tokens/${id}`)).code).to.equal(0);
        expect((await use(id)).code).to.equal(40103);
        expect((await panel.client.get('/api/auth/tokens')).text).not.to.contain('Count users');
    });

    it('are given by a fresh session alone, for what the giver and the plugin may', async () => {
        const { data: made } = await panel.client.post('/api/auth/tokens', {
            name: 'robot',
            permissions: ['users:read', 'holder:use', 'holder:read']
        });
        const refused = async (payload: object, token?: string, path = '/give') =>
            (await ask(path, { title: 'x', routes: ['users.list'], ...payload }, token)).code;
        expect(await refused({}, made.token as string)).to.equal(40300);
        expect(await refused({}, undefined, '/give-quietly')).to.equal(50000); // a mistake of the plugin
        const operator = await panel.tokenOf('operator');
        expect(await refused({ routes: ['users.create'] }, operator)).to.equal(40300);
        expect(await refused({ routes: ['auth.tokens.list'] })).to.equal(40400);
        // A route of its own may be named, but no route that a session alone may call.
        expect(await refused({ routes: ['holder.give'] })).to.equal(40300);
        expect(await refused({ routes: ['plugins.install'] })).to.be.above(40000);
        expect(await refused({ routes: [] })).to.equal(40001);
        expect(await refused({ routes: ['users.list', 'users.list'] })).to.equal(40001);
        expect(await refused({ title: ' ' })).to.equal(40001);
        expect(await refused({ expiresIn: -1 })).to.equal(40001);
        // By way of another plugin the session is never fresh.
        const by = await panel.client.post('/api/plugins/other/own', {
            id: 'holder.give',
            payload: { title: 'x', routes: ['users.list'] }
        });
        expect(by.data.value.code).to.equal(40301);
    });

    it('lead nowhere but to their routes', async () => {
        const id = await give(['users.list']);
        expect((await use(id, { id: 'hosts.list' })).value.code).to.equal(40300);
        expect((await use(id, { id: 'auth.me' })).value.code).to.equal(40400);
        const [host, ticket, partner, more, copy, note] = (await ask('/elsewhere', { id })).data.value;
        expect([host.code, ticket.code, partner.code, more.code, copy.code]).to.equal([
            40300, 40300, 40300, 40300, 40304
        ]);
        expect(note.code).to.be.undefined();
        expect((await panel.client.get('/api/hosts')).data).to.equal([]);
        // What was lent ends with the work; another plugin holds nothing.
        expect((await ask('/kept', { id: 'users.list' })).data.code).to.equal(40304);
        const other = await panel.client.post('/api/plugins/other/use', { id, call: { id: 'users.list' } });
        expect(other.data.code).to.equal(40103);
        await panel.client.post('/api/plugins/other/end', { id });
        expect((await use(id)).value.code).to.equal(0);
        expect((await use(999)).code).to.equal(40103);
    });

    it('are no bearer, whatever is made of their id or hash', async () => {
        await give(['users.list']);
        for (const token of ['mandate', 'ptk_mandate', `ptk_${'m'.repeat(43)}`]) {
            expect((await panel.client.get('/api/users', { token })).code).to.equal(40101);
        }
    });

    it('end at the next call: by the plugin, in the middle of its work, by time, with the giver', async () => {
        const during = await give(['users.list']);
        const [first, second] = (await ask('/during', { id: during })).data.value;
        expect([first, second.code]).to.equal([0, 40103]);
        const short = await give(['users.list'], { expiresIn: 300 });
        await new Promise((resolve) => setTimeout(resolve, 400));
        expect((await use(short)).code).to.equal(40103);
        const token = await panel.tokenOf('operator', 'olga');
        const [kept, lost] = [
            await give(['users.list'], {}, token),
            await give(['users.list', 'hosts.list'], {}, token)
        ];
        const { data: users } = await panel.client.get('/api/users?q=olga');
        const path = `/api/users/${users[0].id}`;
        // What the giver may not do, the mandate may not; the rest goes on without the giver's session.
        expect(
            (await panel.client.post('/api/users/roles', { name: 'doorkeeper', permissions: ['users:read'] }))
                .status
        ).to.equal(201);
        expect((await panel.client.put(path, { role: 'doorkeeper' })).code).to.equal(0);
        expect((await panel.client.get('/api/hosts', { token })).code).to.be.within(40100, 40399);
        expect((await use(lost, { id: 'hosts.list' })).value.code).to.equal(40300);
        expect((await use(kept)).value.code).to.equal(0);
        expect((await panel.client.put(path, { disabled: true })).code).to.equal(0);
        expect((await use(kept)).code).to.equal(40103);
        expect((await panel.client.put(path, { disabled: false })).code).to.equal(0);
        expect((await use(kept)).code).to.equal(40103);
    });

    it('last over a restart, and end when their plugin, or that of a route, is purged', async () => {
        const [id, foreign] = [await give(['users.list']), await give(['other.post.kept'])];
        await panel.restart();
        await panel.panel.settled();
        expect((await use(id)).value.code).to.equal(0);
        expect((await use(foreign, { id: 'other.post.kept', payload: {} })).value.code).to.equal(0);
        await panel.client.put('/api/plugins/holder', { grants: { api: { read: [], write: [] } } });
        expect((await use(id)).value.code).to.equal(40300);
        await panel.client.put('/api/plugins/holder', { grants: capabilities });
        expect((await use(id)).value.code).to.equal(0);
        folder.drop('other');
        await panel.restart();
        await panel.panel.settled();
        expect((await panel.client.delete('/api/plugins/other?purge=true')).code).to.equal(0);
        expect((await use(foreign)).code).to.equal(40103);
        expect((await use(id)).value.code).to.equal(0);
        folder.drop('holder');
        await panel.restart();
        await panel.panel.settled();
        expect((await panel.client.delete('/api/plugins/holder?purge=true')).code).to.equal(0);
        const left = (await panel.client.get('/api/auth/tokens')).data as readonly {
            readonly plugin: string | null;
        }[];
        expect(left.filter(({ plugin }) => plugin !== null)).to.equal([]);
    });
});
