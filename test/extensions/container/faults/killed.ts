import { once } from 'node:events';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../../support/skip.ts';
import { until } from '../../../support/until.ts';
import { faultyRegistry, image, noEngine, registryAddress } from '../engines.ts';
import { PanelBesideEngine } from '../panel.ts';
import { archiveOf } from '../support.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(noEngine, it);
const patient = { timeout: 240_000 };

let machine: PanelBesideEngine;

/** Kills the panel, starts it again, and sees that the task says so. */
const killIn = async (task: number): Promise<void> => {
    await machine.killPanel();
    await machine.startPanel();
    const { state, error } = await machine.ended(task);
    expect([state, error?.reason]).to.equal(['failed', 'INTERRUPTED']);
};
const isThere = async (name: string): Promise<boolean> =>
    (await machine.call('GET', `/api/plugins/container/images/${encodeURIComponent(name)}`)).code === 0;
const left = (folder: string): readonly string[] => {
    const path = join(machine.folder, 'stacks', folder);
    return existsSync(path) ? readdirSync(path) : [];
};

describe('kill -9 of a whole panel', patient, () => {
    before(patient, async () => {
        if (noEngine === undefined) {
            machine = await PanelBesideEngine.start(['container']);
        }
    });

    after(patient, () => machine?.close());

    real('in a pull leaves no image, and the pull can be repeated', async () => {
        const good = `${registryAddress}/fault/app:1`;
        await machine.engine.importImage(good, 'killed');
        await machine.finish('POST', '/container/images/push', { image: good });
        await machine.ask('DELETE', `/container/images/${encodeURIComponent(good)}?force=true`);
        const script = fileURLToPath(new URL('../support/faulty-registry.mjs', import.meta.url));
        const ports = [registryAddress, faultyRegistry].map((address) => address.split(':')[1] ?? '');
        const faulty = machine.spawn(process.execPath, [script, ...ports]);
        const stalled = `${faultyRegistry}/stall/app:1`;
        try {
            await until(async () => (await machine.reach(faultyRegistry)) > 0, 'the registry');
            const { id } = await machine.ask('POST', '/container/images/pull', { image: stalled });
            await until(async () => {
                const { data } = await machine.call('GET', `/api/tasks/${id}`);
                return data.state === 'running' && data.progress !== null;
            }, 'the pull');
            await killIn(id as number);
            expect(await isThere(stalled)).to.equal(false);
        } finally {
            faulty.kill('SIGKILL');
            await once(faulty, 'exit');
        }
        await machine.finish('POST', '/container/images/pull', { image: good });
        expect(await isThere(good)).to.equal(true);
    });

    real('in a build leaves neither image nor context, and the build can be repeated', async () => {
        const context = join(machine.folder, 'context.tar');
        const write = (seconds: number): void =>
            writeFileSync(context, archiveOf({ Dockerfile: `FROM ${image}\nRUN sleep ${seconds}\n` }));
        write(600);
        const tag = 'portico-test/built:1';
        const { id } = await machine.ask('POST', '/container/builds', { tag });
        const sent = machine.send('PUT', `/container/builds/${id}/context`, context);
        expect((await once(sent, 'exit'))[0]).to.equal(0);
        const tasks = (await machine.call('GET', '/api/tasks')).data as { id: number; kind: string }[];
        const task = tasks.find(({ kind }) => kind.includes('build'))?.id ?? 0;
        await until(async () => {
            const { data } = await machine.engine.ask('GET', '/containers/json');
            return (data as { Command: string }[]).some(({ Command }) => Command.includes('sleep 600'));
        }, 'the build');
        expect(left('.builds').length).to.equal(1);
        await killIn(task);
        expect(left('.builds')).to.equal([]);
        expect(await isThere(tag)).to.equal(false);
        // The engine ends what was cut by itself.
        await until(
            async () =>
                !JSON.stringify((await machine.engine.ask('GET', '/containers/json')).data).includes(
                    'sleep 600'
                ),
            'the end of the cut build'
        );
        expect((await machine.call('PUT', `/api/plugins/container/builds/${id}/context`)).code).to.not.equal(
            0
        );
        write(0);
        const again = await machine.ask('POST', '/container/builds', { tag });
        await once(machine.send('PUT', `/container/builds/${again.id}/context`, context), 'exit');
        await until(() => isThere(tag), 'the image');
    });

    real(
        'in a recreation leaves the container of before, with its name, and it can be repeated',
        async () => {
            const spec = { name: 'single', image, command: ['sleep', '1000'], stopSeconds: 15 };
            await machine.finish('POST', '/container/containers', spec);
            const { data: old } = await machine.engine.ask('GET', '/containers/single/json');
            // Its command does not hear of the end, so the engine waits as long as it was told.
            const { id } = await machine.ask('POST', '/container/containers/single/recreate', { user: '0' });
            await until(
                async () => (await machine.engine.names()).some((name) => name.startsWith('single-before-')),
                'the new container'
            );
            await killIn(id as number);
            await until(async () => {
                const { data } = await machine.engine.ask('GET', '/containers/single/json');
                return data.Id === old.Id && data.State.Running === true;
            }, 'the old container');
            expect(await machine.engine.names()).to.equal(['single']);
            await machine.finish('POST', '/container/containers/single/recreate', {
                user: '0',
                stopSeconds: 0
            });
            const { data: again } = await machine.engine.ask('GET', '/containers/single/json');
            expect([again.Id === old.Id, again.Config.User, again.State.Running]).to.equal([
                false,
                '0',
                true
            ]);
            await machine.ask('DELETE', '/container/containers/single?force=true');
        }
    );

    real('in a change of a stack tells it as it is, and a redeploy heals it', async () => {
        const compose = (seconds: number): string => `
services:
  one: { image: "${image}", command: [sh, -c, "sleep ${seconds}; touch /tmp/up; exec sleep 1000"], stop_grace_period: 0s,
    healthcheck: { test: [CMD, test, -f, /tmp/up], interval: 200ms, retries: 1000 } }
  two: { image: "${image}", command: [sleep, "1000"], stop_grace_period: 0s, depends_on: { one: { condition: service_healthy } } }
`;
        await machine.finish('POST', '/container/stacks', { name: 'cut', compose: compose(0) });
        const { id } = await machine.ask('PUT', '/container/stacks/cut', {
            compose: compose(600),
            waitSeconds: 900
        });
        await until(async () => {
            const { data } = await machine.engine.ask('GET', '/containers/cut-one-1/json');
            return data.State.Running === true && JSON.stringify(data.Config.Cmd).includes('sleep 600');
        }, 'the new container');
        await killIn(id as number);
        const cut = await machine.ask('GET', '/container/stacks/cut');
        expect(cut).to.include({ revision: 1 });
        expect(cut.state).to.not.equal('running');
        await machine.finish('POST', '/container/stacks/cut/redeploy');
        const healed = await machine.ask('GET', '/container/stacks/cut');
        expect([healed.state, healed.revision]).to.equal(['running', 1]);
        const { data } = await machine.engine.ask('GET', '/containers/cut-one-1/json');
        expect(JSON.stringify(data.Config.Cmd)).to.contain('sleep 0');
        expect(await machine.engine.names()).to.equal(['cut-one-1', 'cut-two-1']);
    });
});
