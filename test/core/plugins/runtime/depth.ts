import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { definePlugin, joi } from '@portico/sdk';

import { createPluginRig } from '../../../support/plugins/host.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('ctx.api.call', () => {
    it('nests at most four deep, however many plugins take turns', async () => {
        const rig = await createPluginRig();
        try {
            const hopping = (next: string) =>
                definePlugin({
                    setup(ctx) {
                        ctx.route({
                            method: 'GET',
                            path: '/hop/{n}',
                            id: 'hop',
                            access: 'read',
                            validate: { params: joi.object({ n: joi.number().required() }) },
                            async handler({ params, actor }) {
                                const answer = await ctx.api.call(actor, {
                                    id: `${next}.hop`,
                                    params: { n: params.n + 1 }
                                });
                                return answer.code === 0
                                    ? answer.data
                                    : { at: params.n, code: answer.code, message: answer.message };
                            }
                        });
                    }
                });
            const capabilities = { api: { read: ['*'] } };
            await rig.run(hopping('other'), { name: 'probe', capabilities });
            await rig.run(hopping('probe'), { name: 'other', capabilities });
            const { data } = await rig.ask('admin', 'GET', '/api/plugins/probe/hop/0');
            expect([data.at, data.code]).to.equal([4, 40300]);
            expect(data.message).to.match(/4 deep/);
        } finally {
            await rig.close();
        }
    });
});
