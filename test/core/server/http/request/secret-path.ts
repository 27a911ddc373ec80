import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { definePlugin, joi } from '@portico/sdk';

import { createPluginRig, type PluginRig } from '../../../../support/plugins/host.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

let rig: PluginRig;

beforeEach(async () => {
    rig = await createPluginRig();
    rig.user('reader', ['probe:read']);
    rig.user('other', []);
    await rig.run(
        definePlugin({
            setup(ctx) {
                const route = (path: string, params: Parameters<typeof joi.object>[0], id: string): void =>
                    ctx.route({
                        method: 'DELETE',
                        path,
                        id,
                        access: 'read',
                        summary: 'Fails',
                        validate: { params: joi.object(params) },
                        handler() {
                            throw new Error('a bug');
                        }
                    });
                route('/s/{token}/file', { token: joi.secret().required().meta({ anyText: true }) }, 'one');
                route('/p/{name}/{token}', { name: joi.string(), token: joi.secret() }, 'two');
                route('/r/{rest*}', { rest: joi.secret() }, 'rest');
                route('/open/{name}', { name: joi.string() }, 'open');
            }
        })
    );
});
afterEach(() => rig.close());

describe('joi.secret() in params', () => {
    it('keeps that part of the path, and no other, out of the log of a failure', async () => {
        for (const path of ['s/sesame%2Fopen/file', 'p/ann/sesame', 'r/sesame/open/door', 'open/visible']) {
            expect((await rig.ask('reader', 'DELETE', `/api/plugins/probe/${path}`)).code, path).to.equal(
                50000
            );
        }
        const lines = rig.http.lines.filter((line) => line.includes('A request failed'));
        expect(lines.map((line) => (JSON.parse(line) as { path: string }).path)).to.equal([
            '/api/plugins/probe/s/[secret]/file',
            '/api/plugins/probe/p/ann/[secret]',
            '/api/plugins/probe/r/[secret]',
            '/api/plugins/probe/open/visible'
        ]);
        expect(rig.http.lines.join('\n')).to.not.include('sesame');
        expect(JSON.stringify([...rig.http.recorded, ...rig.http.refusals])).to.not.include('sesame');
    });

    it('keeps it out of the record of a refused call', async () => {
        for (const path of ['s/sesame/file', 'p/ann/sesame', 'r/sesame', 'open/visible']) {
            expect((await rig.ask('other', 'DELETE', `/api/plugins/probe/${path}`)).code, path).to.equal(
                40300
            );
        }
        expect(rig.http.refusals.map(({ resourceId }) => resourceId)).to.equal([
            null,
            'ann',
            null,
            'visible'
        ]);
        expect(JSON.stringify(rig.http.refusals)).to.not.include('sesame');
    });
});
