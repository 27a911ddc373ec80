import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { Approvals, approvalsTable, type ApprovalView, approvalView, argumentsOf } from '@portico/agents';
import { type Actor, defineErrors, definePlugin, joi, type PluginDefinition } from '@portico/sdk';
import { createTestHost, type TestHost } from '@portico/testing';

export const lab = Lab.script();
const { describe, it } = lab;

/** What a route of the plugin is asked. */
interface Fields {
    readonly [name: string]: unknown;
    readonly id: number;
    readonly hash: string;
    readonly route: string;
    readonly reason?: string;
    readonly own?: boolean;
}
/** What came of it: an approval, or a page, or a failure. */
type Answer = ApprovalView & { readonly next: string | null };

const fail = defineErrors({ TOO_MANY: { code: 42950, message: 'Too many' } });
let now = 0;

/** A plugin whose routes are the store's methods. */
function agent(): PluginDefinition {
    const table = approvalsTable('TestApproval');
    return definePlugin({
        entities: [table.entity],
        migrations: [{ name: '0001-approvals', up: table.up }],
        setup(ctx) {
            const approvals = new Approvals({
                ctx,
                table,
                minutes: () => 10,
                mostOpen: 3,
                tooMany: () => fail.TOO_MANY(),
                now: () => now
            });
            ctx.onStart(() => approvals.recover());
            const post = (
                path: string,
                handler: (actor: Actor, payload: Fields, signal: AbortSignal) => unknown
            ): void =>
                ctx.route({
                    method: 'POST',
                    path,
                    access: 'read',
                    effect: 'read',
                    validate: { payload: joi.object({}).unknown() },
                    handler: ({ actor, payload, signal }) =>
                        handler(actor, payload as unknown as Fields, signal) as Promise<object> // the schema lets everything through
                });
            post('/ask', async (actor, { route, ...given }) => {
                const info = (await ctx.api.routes({ for: actor })).find(({ id }) => id === route);
                if (info === undefined) {
                    throw new Error('no such route');
                }
                const read = argumentsOf(given);
                const plan = await ctx.api.plan(actor, { id: info.id, ...read });
                return approvalView(
                    await approvals.request(actor, { info, given: read, plan, scope: 'a', facts: { x: 1 } })
                );
            });
            post('/approve', async (actor, { id, hash, own }) =>
                approvalView(await approvals.approve(actor, id, own === true ? actor.id : null, hash))
            );
            post('/reject', async (actor, { id, reason }) =>
                approvalView(await approvals.reject(actor, id, null, reason ?? null))
            );
            post('/execute', async (actor, { id }) => ({ ...(await approvals.execute(actor, id)) }));
            post('/wait', async (_actor, { id }, signal) =>
                approvalView(await approvals.decided(id, signal))
            );
            post('/list', async (actor, { own, ...filter }) => {
                const { rows, page } = await approvals.list({
                    limit: 2,
                    ...filter,
                    ...(own === true ? { userId: actor.id } : {})
                });
                return { ids: rows.map(({ id }) => id), next: page.next, pending: await approvals.pending() };
            });
            post('/end', async () => {
                await approvals.expire({ all: true });
                return {};
            });
        }
    });
}

interface World {
    readonly host: TestHost;
    text: string;
    version: number;
    calls: number;
}

async function inWorld(work: (world: World) => Promise<void>): Promise<void> {
    now = Date.now();
    await using host = await createTestHost(agent(), {
        quiet: true,
        manifest: { capabilities: { api: { read: ['*'], write: ['*'] } } }
    });
    const world: World = { host, text: 'old', version: 1, calls: 0 };
    host.api.route({
        id: 'notes.get',
        path: '/api/notes',
        permission: 'notes:read',
        handler: () => ({ text: world.text, version: world.version })
    });
    host.api.route({
        id: 'notes.update',
        path: '/api/notes',
        method: 'PUT',
        permission: 'notes:write',
        handler: ({ payload, ifMatch }) => {
            world.calls += 1;
            if (ifMatch !== null && Number(ifMatch) !== world.version) {
                throw defineErrors({ VERSION_STALE: { code: 41200, message: 'Stale' } }).VERSION_STALE();
            }
            world.text = (payload as { text: string }).text;
            world.version += 1;
            return { text: world.text };
        }
    });
    await work(world);
}

const update = { route: 'notes.update', payload: { text: 'new', apiKey: 'hush' } };
type Who = Parameters<TestHost['as']>[0];
const admin: Who = 'admin';

const ask = async ({ host }: World, who: Who, path: string, body: object): Promise<Answer> => {
    const { code, data } = await host.as(who).post<Answer>(path, body);
    return code === 0 ? data : { ...data, code };
};

