import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { ContainerContract } from '../../../../extensions/container/src/contract.ts';
import { image, registryAddress } from '../engines.ts';
import { archiveOf } from '../support.ts';
import { describeOnEngines } from '../support/on-engines.ts';
import type { ContainerRig } from '../support/rig.ts';

export const lab = Lab.script();

/** The contract as another plugin has it. */
function partner(rig: ContainerRig, plugin: string, who?: 'admin' | 'operator') {
    return rig.host.contract<ContainerContract>({ plugin, ...(who === undefined ? {} : { who }) });
}

const compose = (more = '', command = '[sleep, "1000"]'): string =>
    `services: { app: { image: ${image}, command: ${command}, stop_grace_period: 0s, volumes: ["data:/data"] ${more} } }\nvolumes: { data: {} }`;

/** A context of a build as a tar archive, in pieces. */
function contextOf(dockerfile: string, piece = 700): Buffer[] {
    const folder = mkdtempSync(join(tmpdir(), 'pcb-'));
    writeFileSync(join(folder, 'Dockerfile'), dockerfile);
    writeFileSync(join(folder, 'hello'), 'hello from the context\n');
    const tar = execFileSync('tar', ['-C', folder, '-czf', '-', '.']);
    rmSync(folder, { recursive: true });
    return Array.from({ length: Math.ceil(tar.length / piece) }, (_, index) =>
        tar.subarray(index * piece, (index + 1) * piece)
    );
}

