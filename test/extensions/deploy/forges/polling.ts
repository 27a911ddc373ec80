import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../../support/skip.ts';
import { until } from '../../../support/until.ts';
import { GitServer } from '../support/git-server.ts';
import { DeployRig, withoutSandbox } from '../support/rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(withoutSandbox, it);

const limitMs = 90_000;
let rig: DeployRig;
let hanging: GitServer;

/** A fetch sends more than that. */
const isAsk = ({ path }: { readonly path: string }): boolean => path.endsWith('/git-upload-pack');

async function polled(name: string, server: GitServer): Promise<number> {
    server.create(name, { 'index.html': name });
    return rig.project({
        name,
        source: { url: server.url(name) },
        build: { kind: 'static' },
        host: { domain: `${name}.test` },
        triggers: { pollSeconds: 60 }
    });
}

describe('Projects that are polled', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (withoutSandbox !== undefined) {
            return;
        }
        rig = await DeployRig.start();
        hanging = new GitServer(join(rig.top, 'hanging'));
        await hanging.start();
    });

    after({ timeout: limitMs }, async () => {
        await rig?.close();
        await hanging?.close();
    });

    real('wait for no other host, and the projects of one host for each other', async () => {
        let [open, most] = [0, 0];
        hanging.intercept = (_request, response) => {
            most = Math.max(most, (open += 1));
            response.once('close', () => (open -= 1));
            return true;
        };
        await polled('stuck-one', hanging);
        await polled('stuck-two', hanging);
        const ids = [await polled('one', rig.git), await polled('two', rig.git)];
        for (const id of ids) {
            await until(
                async () => (await rig.get(`/projects/${id}`)).data.state === 'live',
                `project ${id} to serve while another host hangs`
            );
        }
        expect((await rig.page('one.test')).text).to.equal('one');
        expect((await rig.page('two.test')).text).to.equal('two');
        expect([most, hanging.asked.length]).to.equal([1, 1]);
        // Two ticks later no project is due, and the host that hangs was asked for the next one after the first was given up.
        const asked = rig.git.asked.filter(isAsk).length;
        await new Promise((resolve) => setTimeout(resolve, 21_000));
        expect(rig.git.asked.filter(isAsk)).to.have.length(asked);
        expect(most).to.equal(1);
    });
});
