import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type AccessRecord, type Context, definePlugin, type FailureError } from '@portico/sdk';

import type {
    Capabilities,
    Generation
} from '../../../../../core/src/plugins/runtime/generation/generation.ts';
import { createPluginRig, type PluginRig } from '../../../../support/plugins/host.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

const beginning = new Date(0);
let rig: PluginRig;
let granted: Capabilities;

async function start(capabilities: Capabilities): Promise<{ ctx: Context; generation: Generation }> {
    let found!: Context;
    granted = capabilities;
    const generation = await rig.run(
        definePlugin({
            setup(ctx) {
                found = ctx;
            }
        }),
        { name: 'one', capabilities, grants: () => granted }
    );
    return { ctx: found, generation };
}

const codeOf = async (work: Promise<unknown>): Promise<number> =>
    ((await work.then(() => null).catch((error: unknown) => error)) as FailureError).code;
const read = (ctx: Context, from: Date | null = beginning): AsyncIterator<AccessRecord> =>
    ctx.accessLog({ from })[Symbol.asyncIterator]();

beforeEach(async () => {
    rig = await createPluginRig();
});
afterEach(() => rig.close());

describe('ctx.accessLog', () => {
    it('needs the capability, also for a stream that has begun', async () => {
        const { ctx } = await start({ logs: ['access'] });
        rig.accessLog.add({ path: '/a', hostId: 7 });
        const records = read(ctx);
        expect((await records.next()).value).to.include({ path: '/a', hostId: 7, dropped: 0 });
        granted = {};
        rig.accessLog.add({ path: '/b' });
        expect(await codeOf(records.next())).to.equal(50305);
        expect(await codeOf(read(ctx).next())).to.equal(50305);
    });

    it('refuses what is no time, and more than sixteen streams at once', async () => {
        const { ctx } = await start({ logs: ['access'] });
        expect(await codeOf(read(ctx, new Date(NaN)).next())).to.equal(40001);
        expect(await codeOf(read(ctx, 'now' as never).next())).to.equal(40001); // no type refuses it when it runs
        rig.accessLog.add();
        const streams = Array.from({ length: 17 }, () => read(ctx));
        const codes = await Promise.all(streams.map((stream) => codeOf(stream.next()).catch(() => 0)));
        expect(codes.filter((code) => code === 40901)).to.have.length(1);
        await streams[0]?.return?.();
        expect((await read(ctx).next()).done).to.be.false();
    });

    it('shows admins whether the log is on and what a plugin missed, and ends with the plugin', async () => {
        const { ctx, generation } = await start({ logs: ['access'] });
        expect(await generation.health()).to.equal([]);
        rig.accessLog.on = false;
        const records = read(ctx, null);
        const first = records.next();
        await new Promise((done) => setTimeout(done, 20));
        expect(await generation.health()).to.equal([
            {
                name: 'accessLog',
                state: 'ok',
                evidence: 'The setting engine.accessLog is off: nothing is recorded'
            }
        ]);
        rig.accessLog.on = true;
        rig.accessLog.add({ dropped: 3 });
        expect((await first).value.dropped).to.equal(3);
        const [health] = await generation.health();
        expect(health).to.include({ name: 'accessLog', state: 'degraded' });
        expect(String(health?.evidence)).to.startWith('3 records of the access log were left out');
        const last = records.next();
        await generation.close('the test ends');
        expect((await last).done).to.be.true();
        expect(await codeOf(read(ctx).next())).to.equal(50304);
    });
});