describeOnEngines(lab, 'The contract of container', (real) => {
    real('makes, changes, controls and removes stacks that only their maker changes', async (rig) => {
        const shop = partner(rig, 'shop');
        expect((await shop.engine({})).kind).to.equal(rig.engine.kind);
        const plan = await shop.plan({ name: 'app', compose: compose() });
        expect([plan.valid, plan.consent]).to.equal([true, null]);
        expect(await shop.stack({ name: 'app' })).to.be.null();
        const made = await shop.apply({ name: 'app', compose: compose() });
        expect([made.state, made.owner, made.revision]).to.equal(['running', 'shop', 1]);
        const changed = await shop.apply({ name: 'app', compose: compose(', user: "0"') });
        expect(changed.revision).to.equal(2);
        const failed = shop.apply({ name: 'app', compose: compose('', '["false"]') });
        expect((await failed.catch((error: unknown) => error)) as object).to.include({ code: 42252 });
        expect(await shop.stack({ name: 'app' })).to.include({ state: 'running', revision: 2 });
        expect((await shop.rollback({ stack: 'app', revision: 1 })).revision).to.equal(3);

        const other = partner(rig, 'other');
        for (const attempt of [
            other.stack({ name: 'app' }),
            other.apply({ name: 'app', compose: compose() }),
            other.control({ stack: 'app', action: 'stop' }),
            other.remove({ stack: 'app' }),
            other.exec({ stack: 'app', service: 'app', command: ['id'] }),
            other.snapshot({ stack: 'app' })
        ]) {
            expect((await attempt.catch((error: unknown) => error)) as object).to.include({ code: 40950 });
        }
        // People run, stop and read it; changing it is refused.
        expect((await rig.ask('PUT', '/stacks/app', { compose: compose() })).code).to.equal(40950);
        expect((await rig.ask('DELETE', '/stacks/app')).code).to.equal(40950);
        expect((await rig.post('/stacks/app/redeploy', { pull: true })).code).to.equal(40950);
        expect((await rig.make('/stacks/app/stop')).state).to.equal('stopped');
        expect((await shop.control({ stack: 'app', action: 'start' })).state).to.equal('running');
        // Also its data, while no container has them.
        await rig.make('/stacks/app/down');
        expect((await rig.ask('DELETE', '/volumes/app_data')).code).to.equal(40950);
        const sent = await rig.host.as('admin').put('/volumes/app_data/archive', archiveOf({ a: 'b' }), {
            headers: { 'content-type': 'application/x-tar' }
        });
        expect(sent.code).to.equal(40950);
        expect((await rig.get('/volumes/app_data')).status).to.equal(200);
        await shop.control({ stack: 'app', action: 'up' });

        const ran = await shop.exec({
            stack: 'app',
            service: 'app',
            command: ['sh', '-c', 'echo out; exit 3']
        });
        expect([ran.exitCode, ran.stdout]).to.equal([3, 'out\n']);
        expect(await shop.remove({ stack: 'app', volumes: true })).to.equal({ removed: true });
        expect(await shop.remove({ stack: 'app' })).to.equal({ removed: false });
        expect(await rig.engine.names()).to.equal([]);
        expect(
            rig.host.audit
                .filter(({ resource }) => resource === 'container.stack')
                .map(({ action, outcome }) => `${action} ${outcome}`)
        ).to.equal([
            'deploy success',
            'deploy success',
            'deploy failure',
            'deploy success',
            'start success',
            'deploy success',
            'remove success'
        ]);

        // A plugin that was removed with its data owns no stack: people change it from then on, also when one of that name comes back.
        await shop.apply({ name: 'left', compose: compose() });
        rig.host.panel.removed.add('shop');
        expect((await rig.get('/stacks/left')).data.owner).to.be.null();
        rig.host.panel.removed.delete('shop');
        expect((await shop.stack({ name: 'left' }).catch((error: unknown) => error)) as object).to.include({
            code: 40950
        });
        const left = await rig.make('/stacks/left', { compose: compose(', user: "0"') }, 'PUT');
        expect([left.owner, left.state]).to.equal([null, 'running']);
        await rig.make('/stacks/left?volumes=true', undefined, 'DELETE');
    });

    real('takes its last change back without a person, and brings images', async (rig) => {
        const shop = partner(rig, 'shop');
        await shop.apply({ name: 'back', compose: compose() });
        // What was consented to comes back without a person; what is new does not.
        const open = compose(', ports: ["0.0.0.0:18999:80"]');
        const { consent } = await shop.plan({ name: 'back', compose: open });
        expect(
            (await shop.apply({ name: 'back', compose: open }).catch((error: unknown) => error)) as object
        ).to.include({ code: 40951 });
        await partner(rig, 'shop', 'admin').apply({
            name: 'back',
            compose: open,
            ...(consent === null ? {} : { consent })
        });
        const { revision } = await shop.apply({ name: 'back', compose: compose() });
        const back = await shop.rollback({ stack: 'back', revision: (revision ?? 0) - 1 });
        expect(back.findings.map(({ rule }) => rule)).to.equal(['public-port']);
        await shop.apply({ name: 'back', compose: compose() });
        await shop.apply({ name: 'back', compose: compose(', user: "0"') });
        expect(
            (await shop
                .rollback({ stack: 'back', revision: (revision ?? 0) - 1 })
                .catch((error: unknown) => error)) as object
        ).to.include({ code: 40951 });
        await shop.remove({ stack: 'back', volumes: true });
        expect(
            (await shop
                .pull({ image: `${registryAddress}/no/such:1` })
                .catch((error: unknown) => error)) as object
        ).to.include({ code: 50250 });
    });

    real('takes consent from a person who may give it alone', async (rig) => {
        const open = `services: { app: { image: ${image}, command: [sleep, "1000"], ports: ["0.0.0.0:18080:80"], stop_grace_period: 0s } }`;
        const asked = await partner(rig, 'shop')
            .apply({ name: 'open', compose: open })
            .catch((error: unknown) => error as { code: number; data: { plan: { consent: string } } });
        expect(asked).to.include({ code: 40951 });
        const { consent } = (asked as { data: { plan: { consent: string } } }).data.plan;
        const give = (who?: 'admin' | 'operator') =>
            partner(rig, 'shop', who).apply({ name: 'open', compose: open, consent });
        expect((await give().catch((error: unknown) => error)) as object).to.include({ code: 40300 });
        expect((await give('operator').catch((error: unknown) => error)) as object).to.include({
            code: 40300
        });
        expect((await give('admin')).state).to.equal('running');
        const evil = `services: { app: { image: ${image}, privileged: true } }`;
        const refused = partner(rig, 'shop', 'admin').apply({ name: 'evil', compose: evil });
        expect((await refused.catch((error: unknown) => error)) as object).to.include({ code: 42253 });
        await partner(rig, 'shop').remove({ stack: 'open' });
    });

    real('keeps data in snapshots and brings them back whole', async (rig) => {
        const shop = partner(rig, 'shop');
        await shop.apply({ name: 'kept', compose: compose() });
        const sh = async (script: string): Promise<string> =>
            (await shop.exec({ stack: 'kept', service: 'app', command: ['sh', '-c', script] })).stdout;
        await sh('echo first >/data/a; mkdir /data/folder; echo x >/data/folder/b; ls -s /data >/dev/null');
        // A container that is not root needs its folder, too.
        await sh('busybox chown 7:8 /data; busybox chmod 2750 /data');
        const { snapshot, bytes } = await shop.snapshot({ stack: 'kept' });
        expect(bytes).to.be.above(1_000);
        await sh('echo second >/data/a; rm -r /data/folder; touch /data/later');
        expect((await shop.restore({ stack: 'kept', snapshot })).state).to.equal('running');
        expect(await sh('cat /data/a /data/folder/b; ls /data')).to.equal('first\nx\na\nfolder\n');
        expect(await sh('busybox stat -c "%u %g %a" /data')).to.equal('7 8 2750\n');
        expect(await shop.dropSnapshot({ stack: 'kept', snapshot })).to.equal({ dropped: true });
        expect(await shop.dropSnapshot({ stack: 'kept', snapshot })).to.equal({ dropped: false });
        const gone = shop.restore({ stack: 'kept', snapshot });
        expect((await gone.catch((error: unknown) => error)) as object).to.include({ code: 40400 });
        // A disk that is full while one is taken: nothing of it stays, and what was there can be brought back.
        const first = await shop.snapshot({ stack: 'kept' });
        const folder = join(rig.folder, 'stacks', '.snapshots');
        await sh('busybox dd if=/dev/urandom of=/data/large bs=1M count=2 2>/dev/null; echo third >/data/a');
        const full = join(rig.folder, 'full');
        mkdirSync(full);
        renameSync(folder, join(full, 'kept'));
        mkdirSync(folder);
        execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder]);
        try {
            cpSync(join(full, 'kept'), folder, { recursive: true });
            const failed = shop.snapshot({ stack: 'kept' });
            expect((await failed.catch((error: unknown) => error)) as object).to.include({ code: 50700 });
            expect(readdirSync(folder)).to.equal([first.snapshot]);
            expect(await sh('cat /data/a')).to.equal('third\n');
            expect((await shop.restore({ stack: 'kept', snapshot: first.snapshot })).state).to.equal(
                'running'
            );
            expect(await sh('cat /data/a')).to.equal('first\n');
        } finally {
            execFileSync('umount', [folder]);
        }
        await shop.remove({ stack: 'kept', volumes: true });
        expect(readdirSync(join(rig.folder, 'stacks', '.snapshots'))).to.equal([]);
        expect(await rig.engine.names()).to.equal([]);
    });

    real('builds images of a context in pieces, and masks what was given as an argument', async (rig) => {
        const shop = partner(rig, 'shop');
        const build = async (dockerfile: string): Promise<{ text: string; image: string | undefined }> => {
            const { id } = await shop.buildBegin({ tag: 'built:1', args: { TOKEN: 'very-secret' } });
            for (const chunk of contextOf(dockerfile)) {
                await shop.buildWrite({ id, chunk });
            }
            let text = '';
            let built: string | undefined;
            for await (const event of shop.build({ id })) {
                text += event.text ?? '';
                built = event.image ?? built;
            }
            return { text, image: built };
        };
        const { text, image: id } = await build(
            `FROM ${image}\nARG TOKEN\nADD hello /hello\nRUN cat /hello && echo "token is $TOKEN"\nLABEL io.portico.owner=other`
        );
        expect(text).to.contain('hello from the context').and.to.contain('token is ***');
        expect(text).to.not.contain('very-secret');
        const stack = `services: { app: { image: "built:1", command: [sleep, "1000"], stop_grace_period: 0s } }`;
        const made = await shop.apply({ name: 'built', compose: stack, digests: { app: id ?? '' } });
        expect(made.state).to.equal('running');
        const busy = shop.removeImage({ image: 'built:1' });
        expect((await busy.catch((error: unknown) => error)) as object).to.include({ code: 40901 });
        await shop.remove({ stack: 'built' });
        const foreign = partner(rig, 'other').removeImage({ image: 'built:1' });
        expect((await foreign.catch((error: unknown) => error)) as object).to.include({ code: 40950 });
        const base = shop.removeImage({ image });
        expect((await base.catch((error: unknown) => error)) as object).to.include({ code: 40950 });
        expect(await shop.removeImage({ image: 'built:1' })).to.equal({ removed: true });
        expect(await shop.removeImage({ image: 'built:1' })).to.equal({ removed: false });
        const failed = build(`FROM ${image}\nARG TOKEN\nRUN echo $TOKEN; exit 7`);
        const error = (await failed.catch((thrown: unknown) => thrown)) as { code: number; message: string };
        expect(error.code).to.equal(42254);
        expect(error.message).to.not.contain('very-secret');
        expect(readdirSync(join(rig.folder, 'stacks', '.builds'))).to.equal([]);
    });
});