describe('Approvals', () => {
    it('lets an approved call be made once, for the version that was shown', () =>
        inWorld(async (world) => {
            const asked = await ask(world, admin, '/ask', update);
            expect(asked).to.include({
                state: 'pending',
                route: 'notes.update',
                username: 'admin',
                code: null
            });
            expect(asked.arguments).to.equal({ payload: { text: 'new', apiKey: '[secret]' } });
            expect(asked.plan.changes[0]).to.equal({ path: 'text', before: 'old', after: 'new' });
            expect((await ask(world, admin, '/ask', update)).id).to.equal(asked.id);
            expect(await ask(world, admin, '/execute', asked)).to.include({ code: 40950 });

            expect(await ask(world, admin, '/approve', asked)).to.include({
                state: 'approved',
                decidedBy: 'admin'
            });
            expect(world.calls).to.equal(0);
            const both = await Promise.all([1, 2].map(() => ask(world, admin, '/execute', asked)));
            expect(both.map(({ code }) => code).sort()).to.equal([0, 40950]);
            expect([world.text, world.calls]).to.equal(['new', 1]);
            expect(await ask(world, admin, '/execute', asked)).to.include({ code: 40950 });
            expect(await ask(world, admin, '/approve', asked)).to.include({ code: 40950 });
            expect(await ask(world, admin, '/reject', asked)).to.include({ code: 40950 });
            expect(await ask(world, admin, '/wait', asked)).to.include({ state: 'executed', code: 0 });
            const rows = await world.host.db.read((em) => em.execute('select sealed, shown from approvals'));
            expect(JSON.stringify(rows)).to.not.contain('hush');
        }));

    it('fails, and changes nothing, when the object changed after it was shown', () =>
        inWorld(async (world) => {
            const asked = await ask(world, admin, '/ask', update);
            await ask(world, admin, '/approve', asked);
            world.version = 7;
            expect(await ask(world, admin, '/execute', asked)).to.include({ code: 41200 });
            expect(world.text).to.equal('old');
            expect(await ask(world, admin, '/wait', asked)).to.include({ state: 'failed', code: 41200 });
        }));

    it('refuses another hash, an API token, and who may not make the call', () =>
        inWorld(async (world) => {
            const asked = await ask(world, admin, '/ask', update);
            const sealed = await world.host.db.read((em) => em.execute('select sealed from approvals'));
            expect(JSON.stringify(sealed)).to.not.contain('hush');
            const attempts: readonly (readonly [Who, object, number])[] = [
                [admin, { ...asked, hash: 'f'.repeat(64) }, 40951],
                [{ username: 'admin', role: 'admin', token: true }, asked, 40352],
                [{ username: 'lo', permissions: ['read', 'notes:read'] }, asked, 40300],
                ['operator', { ...asked, own: true }, 40400],
                [admin, { ...asked, id: 99 }, 40400]
            ];
            for (const [who, body, code] of attempts) {
                expect(await ask(world, who, '/approve', body), JSON.stringify(who)).to.include({ code });
            }
            expect(await ask(world, admin, '/list', {})).to.include({ pending: 1 });
        }));

    it('holds for the actor that asked: not for another user, nor another token', () =>
        inWorld(async (world) => {
            const token: Who = { username: 'admin', role: 'admin', token: true };
            const asked = await ask(world, token, '/ask', update);
            await ask(world, admin, '/approve', asked);
            expect(await ask(world, admin, '/execute', asked)).to.include({ code: 40400 });
            expect(await ask(world, { username: 'eve', role: 'admin' }, '/execute', asked)).to.include({
                code: 40400
            });
            expect(await ask(world, token, '/execute', asked)).to.include({ code: 0 });
        }));

    it('expires: while it waits, when it was approved, and with the plugin', () =>
        inWorld(async (world) => {
            const asked = await ask(world, admin, '/ask', update);
            now += 9 * 60_000;
            await ask(world, admin, '/approve', asked);
            now += 9 * 60_000; // the decision gave it ten more minutes
            expect(await ask(world, admin, '/list', { state: 'approved' })).to.include({ ids: [asked.id] });
            now += 60_000;
            expect(await ask(world, admin, '/execute', asked)).to.include({ code: 40950 });
            const later = await ask(world, admin, '/ask', update);
            expect(later.id).to.not.equal(asked.id);
            now += 10 * 60_000;
            expect(await ask(world, admin, '/approve', later)).to.include({ code: 40950 });
            const last = await ask(world, admin, '/ask', update);
            const waiting = ask(world, admin, '/wait', last);
            await ask(world, admin, '/end', {});
            expect(await waiting).to.include({ state: 'expired' });
            expect(world.calls).to.equal(0);
        }));

    it('tells those who wait, and keeps the reason of a refusal', () =>
        inWorld(async (world) => {
            const asked = await ask(world, admin, '/ask', update);
            const waiting = ask(world, admin, '/wait', asked);
            await ask(world, admin, '/reject', { ...asked, reason: 'not today' });
            expect(await waiting).to.include({ state: 'rejected', reason: 'not today', decidedBy: 'admin' });
            expect(await ask(world, admin, '/execute', asked)).to.include({ code: 40950 });
        }));

    it('has a limit of open ones for each actor, and pages', () =>
        inWorld(async (world) => {
            const payload = (n: number): object => ({ route: 'notes.update', payload: { text: String(n) } });
            for (const n of [1, 2, 3]) {
                expect(await ask(world, admin, '/ask', payload(n))).to.include({ id: n });
            }
            expect(await ask(world, admin, '/ask', payload(4))).to.include({ code: 42950 });
            expect(await ask(world, { username: 'eve', role: 'admin' }, '/ask', payload(4))).to.include({
                id: 4
            });
            const first = await ask(world, admin, '/list', {});
            expect(first).to.include({ ids: [4, 3], pending: 4 });
            expect(await ask(world, admin, '/list', { cursor: first.next })).to.include({
                ids: [2, 1],
                next: null
            });
            expect(await ask(world, admin, '/list', { own: true })).to.include({ ids: [3, 2] });
        }));

    it('never runs twice what was cut by a kill', () =>
        inWorld(async (world) => {
            const asked = await ask(world, admin, '/ask', update);
            await ask(world, admin, '/approve', asked);
            await world.host.db.write((em) => em.execute('update approvals set claimed_at = 1'));
            await world.host.restart();
            expect(await ask(world, admin, '/wait', asked)).to.include({ state: 'failed', code: 50300 });
            expect(await ask(world, admin, '/execute', asked)).to.include({ code: 40950 });
            expect(world.calls).to.equal(0);
        }));
});
