import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type Context, definePlugin, isFailure } from '@portico/sdk';

import { identify, isAlive } from '../../../../../core/src/platform/process/process-identity.ts';
import type {
    Capabilities,
    Generation
} from '../../../../../core/src/plugins/runtime/generation/generation.ts';
import { createPluginRig, type PluginRig, type RunOptions } from '../../../../support/plugins/host.ts';
import { until } from '../../../../support/until.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

const capabilities: Capabilities = { services: true, exec: ['sleep', 'sh'] };
const sleep = { file: 'sleep', args: ['600'] };

let rig: PluginRig;

beforeEach(async () => {
    rig = await createPluginRig();
});

afterEach(() => rig.close());

async function run(
    options: RunOptions = {}
): Promise<{ readonly ctx: Context; readonly generation: Generation }> {
    let found!: Context;
    const definition = definePlugin({
        setup(ctx) {
            found = ctx;
        }
    });
    const generation = await rig.run(definition, { capabilities, ...options });
    return { ctx: found, generation };
}

const failureOf = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
        () => null,
        (error: unknown) => (isFailure(error) ? error.code : error)
    );

describe('PluginServices', { timeout: 30_000 }, () => {
    it('keeps a program over the end of its generation, for the same package alone', async () => {
        const first = await run();
        const { pid } = await first.ctx.services.put('web', sleep);
        const program = identify(pid ?? 0) ?? { pid: 0, ticks: 0 };
        expect((await first.generation.close('disabled')).leaked).to.equal([]);
        expect(isAlive(program)).to.be.true();
        expect(await failureOf(first.ctx.services.list())).to.equal(50304);

        const stranger = await run({ package: '@evil/probe', dataDir: `${rig.root}/stranger` });
        expect(await stranger.ctx.services.list()).to.equal([]);
        expect(await failureOf(stranger.ctx.services.stop('web'))).to.equal(40400);
        await stranger.ctx.services.remove('web');
        await stranger.generation.close('disabled');
        expect(isAlive(program)).to.be.true();

        const second = await run({ version: '2.0.0' });
        expect((await second.ctx.services.put('web', sleep)).pid).to.equal(pid);
        expect(await second.ctx.services.list()).to.have.length(1);
        await second.ctx.services.remove('web');
        expect(isAlive(program)).to.be.false();
    });

    it('needs the capability, and that of its program, each time', async () => {
        let granted: Capabilities = { exec: ['sleep'] };
        const { ctx, generation } = await run({ grants: () => granted });
        expect(await failureOf(ctx.services.put('web', sleep))).to.equal(50305);
        expect(await failureOf(ctx.services.list())).to.equal(50305);
        granted = { services: true, exec: ['sleep'] };
        expect(await failureOf(ctx.services.put('web', { file: 'sh', args: [] }))).to.equal(50305);
        const { pid } = await ctx.services.put('web', sleep);
        granted = { services: true };
        await generation.revoke();
        expect(identify(pid ?? 0)).to.be.null();
        expect((await ctx.services.list())[0]?.state).to.equal('stopped');
        expect(await failureOf(ctx.services.start('web'))).to.equal(50305);
        expect(await failureOf(ctx.services.restart('web'))).to.equal(50305);
    });

    it('names in its health the service that keeps failing', async () => {
        const { ctx, generation } = await run();
        expect(await generation.health()).to.equal([]);
        await ctx.services.put('web', sleep);
        expect(await generation.health()).to.equal([
            { name: 'services', state: 'ok', evidence: '1 of 1 run' }
        ]);
        await ctx.services.put('bad', { file: 'sh', args: ['-c', 'exit 3'] });
        await until(async () => {
            const [report] = await generation.health();
            return /^bad .* after [2-9] failed runs in a row, the last: exit code 3$/.test(
                report?.evidence ?? ''
            );
        });
        const [report] = await generation.health();
        expect(report?.remedy?.text).to.contain('bad');
    });

    it('belongs to work, not to registration', async () => {
        const definition = definePlugin({
            async setup(ctx) {
                await ctx.services.put('web', sleep);
            }
        });
        await expect(rig.prepare(definition, { capabilities })).to.reject(/services\.put belongs in onStart/);
    });
});
