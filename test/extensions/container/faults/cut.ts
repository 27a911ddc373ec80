import { readdirSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { asleep } from '../../../support/panel/process.ts';
import { until } from '../../../support/until.ts';
import { image } from '../engines.ts';
import { archiveOf } from '../support.ts';
import { describeOnEngines } from '../support/on-engines.ts';
import type { ContainerRig } from '../support/rig.ts';

export const lab = Lab.script();

/** Begins a build of a Dockerfile, and gives the number of its task. */
async function build(rig: ContainerRig, lines: string, more: Record<string, string> = {}): Promise<number> {
    const { data } = await rig.post('/builds', { tag: 'cut/app:1' });
    const context = archiveOf({ Dockerfile: `FROM ${image}\n${lines}\n`, ...more });
    const headers = { 'content-type': 'application/x-tar' };
    const sent = await rig.host.as('admin').put(`/builds/${data.id}/context`, context, { headers });
    return (sent.data as { id: number }).id;
}

describeOnEngines(lab, 'What is cut', (real) => {
    real(
        'is a change of a stack whose engine goes away: it says so, and a redeploy heals it',
        async (rig) => {
            const compose = (seconds: number): string =>
                `services: { one: { image: ${image}, command: [sh, -c, "sleep ${seconds}; touch /tmp/up; exec sleep 1000"], stop_grace_period: 0s, healthcheck: { test: [CMD, test, -f, /tmp/up], interval: 200ms, retries: 1000 } } }`;
            await rig.make('/stacks', { name: 'away', compose: compose(0) });
            const { data: task } = await rig.put('/stacks/away', { compose: compose(600), waitSeconds: 900 });
            await until(async () => {
                const { data } = await rig.engine.ask('GET', '/containers/away-one-1/json');
                return data.State?.Running === true && JSON.stringify(data.Config.Cmd).includes('sleep 600');
            }, 'the new container');
            await rig.engine.crash();
            // A container that its engine took along is told as one that ended.
            const { state, error } = (await rig.host.tasks.wait(task.id as number)) as {
                state: string;
                error: { code: number } | null;
            };
            expect(state).to.equal('failed');
            expect([42252, 50350]).to.include(error?.code);
            expect((await rig.get('/stacks/away')).data.revision).to.equal(1);
            expect((await rig.make('/stacks/away/redeploy')).state).to.equal('running');
            const { data } = await rig.engine.ask('GET', '/containers/away-one-1/json');
            expect(JSON.stringify(data.Config.Cmd)).to.contain('sleep 0');
            expect(await rig.engine.names()).to.equal(['away-one-1']);
            await rig.make('/stacks/away?volumes=true', {}, 'DELETE');
        }
    );

    real('is a build that forks and hears no signal: a cancel leaves nothing of it', async (rig) => {
        if (rig.engine.kind === 'podman') {
            // It ends the build, and lets the program that hears no signal go on; nothing of its API reaches that.
            return;
        }
        const seconds = 300_000 + process.pid;
        const lines = `RUN trap "" TERM INT HUP; sleep ${seconds} & while :; do sleep ${seconds}; done`;
        const id = await build(rig, lines);
        await until(() => asleep(seconds) === 2, 'the build');
        await rig.host.tasks.cancel(id);
        expect((await rig.host.tasks.wait(id)).state).to.equal('cancelled');
        await until(() => asleep(seconds) === 0, 'its end');
        expect((await rig.get(`/images/${encodeURIComponent('cut/app:1')}`)).code).to.equal(40400);
    });

    real('is a build that fills the disk of its engine: it says so, and it can be repeated', async (rig) => {
        // Both engines unpack a context before they build it.
        const folder = rig.engine.kind === 'docker' ? join(rig.engine.root, 'data/tmp') : '/var/tmp';
        rig.engine.inside('mount', '-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', folder);
        const large = { 'a-file': 'x'.repeat(2 ** 23) };
        let id = await build(rig, 'COPY a-file /', large);
        const { state, error } = (await rig.host.tasks.wait(id)) as {
            state: string;
            error: { code: number; message: string } | null;
        };
        expect([state, error?.code]).to.equal(['failed', 42254]);
        // Podman says no word of why.
        const words = rig.engine.kind === 'docker' ? /no space left on device/ : /status 500/;
        expect(error?.message).to.match(words);
        expect((await rig.get(`/images/${encodeURIComponent('cut/app:1')}`)).code).to.equal(40400);
        expect(readdirSync(join(rig.folder, 'stacks/.builds'))).to.equal([]);
        rig.engine.inside('umount', folder);
        id = await build(rig, 'COPY a-file /', large);
        expect((await rig.host.tasks.wait(id)).state).to.equal('succeeded');
        await rig.ask('DELETE', `/images/${encodeURIComponent('cut/app:1')}`);
    });

    real('is the log of a build that prints without end, and the build goes on', async (rig) => {
        const id = await build(rig, `RUN seq 1 300000 && echo the end`);
        const { state, error } = (await rig.host.tasks.wait(id)) as { state: string; error: unknown };
        expect([state, error]).to.equal(['succeeded', null]);
        expect((await rig.get(`/images/${encodeURIComponent('cut/app:1')}`)).status).to.equal(200);
        await rig.ask('DELETE', `/images/${encodeURIComponent('cut/app:1')}`);
    });
});
