/** Previews of pull requests of Gitea and merge requests of GitLab: from the delivery to the page, and until it is closed. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../../support/skip.ts';
import { until } from '../../../support/until.ts';
import { Forge } from '../support/forge.ts';
import { git } from '../support/git-server.ts';
import { DeployRig, server, withoutSandbox } from '../support/rig.ts';
import { deliver, pullOf, type PullSaid, signed } from './deliveries.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(withoutSandbox, it);

const limitMs = 120_000;
const secret = 'only for production';
const refs = { gitea: 'refs/pull', gitlab: 'refs/merge-requests' };
let rig: DeployRig;

describe('Previews of pull requests', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (withoutSandbox !== undefined) {
            return;
        }
        rig = await DeployRig.start();
        const tree = {
            'package.json': '{"scripts":{"start":"node server.js"}}',
            'server.js': server('main')
        };
        rig.git.create('acme/shop', tree);
        rig.git.create('ada/shop', tree);
    });

    after({ timeout: limitMs }, async () => {
        await rig?.close();
    });

    (['gitea', 'gitlab'] as const).forEach(testOf);
});

function testOf(kind: 'gitea' | 'gitlab'): void {
    describe(`Previews of ${kind}`, { timeout: limitMs }, () => {
        let forge: Forge;
        let connection: number;
        let project: number;
        let hook: { readonly url: string; readonly secret: string };

        const pull = async (said: PullSaid) => {
            const [event, body] = pullOf(kind, said);
            const url = `http://127.0.0.1:${rig.panel.port}${hook.url}`;
            const { status, data } = await deliver(url, body, signed(kind, event, body, hook.secret));
            return { status, ...data };
        };
        /** Commits in a repository, on no branch of the one that is deployed, which has it under the ref of the request. */
        const head = (number: number, text: string, repository = 'acme/shop'): string => {
            const work = rig.git.work(repository);
            git(work, 'checkout', '--quiet', '-B', 'feature', 'main');
            const commit = rig.git.commit(repository, { 'server.js': server(text) }, text, 'feature');
            const target = join(rig.git.top, 'acme/shop.git');
            git(work, 'push', '--quiet', '--force', target, `HEAD:${refs[kind]}/${number}/head`);
            git(work, 'push', '--quiet', 'origin', ':refs/heads/feature');
            git(work, 'checkout', '--quiet', '--force', 'main');
            return commit;
        };
        const preview = async (id: number) => (await rig.get(`/previews/${id}`)).data;
        const live = (id: number, commit: string) =>
            until(async () => {
                const found = await preview(id);
                if (found.state === 'failed') {
                    throw new Error(await rig.log(found.deploymentId as number));
                }
                const { data } = await rig.get(`/deployments/${found.deploymentId}`);
                return found.state === 'live' && data.commit === commit ? data : null;
            }, `preview ${id} to serve ${commit}`);
        const text = async (number: number): Promise<string> =>
            (await rig.page(`pr-${number}.shop.test`)).text;

        before({ timeout: limitMs }, async () => {
            if (withoutSandbox !== undefined) {
                return;
            }
            forge = new Forge(kind);
            await forge.start();
            rig.git.passwords.set('acme/shop', `oauth2:${forge.token}`);
            const made = await rig.post('/connections', {
                ...{ name: kind, kind: 'token', host: `127.0.0.1:${rig.git.port}` },
                ...{ token: forge.token, forge: kind, apiUrl: forge.url }
            });
            expect(made.status, made.text).to.equal(201);
            connection = made.data.id as number;
            project = await rig.project({
                name: 'shop',
                source: { url: rig.git.url('acme/shop'), connection },
                host: { domain: 'shop.test' },
                health: { successes: 1 },
                run: { drainSeconds: 1, shared: ['data'] },
                previews: { domain: 'pr-{number}.shop.test' }
            });
            hook = (await rig.post(`/projects/${project}/hook`)).data as typeof hook;
            await rig.put(`/projects/${project}/env`, {
                vars: [{ name: 'SECRET', value: secret, secret: true }]
            });
        });

        after({ timeout: limitMs }, async () => {
            if (forge === undefined) {
                return;
            }
            await rig.delete(`/projects/${project}`);
            await until(async () => (await rig.get(`/projects/${project}`)).status === 404, 'the end');
            await forge.close();
        });

        real('are built, told by one comment, moved with the head, and gone when it is closed', async () => {
            const first = head(1, 'feature one');
            const opened = await pull({ number: 1, commit: first, action: 'opened' });
            expect(opened.status).to.equal(202);
            expect(opened.preview).to.include({ number: 1, fork: false, commit: first });
            const { id } = opened.preview;
            const { projectId } = await live(id, first);
            expect(await text(1)).to.equal('feature one');
            await until(async () => forge.comments.get(1)?.includes('http://pr-1.shop.test/'), 'the comment');
            expect(await pull({ number: 1, commit: first, action: 'edited' })).to.include({
                ignored: 'event'
            });

            const second = head(1, 'feature two');
            await pull({ number: 1, commit: second, action: 'pushed' });
            await live(id, second);
            expect(await text(1)).to.equal('feature two');
            await until(async () => forge.comments.get(1)?.includes(second), 'the comment to change');
            expect(forge.comments.size).to.equal(1);

            const closed = await pull({ number: 1, commit: second, action: 'closed' });
            expect(closed.preview.state).to.equal('closed');
            expect(await text(1)).to.not.equal('feature two');
            expect(existsSync(join(rig.folder, `projects/${projectId}`))).to.be.false();
            await until(async () => forge.comments.get(1)?.includes('is over'), 'the last comment');
            expect(rig.panel.lines.join('\n')).to.not.contain(forge.token);
        });

        real('of a fork are built after the approval of exactly that commit', async () => {
            const first = head(2, 'from a fork', 'ada/shop');
            const asked = rig.git.asked.length;
            const opened = await pull({ number: 2, commit: first, action: 'opened', fork: true });
            expect(opened.preview).to.include({ fork: true, state: 'awaiting-approval', deploymentId: null });
            const { id } = opened.preview;
            const approve = (commit: string) => rig.post(`/previews/${id}/approve`, { commit });
            expect((await approve(rig.git.commit('acme/shop', {}, 'Other'))).code).to.equal(40952);
            expect(rig.git.asked.length, 'nothing of it was fetched').to.equal(asked);
            await approve(first);
            await live(id, first);
            expect(await text(2)).to.equal('from a fork');

            const second = head(2, 'changed after the approval', 'ada/shop');
            const moved = await pull({ number: 2, commit: second, action: 'pushed', fork: true });
            expect(moved.preview).to.include({ state: 'awaiting-approval', approvedCommit: null });
            expect(await text(2)).to.not.equal('from a fork');
            expect((await approve(first)).code).to.equal(40952);
            await approve(second);
            await live(id, second);
            expect(await text(2)).to.equal('changed after the approval');
            await pull({ number: 2, commit: second, action: 'closed', fork: true });
            expect(await text(2)).to.not.equal('changed after the approval');
        });

        real('are fetched where the git server has them, also without a connection', async () => {
            rig.git.passwords.delete('acme/shop');
            await rig.put(`/projects/${project}`, { source: { url: rig.git.url('acme/shop') } });
            const commit = head(3, 'of everyone');
            const { preview: opened } = await pull({ number: 3, commit, action: 'opened' });
            await live(opened.id, commit);
            expect(await text(3)).to.equal('of everyone');
        });

        real('need no more than the forge gives: all pages of its repositories, and its checks', async () => {
            for (let number = 1; number <= 120; number += 1) {
                const name = `acme/app-${number}`;
                forge.repositories.push(
                    kind === 'gitlab'
                        ? {
                              ...{ id: number, path_with_namespace: name, visibility: 'public' },
                              ...{ http_url_to_repo: `https://git.example/${name}.git` },
                              default_branch: 'main'
                          }
                        : {
                              ...{ id: number, full_name: name, private: false, default_branch: 'main' },
                              clone_url: `https://git.example/${name}.git`
                          }
                );
            }
            const { data: listed } = await rig.get(`/connections/${connection}/repositories?q=app-`);
            expect(listed.length).to.equal(120);
            expect(listed[119]).to.equal({
                ...{ name: 'acme/app-120', url: 'https://git.example/acme/app-120.git' },
                ...{ branch: 'main', isPrivate: false }
            });
            await rig.put(`/projects/${project}`, {
                source: { url: rig.git.url('acme/shop'), connection },
                triggers: { requiredChecks: ['tests'] }
            });
            forge.checks.set('tests', 'failure');
            expect((await rig.deploy(project)).reason).to.equal('CHECKS_FAILED');
            forge.checks.set('tests', 'success');
            await rig.serve(project);
        });
    });
}
