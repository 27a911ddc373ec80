import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { defineErrors, definePlugin, reply } from '@portico/sdk';

import { createPluginRig, type PluginRig } from '../../../../support/plugins/host.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const own = defineErrors({ FORECAST_FAILED: { code: 50250, message: 'No forecast' } });
const answers: Readonly<Record<string, unknown>> = {
    text: 'Saved',
    number: 7,
    flag: true,
    time: new Date(0),
    endless: { text: 'x'.repeat(16 * 1024 * 1024) },
    replied: reply.with('Saved', {}),
    nothing: undefined,
    null: null,
    list: ['Saved'],
    object: { saved: true }
};
let rig: PluginRig;

describe("a plugin's answer", () => {
    before(async () => {
        rig = await createPluginRig();
        await rig.run(
            definePlugin({
                setup(ctx) {
                    for (const [name, answer] of Object.entries(answers)) {
                        ctx.route({ method: 'GET', path: `/${name}`, access: 'read', handler: () => answer });
                    }
                    const far = (): Promise<unknown> => ctx.fetch('https://far.example/');
                    const hidden = async (): Promise<never> => {
                        throw new Error('The library gave up', {
                            cause: await far().catch((error: unknown) => error)
                        });
                    };
                    ctx.route({ method: 'GET', path: '/far', access: 'read', handler: far });
                    ctx.route({ method: 'GET', path: '/hidden', access: 'read', handler: hidden });
                    ctx.route({
                        method: 'GET',
                        path: '/own',
                        access: 'read',
                        handler: () =>
                            hidden().catch((cause: unknown) =>
                                Promise.reject(own.FORECAST_FAILED({}, { cause }))
                            )
                    });
                }
            }),
            {}
        );
    });

    after(() => rig.close());

    it('is an object, a list or nothing; a text, number, flag, time or more than 16 MiB is a bug, and the log says of which route', async () => {
        const seen = async (name: string) => {
            const { code, data } = await rig.ask('viewer', 'GET', `/api/plugins/probe/${name}`);
            return [code, data];
        };
        for (const name of ['text', 'number', 'flag', 'time', 'replied']) {
            expect((await seen(name))[0], name).to.equal(50000);
        }
        expect(rig.http.lines.join('')).to.contain('get.text answers with a string: return an object');
        expect((await seen('endless'))[0]).to.equal(50000);
        expect(rig.http.lines.join('')).to.contain('get.endless answers with 17 MiB, and 16 are allowed');
        expect(await seen('nothing')).to.equal([0, null]);
        expect(await seen('null')).to.equal([0, null]);
        expect(await seen('list')).to.equal([0, ['Saved']]);
        expect(await seen('object')).to.equal([0, { saved: true }]);
    });

    it('names a missing capability, however deep it is hidden, unless the plugin has an error of its own', async () => {
        for (const name of ['far', 'hidden']) {
            const { code, message } = await rig.ask('viewer', 'GET', `/api/plugins/probe/${name}`);
            expect([code, message]).to.equal([
                50305,
                'The plugin probe lacks the capability network: far.example'
            ]);
        }
        expect((await rig.ask('viewer', 'GET', '/api/plugins/probe/own')).code).to.equal(50250);
    });
});
