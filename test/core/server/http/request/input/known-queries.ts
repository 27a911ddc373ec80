import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { definePlugin, joi } from '@portico/sdk';
import { isPure } from '@portico/sdk/host';

import { json } from '../../../../../../core/src/server/http/route.ts';
import { createPluginRig, type PluginRig } from '../../../../../support/plugins/host.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

let made = 0;
const steady = joi.object({
    limit: joi.number().integer().min(1).default(20),
    tag: joi.array().items(joi.string()).single()
});
const lively = joi.object({ n: joi.number().default(() => (made += 1)) });
const until = joi.object({ at: joi.date().min('now') });

describe('A query that was asked before', { timeout: 30_000 }, () => {
    let rig: PluginRig;

    before(async () => {
        const core = (path: string, query: typeof steady | typeof lively) =>
            json({
                method: 'GET',
                path: `/api/bench/${path}`,
                id: `bench.${path}`,
                access: 'things:read',
                summary: 'Answer the query',
                validate: { query },
                handler: (request) => ({ query: request.query })
            });
        rig = await createPluginRig({ routes: [core('steady', steady), core('lively', lively)] });
        await rig.run(
            definePlugin({
                setup(ctx) {
                    ctx.route({
                        method: 'GET',
                        path: '/steady',
                        access: 'read',
                        validate: { query: steady },
                        handler({ query }) {
                            const before = { ...query };
                            Object.assign(query, { limit: -1 });
                            query.tag?.push('mine');
                            return { query: before };
                        }
                    });
                    ctx.route({
                        method: 'GET',
                        path: '/lively',
                        access: 'read',
                        validate: { query: lively },
                        handler: ({ query }) => ({ query })
                    });
                }
            })
        );
    });
    after(() => rig.close());

    for (const base of ['/api/bench', '/api/plugins/probe']) {
        it(`is read as it was then, and refused as it was then: ${base}`, async () => {
            for (let turn = 0; turn < 3; turn += 1) {
                expect((await rig.ask('admin', 'GET', `${base}/steady?limit=5`)).data).to.equal({
                    query: { limit: 5 }
                });
                expect((await rig.ask('admin', 'GET', `${base}/steady`)).data).to.equal({
                    query: { limit: 20 }
                });
                expect((await rig.ask('admin', 'GET', `${base}/steady?limit=0`)).code).to.equal(40001);
                expect((await rig.ask('admin', 'GET', `${base}/steady?other=1`)).code).to.equal(40001);
            }
        });

        it(`is read anew where code of the author's has a word in it: ${base}`, async () => {
            const first = (await rig.ask('admin', 'GET', `${base}/lively`)).data.query.n;
            expect((await rig.ask('admin', 'GET', `${base}/lively`)).data.query.n).to.equal(first + 1);
        });
    }

    it("is a handler's own: what one does to it, the next does not see", async () => {
        for (let turn = 0; turn < 3; turn += 1) {
            expect(
                (await rig.ask('admin', 'GET', '/api/plugins/probe/steady?tag=a&tag=b')).data.query.tag.slice(
                    0,
                    2
                )
            ).to.equal(['a', 'b']);
            expect(
                (await rig.ask('admin', 'GET', '/api/plugins/probe/steady?limit=7')).data.query.limit
            ).to.equal(7);
        }
    });

    it('is not remembered where code or the clock has a word in it', () => {
        const custom = joi.object({ n: joi.number().custom((value: number) => value) });
        expect([steady, lively, until, custom].map((schema) => isPure(schema))).to.equal([
            true,
            false,
            false,
            false
        ]);
    });

    it('is forgotten where there are too many, and never remembered where it is long', async () => {
        for (let n = 1; n < 200; n += 1) {
            expect((await rig.ask('admin', 'GET', `/api/bench/steady?limit=${n}`)).data.query.limit).to.equal(
                n
            );
        }
        const long = 'x'.repeat(400);
        expect((await rig.ask('admin', 'GET', `/api/bench/steady?tag=${long}`)).data.query.tag).to.equal([
            long
        ]);
    });
});
