import { createHmac, createPublicKey, randomUUID, verify } from 'node:crypto';
import { appendFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { ended } from '../../../support/plugins/panel.ts';
import { openSshd } from '../../../support/servers/storage/sshd.ts';
import { itUnless } from '../../../support/skip.ts';
import { base, type Deployment, DeployRig, server, withoutSandbox } from '../support/rig.ts';
import { pushOf, signed } from './deliveries.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(withoutSandbox, it);

const limitMs = 120_000;
const nothing = '0'.repeat(40);
let rig: DeployRig;
let project: number;
let hook: { readonly url: string; readonly secret: string };

interface Sent {
    readonly status: number;
    readonly code: number;
    readonly data: { readonly deployment?: Deployment; readonly ignored?: string };
}

/** Sends a delivery as a git server does. */
async function send(body: string, headers: Readonly<Record<string, string>>, url = hook.url): Promise<Sent> {
    const answer = await fetch(`http://127.0.0.1:${rig.panel.port}${url}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body
    });
    return { status: answer.status, ...((await answer.json()) as Omit<Sent, 'status'>) };
}

const hex = (body: string, secret = hook.secret): string =>
    createHmac('sha256', secret).update(body).digest('hex');
const push = (commit: string, more: object = {}): string =>
    JSON.stringify({
        ref: 'refs/heads/main',
        after: commit,
        head_commit: { message: 'Change' },
        commits: [],
        ...more
    });
const github = (body: string, more: object = {}) => ({
    'x-github-event': 'push',
    'x-github-delivery': randomUUID(),
    'x-hub-signature-256': `sha256=${hex(body)}`,
    ...more
});

describe('Pushes', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (withoutSandbox !== undefined) {
            return;
        }
        rig = await DeployRig.start();
        rig.git.create('pushed', { 'index.html': 'one' });
        project = await rig.project({
            name: 'pushed',
            source: { url: rig.git.url('pushed') },
            host: { domain: 'pushed.test' },
            triggers: { tags: ['v*'], paths: ['site/**', 'index.html'] }
        });
        const made = await rig.post(`/projects/${project}/hook`);
        hook = made.data as typeof hook;
        expect(made.status).to.equal(201);
    });

    after({ timeout: limitMs }, async () => {
        await rig?.close();
    });

    real('are deployed once, signed in each of the forms', async () => {
        const senders = ['github', 'gitea', 'gitlab'] as const;
        for (const [at, sender] of senders.entries()) {
            const commit = rig.git.commit('pushed', { 'index.html': `push ${at}` });
            const [event, body] = pushOf(sender, { commit, files: ['index.html'] });
            const headers = signed(sender, event, body, hook.secret);
            const taken = await send(body, headers);
            expect([taken.status, taken.data.deployment?.trigger]).to.equal([202, 'push']);
            expect((await rig.over(taken.data.deployment?.id ?? 0)).state).to.equal('live');
            expect((await rig.page('pushed.test')).text).to.equal(`push ${at}`);
            expect(await send(body, headers)).to.include({ status: 200, data: { ignored: 'duplicate' } });
            expect((await send(body, { ...headers, 'x-github-delivery': 'other' })).data).to.equal({
                ignored: 'duplicate'
            });
        }
    });

    real('are ignored by event, branch, files and message', async () => {
        const commit = 'a'.repeat(40);
        const ignored = async (body: string, more: object = {}) =>
            (await send(body, github(body, more))).data.ignored;
        expect(await ignored(push(commit), { 'x-github-event': 'ping' })).to.equal('event');
        expect(await ignored(push(nothing))).to.equal('event');
        expect(await ignored('no json')).to.equal('event');
        expect(await ignored(push(commit, { ref: 'refs/heads/other' }))).to.equal('branch');
        expect(await ignored(push(commit, { ref: 'refs/heads/--upload-pack=id' }))).to.equal('event');
        expect(await ignored(push(commit, { ref: 'refs/tags/x1' }))).to.equal('branch');
        expect(await ignored(push(commit, { commits: [{ modified: ['docs/a.md'] }] }))).to.equal('path');
        expect(await ignored(push(commit, { head_commit: { message: 'Typo [skip ci]' } }))).to.equal('skip');
        await rig.put(`/projects/${project}`, { triggers: { auto: false } });
        expect(await ignored(push(commit))).to.equal('disabled');
        await rig.put(`/projects/${project}`, { triggers: {} });
    });

    real(
        'are refused alike without a signature, with a wrong one, an old one, and for an unknown key',
        async () => {
            const body = push('b'.repeat(40));
            const old = String(Math.floor(Date.now() / 1_000) - 600);
            const key = Buffer.from(hook.secret.slice('whsec_'.length), 'base64');
            const mac = createHmac('sha256', key).update(`1.${old}.${body}`).digest('base64');
            const stale = { 'webhook-id': '1', 'webhook-timestamp': old, 'webhook-signature': `v1,${mac}` };
            const refused = [
                await send(body, { 'x-github-event': 'push' }),
                await send(body, github(body, { 'x-hub-signature-256': `sha256=${hex(body, 'other')}` })),
                await send(body, github(body, { 'x-hub-signature-256': 'sha256=' })),
                await send(`${body} `, github(body)),
                await send(body, stale),
                await send(body, { 'x-gitlab-event': 'Push Hook', 'x-gitlab-token': hook.secret }),
                await send(body, github(body), `${base}/hooks/unknown`)
            ];
            expect(refused.map(({ status, code }) => [status, code])).to.equal(
                refused.map(() => [401, 40150])
            );
            await rig.put(`/projects/${project}`, { triggers: { plainToken: true } });
            const plain = await send(push('c'.repeat(40), { ref: 'refs/heads/x' }), {
                'x-gitlab-event': 'Push Hook',
                'x-gitlab-token': hook.secret
            });
            expect(plain.data).to.equal({ ignored: 'branch' });
            expect((await rig.delete(`/projects/${project}/hook`)).status).to.equal(200);
            expect((await send(body, github(body))).code).to.equal(40150);
        }
    );
});

describe('Variables and connections', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (withoutSandbox === undefined) {
            rig = await DeployRig.start();
        }
    });

    after({ timeout: limitMs }, async () => {
        await rig?.close();
    });

    real('reach builds, are masked in logs, and are in no command line, answer or audit', async () => {
        rig.git.create('vars', { 'index.html': 'x' });
        const group = await rig.post('/env-groups', {
            name: 'shared',
            vars: [
                { name: 'FROM_GROUP', value: 'group' },
                { name: 'BOTH', value: 'group' }
            ]
        });
        const id = await rig.project({
            name: 'vars',
            source: { url: rig.git.url('vars') },
            envGroups: [group.data.id],
            build: {
                kind: 'static',
                commands: [
                    [
                        'sh',
                        '-c',
                        'echo "$SECRET $FROM_GROUP $BOTH $RUN_ONLY."; env > env.txt; cat /proc/1/cmdline /proc/self/cmdline | tr "\\\\0" " " > lines.txt; id -u; ls /proc | grep -c "^[0-9]"; ls /root /home /work /etc/shadow 2>&1; echo $NODE_OPTIONS'
                    ]
                ]
            }
        });
        const secret = 'a very secret value';
        const vars = [
            { name: 'SECRET', value: secret, secret: true },
            { name: 'BOTH', value: 'own' },
            { name: 'RUN_ONLY', value: 'run', build: false }
        ];
        const set = await rig.put(`/projects/${id}/env`, { vars });
        expect(set.data.vars[0]).to.include({ name: 'SECRET', value: null, set: true });
        expect(set.text).to.not.contain(secret);
        const kept = await rig.put(`/projects/${id}/env`, {
            vars: [{ name: 'SECRET', secret: true }, ...vars.slice(1)]
        });
        expect(kept.status).to.equal(200);
        for (const name of ['PATH', 'LD_PRELOAD', 'NODE_OPTIONS', 'PORTICO_X', 'PORT', 'a b']) {
            expect((await rig.put(`/projects/${id}/env`, { vars: [{ name, value: 'x' }] })).code).to.equal(
                40001
            );
        }
        const deployment = await rig.serve(id);
        const log = await rig.log(deployment.id);
        expect(log).to.contain('******** group own .');
        expect(log).to.not.contain(secret);
        expect(log).to.match(
            /cannot access '\/root'[\s\S]*cannot access '\/home'[\s\S]*cannot access '\/etc\/shadow'/
        );
        const tar = (await rig.get(`/deployments/${deployment.id}/artifact`)).text;
        expect(tar).to.contain(`SECRET=${secret}`);
        expect(tar.replace(/PORTICO_CHILD=\S+/, '')).to.not.match(/PORTICO_|JWT/);
        const lines = /lines\.txt[\s\S]*?(--unshare[\s\S]*?)\0/.exec(tar)?.[1];
        expect(lines).to.contain('--die-with-parent').and.to.not.contain(secret);
        const audit = await rig.client.get('/api/audit?limit=200');
        expect(audit.text).to.not.contain(secret);
        expect(rig.panel.lines.join('\n')).to.not.contain(secret);
        const other = await rig.project({ name: 'other', source: { url: rig.git.url('vars') } });
        const cloned = await rig.post(`/projects/${other}/env/clone`, { from: id });
        expect([cloned.status, cloned.text.includes(secret)]).to.equal([200, false]);
        expect((await rig.delete(`/env-groups/${group.data.id}`)).code).to.equal(40901);

        const { data: envelope } = await rig.get(`/deployments/${deployment.id}/provenance`);
        const { data: key } = await rig.get('/provenance-key');
        const payload = Buffer.from(envelope.payload as string, 'base64');
        const signed = Buffer.concat([
            Buffer.from(`DSSEv1 ${envelope.payloadType.length} ${envelope.payloadType} ${payload.length} `),
            payload
        ]);
        const signature = Buffer.from(envelope.signatures[0].sig as string, 'base64');
        expect(verify(null, signed, createPublicKey(key.publicKey as string), signature)).to.be.true();
        const statement = JSON.parse(payload.toString());
        expect(statement.subject[0].digest.sha256).to.equal(deployment.artifact?.sha256);
        expect(statement.predicate.buildDefinition.resolvedDependencies[0].digest.gitCommit).to.equal(
            deployment.commit
        );
    });

    real('open a repository by a token, which goes to no other host and is in no log', async () => {
        rig.git.create('closed', { 'index.html': 'closed' });
        rig.git.create('elsewhere', { 'index.html': 'elsewhere' });
        const token = 'token-of-ada-4711';
        rig.git.passwords.set('closed', `ada:${token}`);
        const host = `127.0.0.1:${rig.git.port}`;
        const made = await rig.post('/connections', {
            name: 'forge',
            kind: 'token',
            host,
            username: 'ada',
            token
        });
        expect([made.status, made.data.token]).to.equal([201, { set: true }]);
        expect(made.text).to.not.contain(token);
        const source = { url: rig.git.url('closed') };
        const id = await rig.project({ name: 'closed', source });
        expect((await rig.deploy(id)).reason).to.equal('FETCH_FAILED');
        await rig.put(`/projects/${id}`, { source: { ...source, connection: made.data.id } });
        const deployment = await rig.serve(id);
        expect(await rig.log(deployment.id)).to.not.contain(token);
        const elsewhere = { url: `http://localhost:${rig.git.port}/elsewhere.git`, connection: made.data.id };
        expect((await rig.put(`/projects/${id}`, { source: elsewhere })).code).to.equal(40001);
        expect(
            (await rig.post(`/connections/${made.data.id}/test`, { url: source.url })).data.ok
        ).to.be.true();
        const moved = await rig.put(`/connections/${made.data.id}`, { host: 'other.example' });
        expect(moved.code).to.equal(40001); // the token was given for the other host
        expect((await rig.delete(`/connections/${made.data.id}`)).code).to.equal(40901);
        // A server that redirects elsewhere is not followed.
        rig.git.intercept = (request, response) => {
            if (request.url?.startsWith('/elsewhere.git') === true) {
                response
                    .writeHead(302, {
                        location: `${source.url}${request.url.slice('/elsewhere.git'.length)}`
                    })
                    .end();
                return true;
            }
            return false;
        };
        const redirected = await rig.project({
            name: 'redirected',
            source: { url: rig.git.url('elsewhere') }
        });
        expect((await rig.deploy(redirected)).reason).to.equal('FETCH_FAILED');
    });

    real(
        'open a repository over ssh by a key that was made, and trust no other host key from then on',
        async () => {
            const folder = join(rig.top, 'ssh');
            mkdirSync(folder);
            const sshd = await openSshd(folder);
            try {
                const commit = rig.git.create('keyed', {
                    'package.json': '{"scripts":{"start":"node x.js"}}',
                    'x.js': server('keyed')
                });
                const url = `ssh://root@127.0.0.1:${sshd.port}${rig.git.top}/keyed.git`;
                const host = `127.0.0.1:${sshd.port}`;
                const { data: made } = await rig.post('/connections', { name: 'ssh', kind: 'key', host });
                expect([made.publicKey, made.hostKey]).to.equal([made.publicKey, null]);
                expect(made.publicKey).to.match(/^ssh-ed25519 /);
                const id = await rig.project({
                    name: 'keyed',
                    source: { url, connection: made.id },
                    health: { successes: 1 }
                });
                expect((await rig.deploy(id)).reason).to.equal('FETCH_FAILED');
                appendFileSync(join(folder, 'authorized'), `\n${made.publicKey}\n`);
                expect(await rig.serve(id)).to.include({ commit });
                expect((await rig.get(`/connections/${made.id}`)).data.hostKey).to.contain(sshd.hostKey);
                const known = join(rig.folder, `connections/${made.id}/known_hosts`);
                const [, ...key] = readFileSync(join(folder, 'client.pub'), 'utf8').trim().split(' ');
                writeFileSync(known, `127.0.0.1 ssh-ed25519 ${key[0]}\n`);
                rig.git.commit('keyed', { other: 'x' });
                const mistrusted = await rig.deploy(id);
                expect(mistrusted.reason).to.equal('FETCH_FAILED');
                expect(await rig.log(mistrusted.id)).to.contain('Host key for 127.0.0.1 has changed');
                await rig.put(`/connections/${made.id}`, { hostKey: null });
                await rig.serve(id);
                expect(
                    readdirSync('/run').filter((name) => name.startsWith(`portico-files-${process.pid}-`))
                ).to.equal([]);

                const ran = await rig.post(`/projects/${id}/exec`, {
                    command: ['sh', '-c', 'cat x.js | head -1; touch x; echo $DEPLOY_PROJECT; exit 3']
                });
                expect(ran.data).to.include({ exitCode: 3, truncated: false });
                expect(ran.data.stdout).to.contain('keyed');
                expect(ran.data.stderr).to.contain('Read-only file system');
                const looked = await ended(
                    rig.client,
                    await rig.post('/detect', { url, connection: made.id })
                );
                expect(looked.result).to.include({
                    kind: 'process',
                    framework: 'node',
                    command: ['node', 'x.js']
                });
                expect(readdirSync(rig.folder).filter((name) => name.startsWith('detect'))).to.equal([]);
            } finally {
                await sshd.close();
            }
        }
    );

    real('refuse repositories by address before anything runs', async () => {
        const refused = [
            'ext::sh',
            'file:///etc',
            'git://127.0.0.1/a',
            'https://a:b@127.0.0.1/a',
            'http://git.example.invalid./a b'
        ];
        for (const url of refused) {
            const { code } = await rig.post('/projects', { name: 'refused', source: { url } });
            expect([40001, 42250], url).to.include(code);
        }
        for (const branch of ['--upload-pack=id', 'a..b', '-x']) {
            const { code } = await rig.post('/projects', {
                name: 'refused',
                source: { url: 'https://git.example/a', branch }
            });
            expect(code).to.equal(40001);
        }
    });
});
