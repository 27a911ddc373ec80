/** Changes by agents: planned, approved by a person, made once, followed, taken back. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { Client, Progress } from '@modelcontextprotocol/client';

import { Client as HttpClient } from '../../support/panel/client.ts';
import { startUpstream } from '../../support/servers/upstream.ts';
import { until } from '../../support/until.ts';
import { writeHelper } from './helper.ts';
import { base, contentOf, createRig, letPass, type McpRig, type ToolData, writeRows } from './rig.ts';

export const lab = Lab.script();
const { after, afterEach, before, describe, it } = lab;

const limitMs = 60_000;
const modes = ['auto', 'legacy'] as const;
const permissions = [
    'hosts:read',
    'hosts:write',
    'engine:read',
    'engine:control',
    'helper:read',
    'helper:write'
];

let rig: McpRig;
let helper: ReturnType<typeof writeHelper>;

const call = async (
    client: Client,
    name: string,
    args: object = {},
    onprogress?: (progress: Progress) => void
): Promise<ToolData> =>
    contentOf(
        await client.callTool(
            { name, arguments: { ...args } },
            { timeout: 30_000, ...(onprogress === undefined ? {} : { onprogress }) }
        )
    );
const admin = () => rig.panel.client;
const pending = async (): Promise<ToolData[]> => (await admin().get(`${base}/approvals?state=pending`)).data;
const decide = (
    approval: ToolData,
    what = 'approve',
    body: object = { hash: approval.hash },
    token?: string
) => admin().post(`${base}/approvals/${approval.id}/${what}`, body, token === undefined ? {} : { token });
const note = (text: string): object => ({ payload: { text, password: 'hush-hush' } });
const done = async (): Promise<string[]> => (await admin().get('/api/plugins/helper/done')).data.done;

describe('mcpserver: changes', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        helper = writeHelper();
        rig = await createRig({ more: [helper.path] });
        await until(async () => (await admin().get('/api/plugins/helper')).data.state === 'running');
        await rig.set({ mode: 'write' });
    });
    afterEach(async () => {
        // One test that fails must not spoil the next.
        for (const each of await pending().catch(() => [])) {
            await decide(each, 'reject', {});
        }
        await rig.set({ mode: 'write', approval: 'panel', approvalWaitSeconds: 30 });
    });
    after({ timeout: limitMs }, async () => {
        await rig?.close();
        helper.remove();
    });

    for (const mode of modes) {
        it(`a host that does not serve is found, mended after an approval, and taken back by its revision (${mode})`, async () => {
            const origin = await startUpstream('it serves');
            const domain = `${mode}.example`;
            const serves = async (): Promise<number> =>
                (await new HttpClient(rig.panel.httpPort).call('GET', '/', { headers: { host: domain } }))
                    .status;
            const { data: host } = await admin().post('/api/hosts', {
                type: 'proxy',
                domain,
                upstream: 'http://127.0.0.1:9'
            });
            const client = await rig.connect(await rig.token(permissions), mode);

            // It finds out why.
            const { data: hosts } = await call(client, 'hosts__list', { query: { q: domain } });
            expect(hosts[0]).to.include({ domain, state: 'applied' });
            const { data: check } = await call(client, 'hosts__check', { params: { id: host.id } });
            expect(check.find(({ id }: { id: string }) => id === 'upstream')).to.include({
                ok: false,
                evidence: 'http://127.0.0.1:9: the connection is refused'
            });

            // It proposes the change, and waits.
            const args = { params: { id: host.id }, payload: { upstream: `http://${origin.address}` } };
            const { data: plan } = await call(client, 'portico__plan', {
                tool: 'hosts__update',
                arguments: args
            });
            expect(plan).to.include({
                method: 'PUT',
                path: `/api/hosts/${host.id}`,
                etag: String(host.version)
            });
            const seen: Progress[] = [];
            const waiting = call(client, 'hosts__update', args, (progress) => seen.push(progress));
            const [asked] = await until(async () => {
                const found = await pending();
                return found.length === 1 ? found : null;
            });
            expect(asked).to.include({
                tool: 'hosts__update',
                route: 'hosts.update',
                username: 'admin',
                client: 'test agent'
            });
            expect(asked.plan.changes.map(({ path }: { path: string }) => path)).to.include('upstream');
            expect(await serves()).to.be.above(499);

            // A person approves it in the panel; the call that waits makes it.
            expect(await decide(asked)).to.include({ code: 0 });
            const made = await waiting;
            expect(made).to.include({ status: 200, code: 0 });
            expect(made.approval).to.include({ state: 'executed', decidedBy: 'admin' });
            expect(seen[0]?.message).to.match(/^Waits for the approval/);
            await until(async () => (await serves()) === 200);
            const { data: audit } = await admin().get('/api/audit?resource=hosts&action=update&limit=1');
            expect(audit[0].actor).to.include({
                username: 'admin',
                plugin: 'mcpserver',
                tokenId: asked.tokenId
            });

            // It is taken back by the revision before it, which waits for a person, too.
            const { data: revisions } = await call(client, 'proxyengine__revisions', { query: { limit: 2 } });
            const restoring = call(client, 'proxyengine__restore', { params: { n: revisions[1].number } });
            const [back] = await until(async () => {
                const found = await pending();
                return found.length === 1 ? found : null;
            });
            expect(await decide(back)).to.include({ code: 0 });
            expect(await restoring).to.include({ code: 0 });
            expect((await admin().get(`/api/hosts/${host.id}`)).data.upstream).to.equal('http://127.0.0.1:9');
            await until(async () => (await serves()) >= 500);
            await origin.close();
        });

        it(`an approval is used once, and holds for its arguments and its token alone (${mode})`, async () => {
            await rig.set({ approvalWaitSeconds: 0 });
            const token = await rig.token(permissions);
            const client = await rig.connect(token, mode);
            const first = await call(client, 'helper__note', note(`${mode} 1`));
            expect(first).to.include({ status: 428, code: 42850 });
            expect(first.approval).to.include({ state: 'pending' });
            expect(first.approval.arguments.payload).to.equal({ text: `${mode} 1`, password: '[secret]' });
            expect((await call(client, 'helper__note', note(`${mode} 1`))).approval.id).to.equal(
                first.approval.id
            );
            expect(await decide(first.approval)).to.include({ code: 0 });

            const altered = await call(client, 'helper__note', note(`${mode} 2`));
            expect(altered.code).to.equal(42850);
            expect(altered.approval.id).to.not.equal(first.approval.id);
            const other = await rig.connect(await rig.token(permissions), mode);
            const theirs = await call(other, 'helper__note', note(`${mode} 1`));
            expect(theirs.code).to.equal(42850);
            expect(theirs.approval.id).to.not.equal(first.approval.id);
            expect(await done()).to.not.include([`${mode} 1`, `${mode} 2`]);

            const both = await Promise.all([1, 2].map(() => call(client, 'helper__note', note(`${mode} 1`))));
            expect(both.filter(({ code }) => code === 0)).to.have.length(1);
            expect((await done()).filter((text) => text === `${mode} 1`)).to.have.length(1);
            const again = await call(client, 'helper__note', note(`${mode} 1`));
            expect(again.code).to.equal(42850);
            expect(again.approval.id).to.not.equal(first.approval.id);
        });

        it(`an approval that was given holds for its time alone (${mode})`, async () => {
            await rig.set({ approvalWaitSeconds: 0 });
            const client = await rig.connect(await rig.token(permissions), mode);
            const { approval: waited } = await call(client, 'helper__note', note(`${mode} undecided`));
            const { approval: given } = await call(client, 'helper__note', note(`${mode} given`));
            expect(await decide(given)).to.include({ code: 0 });
            [waited, given].forEach(({ id }) => letPass(rig.panel.config.dataDir, id));
            expect(await decide(waited)).to.include({ code: 40950 });
            const again = await call(client, 'helper__note', note(`${mode} given`));
            expect(again.code).to.equal(42850);
            expect(again.approval.id).to.not.equal(given.id);
            for (const { id } of [waited, given]) {
                expect((await admin().get(`${base}/approvals/${id}`)).data.state).to.equal('expired');
            }
            expect(await done()).to.not.include([`${mode} undecided`, `${mode} given`]);
        });

        it(`the client's own question decides where the setting says so, the panel where the client cannot ask (${mode})`, async () => {
            await rig.set({ approval: 'client', approvalWaitSeconds: 0 });
            const questions: string[] = [];
            let word: 'accept' | 'decline' = 'decline';
            const client = await rig.connect(await rig.token(permissions), mode, {
                answer: (question) => {
                    questions.push(question);
                    return word;
                }
            });
            expect(await call(client, 'helper__note', note(`${mode} no`))).to.include({ code: 40950 });
            word = 'accept';
            expect(await call(client, 'helper__note', note(`${mode} yes`))).to.include({ code: 0 });
            expect(questions[0]).to.contain('POST /api/plugins/helper/note').and.to.not.contain('hush-hush');
            expect(await done())
                .to.include(`${mode} yes`)
                .and.to.not.include(`${mode} no`);
            const mute = await rig.connect(await rig.token(permissions), mode);
            const asked = await call(mute, 'helper__note', note(`${mode} mute`));
            expect(asked).to.include({ code: 42850 });
            await decide(asked.approval, 'reject', {});
        });

        it(`long work is followed to its result, and cancelled with its call (${mode})`, async () => {
            await rig.set({ approval: 'none' });
            const client = await rig.connect(await rig.token(permissions), mode);
            const seen: Progress[] = [];
            for (const name of ['helper__work', 'helper__measure']) {
                seen.length = 0;
                const answer = await call(client, name, { payload: { steps: 4 } }, (progress) =>
                    seen.push(progress)
                );
                expect(answer, name).to.include({ status: 200, code: 0, data: { steps: 4 } });
                expect(seen.map(({ message }) => message)).to.include('step 3');
                const numbers = seen.map(({ progress }) => progress);
                expect(numbers).to.equal([...numbers].sort((one, two) => one - two));
            }

            const stop = new AbortController();
            const cut = client.callTool(
                { name: 'helper__work', arguments: { payload: { steps: 10_000 } } },
                { signal: stop.signal }
            );
            const running = (): Promise<ToolData | null> =>
                admin()
                    .get('/api/tasks?state=running')
                    .then(({ data }) => data.find((each: ToolData) => each.kind === 'helper.work') ?? null);
            const task = await until(running);
            stop.abort();
            await expect(cut).to.reject();
            await until(async () => (await admin().get(`/api/tasks/${task.id}`)).data.state === 'cancelled');
        });
    }

    it('is approved by a person who is logged in, for the call that was shown', async () => {
        await rig.set({ approvalWaitSeconds: 0 });
        const token = await rig.token(permissions);
        const client = await rig.connect(token, 'auto');
        const { approval } = await call(client, 'helper__note', note('guarded'));
        const operator = await rig.panel.tokenOf('operator');
        const viewer = await rig.panel.tokenOf('viewer');
        expect(await decide(approval, 'approve', { hash: approval.hash }, token)).to.include({ code: 40352 });
        expect(await decide(approval, 'approve', { hash: 'a'.repeat(64) })).to.include({ code: 40951 });
        expect(await decide(approval, 'approve', {})).to.include({ code: 40001 });
        for (const other of [operator, viewer]) {
            expect((await decide(approval, 'approve', { hash: approval.hash }, other)).code).to.be.above(
                40299
            );
            expect((await admin().get(`${base}/approvals/${approval.id}`, { token: other })).code).to.equal(
                40400
            );
            expect((await admin().get(`${base}/approvals`, { token: other })).data).to.equal([]);
        }
        expect(
            (
                await call(client, 'mcpserver__approve', { params: { id: approval.id } }).catch(() => ({
                    code: -32602
                }))
            ).code
        ).to.equal(-32602);
        expect(await decide(approval, 'reject', { reason: 'not today' })).to.include({ code: 0 });
        expect(await decide(approval)).to.include({ code: 40950 });
        expect((await admin().get(`${base}/approvals/${approval.id}`)).data).to.include({
            state: 'rejected',
            reason: 'not today'
        });
        const waiting = call(client, 'helper__note', note('refused while it waits'));
        await waiting;
        await rig.set({ approvalWaitSeconds: 30 });
        const held = call(client, 'helper__note', note('refused while it waits'));
        const [asked] = await until(async () => ((await pending()).length === 1 ? pending() : null));
        await decide(asked, 'reject', {});
        expect(await held).to.include({ code: 40950 });
        expect(await done()).to.not.include(['guarded', 'refused while it waits']);
    });

    it('is not made for another version of the object than the one that was shown', async () => {
        await rig.set({ approvalWaitSeconds: 0 });
        const { data: host } = await admin().post('/api/hosts', {
            type: 'redirect',
            domain: 'stale.example',
            redirect: { to: 'https://example.com' }
        });
        const client = await rig.connect(await rig.token(permissions), 'auto');
        const args = { params: { id: host.id }, payload: { notes: 'by an agent' } };
        const { approval } = await call(client, 'hosts__update', args);
        await decide(approval);
        await admin().put(`/api/hosts/${host.id}`, { notes: 'by a person' });
        expect(await call(client, 'hosts__update', args)).to.include({ code: 41200 });
        expect((await admin().get(`/api/hosts/${host.id}`)).data.notes).to.equal('by a person');
        expect((await admin().get(`${base}/approvals/${approval.id}`)).data).to.include({
            state: 'failed',
            code: 41200
        });
    });

    it('is one of a hundred at most that are open for an actor', async () => {
        await rig.set({ approvalWaitSeconds: 0 });
        const { dataDir } = rig.panel.config;
        const client = await rig.connect(await rig.token(permissions), 'auto');
        const { approval } = await call(client, 'helper__note', note('first'));
        const columns =
            'state, scope, facts, route, effect, dangerous, sealed, shown, etag, plan, user_id, actor_key, username, token_id, created_at, expires_at';
        writeRows(
            dataDir,
            `insert into approvals (hash, ${columns}) with recursive n(x) as (select 1 union all select x + 1 from n where x < 98)
             select hash || x, ${columns} from n, approvals where approvals.id = ?`,
            approval.id
        );
        expect((await call(client, 'helper__note', note('the hundredth'))).code).to.equal(42850);
        expect((await admin().get(`${base}/status`)).data.pendingApprovals).to.equal(100);
        const refused = await call(client, 'helper__note', note('one too many'));
        expect([refused.code, refused.message]).to.equal([42950, 'Too many approvals are open']);
        const seen: number[] = [];
        for (let next = `${base}/approvals?state=pending&limit=30`; next !== '';) {
            const page = await admin().get(next);
            seen.push(...page.data.map(({ id }: ToolData) => id));
            next = /<([^>]+)>; rel="next"/.exec(String(page.headers['link']))?.[1] ?? '';
        }
        expect(seen).to.have.length(100);
        expect(seen).to.equal([...new Set(seen)].sort((one, two) => two - one));
        expect((await admin().get(`${base}/approvals?cursor=none`)).code).to.equal(40001);
        const other = await rig.connect(await rig.token(permissions), 'auto');
        expect((await call(other, 'helper__note', note('of another token'))).code).to.equal(42850);
        letPass(dataDir);
        expect((await call(client, 'helper__note', note('again'))).code).to.equal(42850);
    });

    it('is answered at once where it would fail anyway', async () => {
        const client = await rig.connect(await rig.token(permissions), 'auto');
        const answer = await call(client, 'hosts__create', {
            payload: { type: 'proxy', domain: 'no upstream' }
        });
        expect(answer.code).to.equal(40001);
        expect(await pending()).to.equal([]);
    });

    it('expires with the plugin, whose sessions and calls end', async () => {
        await rig.set({ approvalWaitSeconds: 0 });
        const agent = await rig.token(permissions);
        const client = await rig.connect(agent, 'legacy');
        const { approval } = await call(client, 'helper__note', note('too late'));
        expect((await admin().get(`${base}/status`)).data).to.include({ pendingApprovals: 1 });
        const under = call(await rig.connect(agent, 'auto'), 'helper__wait').then(
            ({ code }) => code as number,
            () => 'cut'
        );
        await until(async () => (await done()).includes('wait'), 'the call');
        const begun = performance.now();
        expect(await admin().put('/api/plugins/mcpserver', { enabled: false })).to.include({ code: 0 });
        expect(performance.now() - begun).to.be.below(25_000); // a call that is waited for is cut after 30 s
        expect([50300, 'cut']).to.include(await under);
        expect(await admin().put('/api/plugins/mcpserver', { enabled: true })).to.include({ code: 0 });
        await until(async () => (await admin().get(`${base}/status`)).code === 0);
        expect((await admin().get(`${base}/status`)).data).to.include({ pendingApprovals: 0, sessions: 0 });
        expect((await admin().get(`${base}/approvals/${approval.id}`)).data).to.include({ state: 'expired' });
        await expect(client.listTools()).to.reject();
    });
});
